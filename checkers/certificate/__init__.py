"""The certificate of a single run: one run, and a proof that every other run is that run again."""

from syncproof.checkers.certificate.check import certify

__all__ = ["certify"]
