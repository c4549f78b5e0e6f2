"""Any number of ranks, from the proof of two (docs/any-ranks.md)."""
