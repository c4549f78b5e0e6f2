"""From operations on slots to actions on cells: what one step reads, writes or issues."""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from syncproof.models.conditions import watched
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.memory import Layout, Slot
from syncproof.models.operations import Kind, Operation
from syncproof.models.outbox import ADD, SET, Packet, fence
from syncproof.models.per_rank import PerRank
from syncproof.models.values import Block, Opaque, Torn, Values

Progress = tuple[tuple[int, int], ...]
"""The cells read so far by an operation of several steps, each with its value number."""

BETWEEN = -1
"""In a progress, stands for the old value of an atomic that is between its read and its write."""


STORES = frozenset((Kind.PUT, Kind.ADD, Kind.PUT_WITH_SIGNAL, Kind.PUT_NBI, Kind.GET_NBI))
READS = frozenset((Kind.LOAD, Kind.GET, Kind.WAIT_UNTIL))
UPDATES = frozenset((Kind.ATOMIC, Kind.WAIT_UNTIL))
CACHED = frozenset((Kind.LOAD_CACHED, Kind.STORE_CACHED, Kind.CLEAN_AND_INVALIDATE))


class ActionKind(Enum):
    ISSUE = "issue"
    READ = "read"
    UPDATE = "update"
    WRITE = "write"
    QUIET = "quiet"
    FENCE = "fence"
    SYNC = "sync"
    READ_CACHED = "read cached"
    WRITE_CACHED = "write cached"
    CLEAN = "clean"


@dataclass(unsafe_hash=True)
class Action:
    """One way in which a process can take its next step. It is never changed, and not frozen for
    the reason that an operation is not.

    ``cells`` are read (and for UPDATE written); ``packets`` are issued; ``writes`` are immediate.
    ``waits`` marks a step that can block on the values it reads; ``ordered`` one that comes
    behind earlier puts of its queue; ``synchronizing`` one that race-free exempts.
    """

    kind: ActionKind
    cells: tuple[int, ...] = ()
    packets: tuple[Packet, ...] = ()
    profiles: tuple[Profile, ...] = ()
    writes: tuple[tuple[int, int, int], ...] = ()
    group: str = ""
    members: tuple[int, ...] = ()
    target: int = -1
    queue: int = 0
    ordered: bool = False
    waits: bool = False
    synchronizing: bool = False


@dataclass(eq=False)
class Outcome:
    """What an action gives on the values read: a result for the role, or where it stands."""

    result: Any = None
    writes: tuple[tuple[int, int], ...] = ()
    progress: Progress | None = None
    blocked: bool = False
    again: bool = False
    error: Exception | None = None


NO_OUTCOME = Outcome()
_READ, _READ_CACHED = ActionKind.READ, ActionKind.READ_CACHED
_UPDATE, _WRITE = ActionKind.UPDATE, ActionKind.WRITE


