"""Any number of rounds: the shift quotient, its invariant, and any number of ranks."""
