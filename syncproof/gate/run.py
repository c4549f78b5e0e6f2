"""All obligations of a gate: looked up or answered side by side, each judged on its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from syncproof.gate.cache import Cache
from syncproof.gate.obligations import Task
from syncproof.gate.worker import Job, mutant_data, mutant_from
from syncproof.models.errors import UserError
from syncproof.models.gate import Obligation, Result, Standing, judge
from syncproof.models.mutants import Mutant, mutant_named
from syncproof.models.verdict import Answer, Verdict, from_data

EVERY = "all"
Answered = dict[str, Any]
WITHOUT_VERDICT = {
    "refused": Standing.REFUSED,
    "broken": Standing.BROKEN,
    "late": Standing.UNDECIDED,
}
"""How an answer that holds no verdict stands."""


class Watch(Protocol):
    """Is told what happens, as it happens."""

    def planned(self, obligation: Obligation) -> None:
        """An obligation is about to be answered."""

    def done(self, result: Result) -> None:
        """An obligation has its result."""


class Stopped(Exception):
    """The gate was interrupted; ``results`` are those of all obligations, answered or not."""

    def __init__(self, results: tuple[Result, ...]) -> None:
        super().__init__("interrupted")
        self.results = results


@dataclass
class _Asked:
    """A task under way: where its results belong, and what is asked about it."""

    slot: dict[int, Result]
    task: Task
    place: int = 0
    mutant: Mutant | None = None
    key: str = ""
    lists: bool = False


@dataclass
class Gate:
    """What a run of a gate needs: who answers a job, on what, and what is kept.

    ``losses`` are the exceptions by which the executor says that a job was lost with its worker.
    """

    executor: Executor
    answer: Callable[[Job], Answered]
    cache: Cache
    root: Path
    workers: int
    watch: Watch
    losses: tuple[type[BaseException], ...] = ()
    _pending: dict[Future[Answered], _Asked] = field(default_factory=dict)

    def run(self, tasks: Sequence[Task]) -> tuple[Result, ...]:
        """The results of all tasks, in their order. Raises `Stopped` when interrupted."""
        slots: list[dict[int, Result]] = [{} for _ in tasks]
        try:
            for slot, task in zip(slots, tasks, strict=True):
                self._ask(_Asked(slot, task, lists=bool(task.mutants)))
            while self._pending:
                done, _ = wait(self._pending, return_when=FIRST_COMPLETED)
                for future in done:
                    self._note(self._pending.pop(future), future)
        except KeyboardInterrupt:
            for asked in self._pending.values():
                obligation = asked.task.obligation
                asked.slot[asked.place] = Result(obligation, Standing.UNDECIDED, "interrupted")
            raise Stopped(_ordered(slots)) from None
        return _ordered(slots)

    def _ask(self, asked: _Asked) -> None:
        """Answer a task from what is kept, or hand it to the executor."""
        extra = "list mutants" if asked.lists else ""
        if asked.mutant is not None:
            extra = json.dumps(mutant_data(asked.mutant), sort_keys=True)
        asked.key = self.cache.key(asked.task.request, self.root, extra)
        kept = self.cache.find(asked.key)
        if kept is not None and self._take(asked, kept, 0.0, cached=True):
            return
        self.watch.planned(asked.task.obligation)
        request = asked.task.request
        job = Job(request, str(self.root), self.workers, asked.mutant, asked.lists)
        try:
            future = self.executor.submit(self.answer, job)
        except self.losses as error:
            future = Future()
            future.set_exception(error)
        self._pending[future] = asked

    def _note(self, asked: _Asked, future: Future[Answered]) -> None:
        error = _error_of(future)
        if error is None:
            answered = dict(future.result())
        elif isinstance(error, self.losses):
            answered = {"late": f"it was lost with its worker: {type(error).__name__}: {error}"}
        else:
            answered = {"broken": f"{type(error).__name__}: {error}"}
        sources: dict[str, str] = answered.pop("sources", {})
        seconds: float = answered.pop("seconds", 0.0)
        self._take(asked, answered, seconds, cached=False)
        if _is_lasting(answered):
            self.cache.keep(asked.key, answered, sources)

    def _take(self, asked: _Asked, answered: Answered, seconds: float, *, cached: bool) -> bool:
        """Turn an answer into results or further tasks; False if it cannot be understood."""
        try:
            told = _understood(answered)
        except (UserError, LookupError, TypeError, ValueError):
            if not cached:
                raise
            return False
        obligation = asked.task.obligation
        if isinstance(told, Verdict):
            standing, message = judge(obligation, told)
            self._done(asked, Result(obligation, standing, message, told, seconds, cached))
        elif isinstance(told, list):
            self._ask_mutants(asked, told)
        else:
            standing, message = told
            self._done(asked, Result(obligation, standing, message, None, seconds))
        return True

    def _ask_mutants(self, asked: _Asked, mutants: Sequence[Mutant]) -> None:
        task = asked.task
        where = f"mutants, line {task.obligation.line}"
        chosen = list(mutants) if task.mutants == (EVERY,) else []
        for name in () if chosen else task.mutants:
            try:
                chosen.append(mutant_named(name, mutants, where))
            except UserError as error:
                refused = task.of_mutant(name, name).obligation
                self._done(asked, Result(refused, Standing.REFUSED, str(error)))
                return
        if not chosen:
            text = "it has no operation that could be left out"
            self._done(asked, Result(task.obligation, Standing.UNEXPECTED, text))
        seen: dict[str, int] = {}
        for place, mutant in enumerate(chosen):
            seen[mutant.text] = seen.get(mutant.text, 0) + 1
            again = f" ({seen[mutant.text]})" if seen[mutant.text] > 1 else ""
            of_mutant = task.of_mutant(mutant.name, mutant.text + again)
            self._ask(_Asked(asked.slot, of_mutant, place, mutant))

    def _done(self, asked: _Asked, result: Result) -> None:
        asked.slot[asked.place] = result
        self.watch.done(result)


def _error_of(future: Future[Answered]) -> BaseException | None:
    try:
        return future.exception()
    except CancelledError as error:
        return error


def _understood(answered: Answered) -> Verdict | list[Mutant] | tuple[Standing, str]:
    """What an answer says: a verdict, mutants, or why there is neither."""
    if "verdict" in answered:
        verdict: Verdict = from_data(Verdict, answered["verdict"], "answer")
        return verdict
    if "mutants" in answered:
        return [mutant_from(each) for each in answered["mutants"]]
    for word, standing in WITHOUT_VERDICT.items():
        if word in answered:
            return standing, str(answered[word])
    raise ValueError(f"no answer: {sorted(answered)}")


def _is_lasting(answered: Answered) -> bool:
    """Whether an answer would be the same again, however fast or large the machine is."""
    if "verdict" not in answered:
        return "mutants" in answered
    verdict: Verdict = from_data(Verdict, answered["verdict"], "answer")
    limited = any(
        each.answer is Answer.UNDECIDED and "raise" in each.detail for each in verdict.properties
    )
    return verdict.answer in (Answer.PROVED, Answer.VIOLATED) and not limited


def _ordered(slots: Iterable[dict[int, Result]]) -> tuple[Result, ...]:
    """Results in the order of the file, those of mutants as in the protocol's source."""
    return tuple(slot[place] for slot in slots for place in sorted(slot))