class Lowering:
    """Turns operations into actions for one layout and fabric."""

    def __init__(self, layout: Layout, profile: Profile, values: Values, locks: bool) -> None:
        self.layout, self.profile, self.values = layout, profile, values
        self._locks = locks
        self._atoms: dict[tuple[tuple[int, ...], int], list[tuple[int, tuple[int, ...]]]] = {}
        self._reading: dict[Hashable, tuple[Action, ...]] = {}

    def lock_of(self, cell: int) -> int:
        """The hidden cell that excludes local atomics from each other where NICs do not."""
        return self.layout.size + cell

    # Actions

    def actions(
        self, operation: Operation | None, progress: Progress, rank: int
    ) -> tuple[Action, ...]:
        """The ways in which the process can take its next step."""
        assert operation is not None
        kind = operation.kind
        if kind in STORES:
            return self._stores(operation, progress, rank)
        if kind in READS and (operation.update is None or kind not in UPDATES):
            return self._reads(operation, progress, rank)
        if kind in UPDATES:
            return self._update(operation, progress, rank)
        if kind in CACHED:
            return (self._cached(operation),)
        if kind is Kind.FENCE:
            return self._fence(operation, rank)
        if kind is Kind.QUIET:
            return (Action(ActionKind.QUIET),)
        assert kind is Kind.SYNC, kind
        return (Action(ActionKind.SYNC, group=operation.group, members=operation.members),)

    def _fence(self, operation: Operation, rank: int) -> tuple[Action, ...]:
        """A fence gives towards each target what the profile of that hop says.

        Where some hops drain and others only order, it orders: weaker, and so on the safe side.
        """
        target = -1 if operation.target is None else operation.target
        owners = {owner for region in self.layout.regions for owner in region.owners()}
        targets = sorted(owners) if target < 0 else [target]
        profiles = [self.profile.between(rank, each) for each in targets]
        if all(each.fence == "drains" for each in profiles):
            return (Action(ActionKind.QUIET, target=target),)
        if all(each.fence != "none" and each.fence_scope == "all" for each in profiles):
            return (Action(ActionKind.FENCE, packets=(fence(target),), profiles=(self.profile,)),)
        pairs = [(t, p) for t, p in zip(targets, profiles, strict=True) if p.fence != "none"]
        packets, used = tuple(fence(t) for t, _ in pairs), tuple(p for _, p in pairs)
        return (Action(ActionKind.FENCE, packets=packets, profiles=used),)

    def _immediate(self, slot: Slot) -> bool:
        return self.profile.immediate or slot.region.on_chip

    def _stores(self, operation: Operation, progress: Progress, rank: int) -> tuple[Action, ...]:
        slot = _slot(operation)
        if operation.source is not None:
            return self._copy(operation, progress, rank)
        mode = ADD if operation.kind is Kind.ADD else SET
        writes = self._writes(slot, operation.value, mode)
        if operation.kind is Kind.PUT_WITH_SIGNAL:
            signal = operation.signal
            assert signal is not None
            extra = self._writes(
                signal, operation.signal_value, ADD if operation.signal_adds else SET
            )
            if self._immediate(slot) and self._immediate(signal):
                return (Action(ActionKind.WRITE, writes=(*writes, *extra)),)
            return (self._issued(operation, rank, [(slot, writes, False), (signal, extra, True)]),)
        if self._immediate(slot):
            sync = operation.kind is Kind.ADD
            return (Action(ActionKind.WRITE, writes=writes, synchronizing=sync),)
        return (self._issued(operation, rank, [(slot, writes, False)]),)

    def _issued(
        self,
        operation: Operation,
        rank: int,
        puts: Sequence[tuple[Slot, tuple[tuple[int, int, int], ...], bool]],
    ) -> Action:
        packets, profiles = [], []
        for slot, writes, is_signal in puts:
            profile = self.profile.between(rank, slot.rank)
            groups = self._by_atom([w[0] for w in writes], profile.store_atomicity)
            for place, group in groups:
                chosen = writes if len(groups) == 1 else tuple(w for w in writes if w[0] in group)
                packets.append(
                    Packet(
                        chosen, (), slot.rank, operation.queue, True, place, is_signal, False, False
                    )
                )
                profiles.append(profile)
        return Action(ActionKind.ISSUE, packets=tuple(packets), profiles=tuple(profiles))

    def _copy(self, operation: Operation, progress: Progress, rank: int) -> tuple[Action, ...]:
        """A copy by the fabric: its source is read later, its target written later still."""
        slot, source = _slot(operation), operation.source
        assert source is not None
        targets = [cell for cell, _, _ in self.layout.cells_of(slot)]
        sources = [cell for cell, _, _ in self.layout.cells_of(source)]
        shapes = [self.layout.shape_of(each) for each in (slot, source)]
        if len(targets) != len(sources) or shapes[0] != shapes[1]:
            raise UserError(f"a copy of {source} to {slot} of another shape", where=operation.at)
        if self.profile.immediate:
            if not progress:
                return (Action(ActionKind.READ, cells=tuple(sources)),)
            values = dict(progress)
            writes = tuple((t, values[s], SET) for t, s in zip(targets, sources, strict=True))
            return (Action(ActionKind.WRITE, writes=writes),)
        is_get = operation.kind is Kind.GET_NBI
        remote = source.rank if is_get else slot.rank
        profile = self.profile.between(rank, remote)
        pairs = dict(zip(targets, sources, strict=True))
        packets = tuple(
            Packet(
                tuple((cell, -1, SET) for cell in group),
                tuple(pairs[cell] for cell in group),
                remote,
                operation.queue,
                True,
                place,
                False,
                is_get,
                False,
            )
            for place, group in self._by_atom(targets, profile.store_atomicity)
        )
        return (Action(ActionKind.ISSUE, packets=packets, profiles=(profile,) * len(packets)),)

    def _writes(self, slot: Slot, value: Any, mode: int) -> tuple[tuple[int, int, int], ...]:
        parts = {name: self.values.number(part) for name, part in slot.spread(value).items()}
        if mode == ADD and not all(isinstance(self.values[n], int) for n in parts.values()):
            raise UserError(f"an add of {value!r} to {slot}", expected="a whole number")
        return tuple(
            (cell, parts[name], mode)
            for cell, name, _ in self.layout.cells_of(slot)
            if name in parts
        )

    def _by_atom(self, cells: Sequence[int], atomicity: int) -> list[tuple[int, tuple[int, ...]]]:
        """The cells that move together, in ascending order of their bytes."""
        key = (tuple(cells), atomicity)
        found = self._atoms.get(key)
        if found is None:
            groups: dict[int, list[int]] = {}
            for cell in cells:
                groups.setdefault(self.layout.cells[cell].first_byte // atomicity, []).append(cell)
            found = [(place, tuple(groups[place])) for place in sorted(groups)]
            self._atoms[key] = found
        return found

    def _reads(self, operation: Operation, progress: Progress, rank: int) -> tuple[Action, ...]:
        """They depend on nothing that a role brings along, so that each is made once."""
        slot = _slot(operation)
        done = tuple([cell for cell, _ in progress]) if progress else ()
        what = (operation.kind, operation.queue, operation.ordered, done, rank)
        key = (slot.region, slot.rank, slot.number, slot.names, *what)
        found = self._reading.get(key)
        if found is None:
            found = self._reading[key] = self._made_reads(operation, slot, progress, rank)
        return found

    def _made_reads(
        self, operation: Operation, slot: Slot, progress: Progress, rank: int
    ) -> tuple[Action, ...]:
        profile = self.profile.between(rank, slot.rank)
        atomicity = profile.load_atomicity or profile.store_atomicity
        done = {cell for cell, _ in progress}
        cells = [cell for cell, _, _ in self.layout.cells_of(slot)]
        whole = slot.region.on_chip
        groups = [(0, tuple(cells))] if whole else self._by_atom(cells, atomicity)
        left = [group for _, group in groups if group[0] not in done]
        if profile.in_block_order == "ascending":
            left = left[:1]
        waits = operation.kind is Kind.WAIT_UNTIL
        return tuple(
            Action(
                ActionKind.READ,
                cells=group,
                queue=operation.queue,
                target=slot.rank,
                ordered=operation.ordered,
                waits=waits and len(groups) == 1,
                synchronizing=waits,
            )
            for group in left
        )

    def _update(self, operation: Operation, progress: Progress, rank: int) -> tuple[Action, ...]:
        slot = _slot(operation)
        cells = [cell for cell, _, _ in self.layout.cells_of(slot)]
        if len(cells) != 1:
            raise UserError(
                f"an atomic on {slot}, which is {len(cells)} atoms",
                expected="one field in one atom",
            )
        split = self._locks and slot.rank == rank and not slot.region.on_chip
        if split and progress:
            value = self._updated(operation, dict(progress)[BETWEEN])
            if isinstance(value, Exception):
                raise value
            writes = ((cells[0], value, SET), (self.lock_of(cells[0]), self.values.number(0), SET))
            return (Action(ActionKind.WRITE, writes=writes, synchronizing=True),)
        return (
            Action(
                ActionKind.UPDATE,
                cells=(cells[0], self.lock_of(cells[0])) if split else (cells[0],),
                queue=operation.queue,
                target=slot.rank,
                ordered=operation.ordered,
                waits=operation.kind is Kind.WAIT_UNTIL or split,
                synchronizing=True,
            ),
        )

    def _cached(self, operation: Operation) -> Action:
        slot = _slot(operation)
        if slot.region.line is None:
            raise UserError(f"a cached access to {slot}", expected="Region(line=64)")
        cells = tuple(cell for cell, _, _ in self.layout.cells_of(slot))
        if operation.kind is Kind.CLEAN_AND_INVALIDATE:
            return Action(ActionKind.CLEAN, cells=cells)
        if operation.kind is Kind.STORE_CACHED:
            return Action(
                ActionKind.WRITE_CACHED,
                cells=cells,
                writes=self._writes(slot, operation.value, SET),
            )
        waits = operation.predicate is not None
        return Action(ActionKind.READ_CACHED, cells=cells, waits=waits, synchronizing=waits)

    # Outcomes

    def outcome(
        self,
        operation: Operation | None,
        progress: Progress,
        action: Action,
        values: tuple[int, ...],
    ) -> Outcome:
        """What the action does with the value numbers ``values`` in its cells."""
        assert operation is not None
        try:
            kind = action.kind
            if kind is _READ or kind is _READ_CACHED:
                return self._read(operation, progress, action, values)
            if kind is _UPDATE:
                return self._updated_outcome(operation, action, values)
            if progress and kind is _WRITE:
                old = dict(progress).get(BETWEEN)
                return Outcome(None if old is None else self.values[old])
            return NO_OUTCOME
        except MemoryError:
            raise
        except Exception as error:
            return Outcome(error=_explained(operation, error))

    def _read(
        self, operation: Operation, progress: Progress, action: Action, values: tuple[int, ...]
    ) -> Outcome:
        read = (*progress, *zip(action.cells, values, strict=True))
        slot = _slot(operation)
        if operation.source is not None or len(read) < len(self.layout.cells_of(slot)):
            return Outcome(progress=tuple(sorted(read)))
        result = self.assembled(slot, dict(read))
        if operation.predicate is not None and not operation.predicate(result):
            return Outcome(again=True) if not action.waits else Outcome(blocked=True)
        return Outcome(result)

    def assembled(self, slot: Slot, read: dict[int, int]) -> Any:
        """The value of a slot from those of its cells; a field whose atoms differ is torn."""
        values, compared = self.values, slot.region.compared
        pieces: dict[str, list[int]] = {}
        for cell, name, _ in self.layout.cells_of(slot):
            if name in pieces:
                pieces[name].append(read[cell])
            else:
                pieces[name] = [read[cell]]
        fields: dict[str, Any] = {}
        for name, numbers in pieces.items():
            whole = len(numbers) == 1 or len(set(numbers)) == 1
            value = values[numbers[0]] if whole else Torn(tuple(values[n] for n in numbers))
            fields[name] = value if name in compared else Opaque(value)
        return fields[slot.names[0]] if len(slot.names) == 1 else Block(fields)

    def _updated(self, operation: Operation, old: int) -> int | Exception:
        assert operation.update is not None
        try:
            return self.values.number(operation.update(self.values[old]))
        except MemoryError:
            raise
        except Exception as error:
            return _explained(operation, error)

    def _updated_outcome(
        self, operation: Operation, action: Action, values: tuple[int, ...]
    ) -> Outcome:
        if len(values) == 2 and self.values[values[1]] != 0:
            return Outcome(blocked=True)
        old = self.values[values[0]]
        if operation.predicate is not None and not operation.predicate(old):
            return Outcome(blocked=True)
        new = self._updated(operation, values[0])
        if isinstance(new, Exception):
            return Outcome(error=new)
        if len(values) == 2:
            taken = ((action.cells[1], self.values.number(1)),)
            return Outcome(writes=taken, progress=((BETWEEN, values[0]),))
        return Outcome(old, writes=((action.cells[0], new),))


def _explained(operation: Operation, error: Exception) -> Exception:
    if isinstance(error, UserError):
        return error
    return UserError(
        f"the condition of {operation.kind.value} on {operation.slot} raised "
        f"{type(error).__name__}: {error}"
    )


def _slot(operation: Operation) -> Slot:
    if not isinstance(operation.slot, Slot):
        raise UserError(
            f"{operation.kind.value} on {type(operation.slot).__name__}",
            expected="a block of a region, such as window[rank][index]",
        )
    return operation.slot


def frozen(operation: Operation) -> Operation:
    """The operation with its functions cut off from variables that the role changes later."""
    if operation.predicate is None and operation.update is None:
        return operation
    return replace(
        operation,
        predicate=watched(_frozen_function(operation.predicate)),
        update=watched(_frozen_function(operation.update)),
    )


def _frozen_function(function: Callable[..., Any] | None) -> Callable[..., Any] | None:
    has_own = isinstance(function, types.FunctionType) and (
        function.__closure__ or function.__defaults__ or function.__kwdefaults__
    )
    return _frozen_content(function, {}) if has_own else function


def _frozen_content(content: Any, met: dict[int, Any]) -> Any:
    """A copy of what a role may bind anew or add to; ``met`` has the copies of functions."""
    if isinstance(content, types.FunctionType):
        return met[id(content)] if id(content) in met else _copied(content, met)
    if type(content) in (list, tuple, set, frozenset):
        return type(content)(_frozen_content(item, met) for item in content)
    if type(content) is dict:
        return {key: _frozen_content(value, met) for key, value in content.items()}
    if type(content) is PerRank:
        copied = PerRank()
        copied.entries = _frozen_content(content.entries, met)
        return copied
    return content


def _copied(function: types.FunctionType, met: dict[int, Any]) -> types.FunctionType:
    cells = tuple(types.CellType() for _ in function.__closure__ or ())
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, None, cells
    )
    met[id(function)] = copy
    for mine, cell in zip(cells, function.__closure__ or (), strict=True):
        try:
            mine.cell_contents = _frozen_content(cell.cell_contents, met)
        except ValueError:
            continue  # not bound yet
    copy.__defaults__ = _frozen_content(function.__defaults__, met)
    copy.__kwdefaults__ = _frozen_content(function.__kwdefaults__, met)
    return copy
