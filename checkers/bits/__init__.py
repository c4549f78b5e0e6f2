"""The bits themselves: sentinels in real encodings, and checksums with real bytes (docs/smt.md)."""

from syncproof.checkers.bits.checksums import (
    CHECKSUMS,
    Collision,
    checksum,
    shared_lead,
    stale_markers,
    torn_tail,
    zero_window,
)
from syncproof.checkers.bits.formats import FORMATS, Format
from syncproof.checkers.bits.sentinels import Answered, ask_sentinel, free_patterns

__all__ = [
    "CHECKSUMS",
    "FORMATS",
    "Answered",
    "Collision",
    "Format",
    "ask_sentinel",
    "checksum",
    "free_patterns",
    "shared_lead",
    "stale_markers",
    "torn_tail",
    "zero_window",
]
