"""Live roles: what they do next, and what they say on the way."""

from __future__ import annotations

import dis
from functools import cache, cached_property
from itertools import chain
from types import CodeType, CoroutineType
from typing import Any, TypeVar

from syncproof.models.core import Unresolved
from syncproof.models.errors import UserError
from syncproof.models.identity import Identity, Refusal, discard
from syncproof.models.identity_classes import image, is_of_package
from syncproof.models.instance import Parts
from syncproof.models.nodes import same
from syncproof.models.operations import (
    Consumed,
    Failed,
    GhostCheck,
    GhostUpdate,
    Hidden,
    Operation,
    Reached,
    Sent,
    Statement,
)
from syncproof.models.saying import check_held
from syncproof.models.shared import Shared
from syncproof.models.standing import Standing
from syncproof.models.values import token_text

T = TypeVar("T")

MOST_RUN_TWICE = 32
"""With more processes than this, only those of rank 0 are run a second time."""


RESUMING = ("RESUME", "JUMP_BACKWARD_NO_INTERRUPT", "CLEANUP_THROW", "END_SEND", "CACHE")
"""What stands between the suspended ``await`` and the use of its value (CPython 3.11 to 3.13)."""


NOBODY = -1
"""The number of no process."""
SPARES = -2
"""With a process taken away, the number of all its spares."""


class NotCertified(Exception):
    """This run is not shown to be the only one; the message names what is not ordered."""


