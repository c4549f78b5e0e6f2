"""Python's cycle collector paused: building millions of small objects that all stay is quadratic
work for it otherwise, and none of them is garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Within, no cycles are collected; afterwards it is as before.

    What was made is then old: it is not looked through at once, as all that is young would be.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
