"""Bounded happens-before as one formula for z3: every schedule at once (docs/smt.md)."""
