"""What a long search is doing, on a terminal's standard error; silent everywhere else."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

PATIENCE = 1.0
EVERY = 0.25


class Progress:
    """``with Progress(sys.stderr) as progress:`` shows what ``progress.report`` is told.

    Nothing is shown in the first second, nor where ``stream`` is no terminal. The only estimate is
    when a budget of states will be used up: nothing known during a search says when it will end.
    ``most_states`` is that budget, ``memory`` tells the bytes in use (0: not known).
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        most_states: int = 0,
        memory: Callable[[], int] = lambda: 0,
    ) -> None:
        self.stream, self.most_states, self.memory = stream, most_states, memory
        self.states, self.frontier, self.depth = 0, 0, 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)
        self._started = time.monotonic()
        self._drawn = False

    def report(self, states: int, frontier: int, depth: int) -> None:
        """The counts so far; called by an engine as often as it likes."""
        self.states, self.frontier, self.depth = states, frontier, depth

    def __enter__(self) -> Progress:
        if self.stream.isatty():
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._drawn:
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def _show(self) -> None:
        wait = PATIENCE
        while not self._done.wait(wait):
            self._drawn = True
            line = self.line()[: shutil.get_terminal_size().columns - 1]
            self.stream.write(f"\r{line}\x1b[K")
            self.stream.flush()
            wait = EVERY

    def line(self) -> str:
        """The counts in words."""
        seconds = time.monotonic() - self._started
        if not self.states:
            return f"{seconds:.0f} s: reading the protocol"
        rate = self.states / seconds
        said = (
            f"{seconds:.0f} s: {self.states:,} states ({rate:,.0f}/s), "
            f"{self.frontier:,} to expand, depth {self.depth}"
        )
        used = self.memory()
        if used:
            said += f", {used / 2**20:,.0f} MiB"
        if self.most_states:
            left = max(self.most_states - self.states, 0) / rate
            said += f"; the budget lasts {left:,.0f} s more at most"
        return said