class LiveRoles:
    """The coroutine of each process, fed with what it reads, and its statements judged.

    ``operations[p]`` is what process p waits to do, None when it has returned. A token is due from
    when its source first speaks of it until it is consumed. ``looks_always``: what roles share is
    looked at behind each step, and behind each turn of a sweep; else before anybody else goes on.
    """

    def __init__(self, parts: Parts, keep_all: bool = False) -> None:
        self.parts = parts
        self.names = [str(process) for process in parts.processes]
        self.operations: list[Operation | None] = [None] * len(self.names)
        self.reached: set[str] = set()
        self._coroutines: list[CoroutineType[Any, Any, Any]] = [r.start() for r in parts.roles]
        self._send = [each.send for each in self._coroutines]
        self._said = [role.said for role in parts.roles]
        self._tokens: dict[tuple[Any, ...], bool] = {}
        self._fed: list[list[tuple[Any, Operation]] | None] = [
            [] if keep_all or len(self.names) <= MOST_RUN_TWICE or process.rank == 0 else None
            for process in parts.processes
        ]
        self._spares: list[list[tuple[int, CoroutineType[Any, Any, Any]]]] = [
            [] for _ in self.names
        ]
        self._identities: dict[int, Identity] = {}
        cores = [role.core for role in parts.roles]
        self._cores = [tuple(chain.from_iterable(vars(core).items())) for core in cores]
        self._between = Shared(parts.protocol, self._coroutines, ())
        self._shared = self._between.beside(cores)
        self._running = NOBODY
        kinds = type(parts.protocol).__mro__[:-1]
        self.looks_always = not all(is_of_package(each) for each in kinds)

    def resume(self, process: int, value: Any) -> Operation | None:
        """Feed a process what it read, and judge what it says: what it waits to do then."""
        if self.looks_always or process != self._running:
            self._look(process)
        if self.looks_always:
            self._look_at_core(process)
        said = self._said[process]
        if said:
            said.clear()
        operation: Operation | None
        try:
            operation = self._send[process](value)
        except StopIteration:
            operation = None
        except Unresolved:
            raise
        except Exception as error:
            raise NotCertified(f"{self.names[process]} raised {error}") from error
        if operation is not None and type(operation) is not Operation:
            raise NotCertified(f"{self.names[process]} awaits {operation}")
        self.operations[process] = operation
        fed = self._fed[process]
        if fed is not None and operation is not None:
            fed.append((value, operation))
        if said:
            self._judge(process, said)
        return operation

    def _look(self, process: int) -> None:
        """Refuse what the coroutine that ran before has changed, before another one can see it.

        In this run no other need have gone on there, but in another order of the same steps one
        may: of a file of the user's it is asked behind each step. Protocols of this package take
        nothing back. A core is of its process alone, and what all cores are given nobody writes
        to: that all are as they were is asked at the end.
        """
        self._between.refuse_change()
        self._running = process

    def _look_at_core(self, process: int) -> None:
        """Refuse a core that is not as it was, as all coroutines of its process have the same."""
        now = tuple(chain.from_iterable(vars(self.parts.roles[process].core).items()))
        if image(now) != image(self._cores[process]):
            raise UserError(
                f"the role of {self.names[process]} changes its core, which all its runs see",
                expected="a role keeps what it changes in its own local variables",
            )

    def _judge(self, process: int, said: list[Statement]) -> None:
        tokens = self._tokens
        for each in said:
            if type(each) is Sent:
                tokens.setdefault(each.key, True)
            elif type(each) is Consumed:
                if each.failure:
                    raise NotCertified(f"{self.names[process]}: {each.failure}")
                if not tokens.get(each.key):
                    raise NotCertified(f"{token_text(each.key)} is consumed twice, or never sent")
                tokens[each.key] = False
            elif type(each) is Reached:
                self.reached.add(each.name)
            elif type(each) is Hidden:
                raise each.error
            elif type(each) is Failed:
                raise NotCertified(f"{self.names[process]}: {each.message}")
            elif isinstance(each, GhostUpdate | GhostCheck):
                check_held(each, self.parts.protocol.ghosts)

    def on_ghosts(self, process: int) -> list[GhostUpdate | GhostCheck]:
        """What a process said on ghosts when it was fed the last time."""
        return [each for each in self._said[process] if isinstance(each, (GhostUpdate, GhostCheck))]

    def judge_end(self) -> None:
        """Every token is consumed, and a role run again does the same."""
        due = [key for key, is_due in self._tokens.items() if is_due]
        if due:
            raise NotCertified(f"{token_text(min(due, key=str))} is not consumed")
        for process in range(len(self.names)):
            self._run_again(process)

    def _run_again(self, process: int) -> None:
        """Feed a second coroutine what the first was fed: it has to do the same."""
        fed, role = self._fed[process], self.parts.roles[process]
        if fed is None:
            return
        self._look(NOBODY)
        self._look_at_core(process)
        again = role.start()
        try:
            for value, operation in fed:
                if not same(again.send(value), operation):
                    break
            else:
                return
        except StopIteration:
            pass
        finally:
            discard(again)
            role.said.clear()
        raise self._not_deterministic(process)

    def _not_deterministic(self, process: int) -> UserError:
        code = self._coroutines[process].cr_code
        return UserError(
            f"the role {self.parts.processes[process].role} is not deterministic: the same "
            "values read gave another operation",
            where=f"{code.co_filename}:{code.co_firstlineno}",
            expected="a role depends only on what it reads and chooses",
        )

    def discard(self) -> None:
        """End all coroutines quietly; a `UserError` if what roles share is not as it was."""
        for each in self._coroutines:
            discard(each)
        for spares in self._spares:
            for _, spare in spares:
                discard(spare)
        self._shared.refuse_change()

    # Other values than those that were read

    def position(self, process: int) -> int:
        """How many values a process has been fed, which leads to where it is."""
        fed = self._fed[process]
        assert fed is not None
        return len(fed)

    def rewind(self, process: int, position: int) -> None:
        """Forget what a process was fed since, as a sweep that failed leaves no trace."""
        fed = self._fed[process]
        assert fed is not None
        del fed[position:]
        spares = self._spares[process]
        for each in [each for each in spares if each[0] > position]:
            spares.remove(each)
            discard(each[1])

    def drops_result(self, process: int) -> bool:
        """Whether the role throws away what it reads now, as ``await core.quiet()`` does."""
        inner: Any = self._coroutines[process]
        while type(inner.cr_await) is CoroutineType:
            inner = inner.cr_await
        frame, leaf = inner.cr_frame, inner.cr_await
        if frame is None or getattr(leaf, "gi_code", None) is not Operation.__await__.__code__:
            return False  # something between the role and the operation may look at the value
        return _pops_result(frame.f_code, frame.f_lasti)

    def spare(self, process: int, position: int) -> CoroutineType[Any, Any, Any]:
        """Another coroutine of a role, fed the same up to a position; it is the caller's.

        Of those that were kept the nearest is taken, so that few are fed everything again.
        """
        fed, role, spares = self._fed[process], self.parts.roles[process], self._spares[process]
        assert fed is not None
        if self._running != SPARES - process:  # between turns a sweep looks itself, if at all
            self._look(SPARES - process)
        self._look_at_core(process)
        before = [i for i, (at, _) in enumerate(spares) if at <= position]
        nearest = max(before, key=lambda i: spares[i][0], default=None)
        at, spare = (0, role.start()) if nearest is None else spares.pop(nearest)
        for value, operation in fed[at:position]:
            if not same(spare.send(value), operation):
                raise self._not_deterministic(process)
        role.said.clear()
        return spare

    def keep(self, process: int, position: int, spare: CoroutineType[Any, Any, Any]) -> None:
        """Give a spare back that was fed the same up to a position."""
        self._spares[process].append((position, spare))

    def state(self, process: int, coroutine: CoroutineType[Any, Any, Any], value: Any) -> Any:
        """What a role does when it is fed a value: what it says, and the state it is in then."""
        said = self.parts.roles[process].said
        said.clear()
        self._look(NOBODY)
        try:
            coroutine.send(value)
        except StopIteration:
            return tuple(said), "end"
        except Exception as error:
            raise NotCertified(f"{self.names[process]} raised {error}") from error
        found = tuple(said), self.fingerprint(process, coroutine)
        said.clear()
        return found

    def fingerprint(self, process: int, coroutine: CoroutineType[Any, Any, Any]) -> bytes:
        """The local state of a role; `NotCertified` where it cannot be told."""
        return self._told(process, self._identity(process).fingerprint(coroutine))

    def standing(self, process: int, coroutine: CoroutineType[Any, Any, Any]) -> Standing:
        """Where a role stands, to see soon whether it comes back to there; `NotCertified` where it
        cannot be told."""
        return Standing(coroutine, self._told(process, self._identity(process).captured(coroutine)))

    def _identity(self, process: int) -> Identity:
        if process not in self._identities:
            core = self.parts.roles[process].core
            self._identities[process] = self._identity_of_all.beside(core)
        return self._identities[process]

    @cached_property
    def _identity_of_all(self) -> Identity:
        return Identity((self.parts.protocol,), Operation)

    def _told(self, process: int, found: T | Refusal) -> T:
        if isinstance(found, Refusal):
            raise NotCertified(f"{self.names[process]} may depend on a value read: {found.reason}")
        return found

    def goes_on_alike(self, process: int, position: int, value: Any, other: Any) -> bool:
        """Whether a role at a position is in one state after either of two values."""
        states = []
        for each in (value, other):
            coroutine = self.spare(process, position)
            states.append(self.state(process, coroutine, each))
            discard(coroutine)
        return bool(states[0] == states[1])


@cache
def _pops_result(code: CodeType, last: int) -> bool:
    """Whether the value of the ``await`` that a frame is suspended in is popped at once."""
    for each in dis.get_instructions(code):
        if each.offset > last and each.opname not in RESUMING:
            return each.opname == "POP_TOP"
    return False
