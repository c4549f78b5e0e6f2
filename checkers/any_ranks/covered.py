"""What is said of a protocol that the argument does not cover."""


class NotCovered(Exception):
    """A premise of the argument does not hold; the message says which, and where."""
