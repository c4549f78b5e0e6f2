"""Any number of rounds: the shift quotient and its invariant."""
