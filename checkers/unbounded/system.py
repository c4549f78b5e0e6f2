"""The system of any number of rounds, and the quotient of its states under moving all rounds.

A state is that of `models.system`, with what concerns all processes at its end: the choices made,
the tokens sent and consumed, the ghosts. It is held as pairs of value numbers, so that it is moved
and aged like memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from syncproof.checkers.unbounded.channel import Channel, Needed, NotCovered, RoundValues
from syncproof.checkers.unbounded.frames import (
    Framed,
    FramedAutomaton,
)
from syncproof.models import outbox as boxes
from syncproof.models.automaton import Automaton
from syncproof.models.instance import cache_lines
from syncproof.models.looks import outline_of
from syncproof.models.lowering import Action
from syncproof.models.nodes import Node
from syncproof.models.operations import (
    Consumed,
    GhostCheck,
    GhostUpdate,
    Sent,
    Statement,
)
from syncproof.models.rounds import (
    NeedsLookback,
    Note,
    Old,
    OutsideRounds,
    Round,
    Scale,
    bare,
    mapped,
    rounds_in,
)
from syncproof.models.saying import Ghosts
from syncproof.models.system import System
from syncproof.models.transitions import Failure, Features, Interned, Move, State, Step, Transition

MOST_SKEW = 8
"""Processes may be so many rounds apart; beyond, the search ends undecided."""

UNKNOWN = 10**9
"""Beyond all rounds."""

Pairs = tuple[tuple[int, int], ...]


def _changes(before: State, after: State) -> tuple[tuple[int, int], ...]:
    pairs = enumerate(zip(before, after, strict=True))
    return tuple((place, new) for place, (old, new) in pairs if old != new)


class Beside(Ghosts):
    """Choices, tokens and ghosts of a state: pairs of value numbers under one number."""

    def __init__(self, initial: Mapping[str, Hashable], values: RoundValues, note: Note) -> None:
        super().__init__(initial, 0)
        self.values, self._note = values, note
        self.outside: OutsideRounds | None = None
        self.interned = Interned(())
        self.horizon = -UNKNOWN
        self._answers: dict[int, dict[int, int]] = {}

    def note(self, test: str, one: Round, other: Round | int, found: Any) -> None:
        """Take down a test that a ghost's function makes, and a use that is not covered."""
        if isinstance(found, OutsideRounds):
            self.outside = found
        self._note(test, one, other, found)

    def pairs(self, number: int) -> Pairs:
        """What is held under a number."""
        return cast(Pairs, self.interned.known[number])

    def answers(self, number: int) -> dict[int, int]:
        """The same as a mapping."""
        found = self._answers.get(number)
        if found is None:
            found = self._answers[number] = dict(self.pairs(number))
        return found

    def changed(self, number: int, key: Hashable, value: Hashable) -> int:
        """The number with one more pair."""
        held = dict(self.pairs(number))
        held[self.values.number(key)] = self.values.number(value)
        return self.interned.number(tuple(sorted(held.items())))

    def value(self, work: Sequence[int], name: str, key: Hashable) -> Hashable:
        """What a ghost holds under a key; of a round long past it is not known when it was."""
        held = self.under(work[self.at], ("ghost", name, key), self.initial.get(name, 0))
        found: Hashable = self._told(held)
        return found

    def _told(self, value: Any) -> Any:
        """A value whose rounds tell of their moduli, for a function of the protocol."""

        def telling(each: Round) -> Round:
            if type(each) is Old:
                return each.old_(UNKNOWN, self.note)
            return each.like_(each.number_, self.note)

        return mapped(value, telling)

    def under(self, number: int, key: Hashable, default: Hashable) -> Hashable:
        """What is held under a key, or the default."""
        found = self.answers(number).get(self.values.number(key))
        return default if found is None else self.values.plain(found)

    def set(self, work: list[int], name: str, key: Hashable, value: Hashable) -> None:
        """Change what a ghost holds under a key."""
        work[self.at] = self.changed(work[self.at], ("ghost", name, key), value)

    def hear(
        self,
        work: list[int],
        process: int,
        statements: Sequence[Statement],
        failures: list[Failure],
        reached: list[str],
    ) -> None:
        """Judge what a process says; tokens are kept for all processes together.

        A token or a ghost's key may be forgotten once a round in it is below ``horizon``.
        """
        told = [self._heard(each) for each in statements]
        for each in told:
            if isinstance(each, Sent):
                work[self.at] = self.changed(work[self.at], ("sent", each.key), True)
            elif isinstance(each, Consumed):
                key = ("consumed", each.key)
                count = self.under(work[self.at], key, 0)
                assert isinstance(count, int)
                work[self.at] = self.changed(work[self.at], key, min(count + 1, 2))
        self.outside = None
        super().hear(work, process, told, failures, reached)
        if self.outside is not None:
            raise self.outside  # which the function may have caught

    def _heard(self, said: Statement) -> Statement:
        """A statement with the key under which all processes find the same."""
        if not isinstance(said, Sent | Consumed | GhostUpdate | GhostCheck):
            return said
        if any(type(r) is Old or r.when_ < self.horizon for r in rounds_in(said.key)):
            raise NeedsLookback
        if isinstance(said, Sent | Consumed):
            return replace(said, key=bare(said.key))
        return replace(said, key=bare(said.key), arguments=self._told(said.arguments))


class RoundSystem(System):
    """The system of any number of rounds; its states are in the frames of those before them."""

    def __init__(
        self, automata: Sequence[FramedAutomaton], channel: Channel, parts: Any, features: Features
    ) -> None:
        lines = cache_lines(parts.layout)
        initial = [channel.values.number(value) for value in parts.initial]
        ghosts = {ghost.name: ghost.initial for ghost in parts.protocol.ghosts.values()}
        super().__init__(
            cast("Sequence[Automaton]", automata),
            parts.layout.cells,
            channel.values,
            features,
            lines,
            ghosts,
            initial,
        )
        self.channel, self.framed = channel, tuple(automata)
        self.beside = Beside(ghosts, channel.values, channel.note)
        self.beside.at = self.width - 1
        self.ghosts = self.beside
        self.round_values = channel.values
        self._plain = not (features.caches or features.views or features.twins)
        self._steps_known: dict[tuple[int, ...], tuple[Move, ...]] = {}
        self._looks: dict[tuple[int, int], tuple[int, ...]] = {}
        self._horizons: dict[State, int] = {}

    def node_of(self, state: State, process: int) -> Framed:
        """The node of a process, with its round."""
        return self.framed[process].nodes[state[process]]

    def _running(self, state: State) -> Iterator[Framed]:
        nodes = (self.node_of(state, process) for process in range(self.processes))
        return (node for node in nodes if node.state != "done")

    def beside_of(self, state: State) -> int:
        """The number of what concerns all processes."""
        return state[self.width - 1]

    def process_transitions(self, state: State, process: int) -> list[Transition]:
        """The enabled steps of one process; kept for all states in which it sees the same."""
        node = self.node(state, process)
        if node.state != "run" or not self._plain:
            return super().process_transitions(state, process)
        key = self._seen_by(state, process, node)
        moves = self._steps_known.get(key)
        if moves is None:
            moves = self._steps_known[key] = tuple(
                Move(each.step, _changes(state, each.state), each.failures, each.reached)
                for each in super().process_transitions(state, process)
            )
        return [each.taken(state) for each in moves]

    def _seen_by(self, state: State, process: int, node: Node) -> tuple[int, ...]:
        """All that the steps of a process at a node depend on."""
        looks = self._looks.get((process, node.number))
        if looks is None:
            cells = outline_of(node, self.first_cell, False).looks
            members = {process, *(m for action in node.actions for m in action.members)}
            places = [*cells, *members, *(self.first_outbox + each for each in members)]
            looks = self._looks[process, node.number] = tuple(places)
        aside, horizon = state[self.width - 1], self._horizon(state)
        return (process, node.number, aside, horizon, *[state[place] for place in looks])

    def _horizon(self, state: State) -> int:
        """The round below which things may be long past and forgotten."""
        nodes = state[: self.processes]
        found = self._horizons.get(nodes)
        if found is None:
            rounds = [node.round or 0 for node in self._running(state)]
            found = self._horizons[nodes] = min(rounds, default=0) - 1 - self.channel.lookback
        return found

    def told_apart(self, found: list[Transition]) -> list[Transition]:
        """Numbers for the steps of the fabric that are alike; those of a process that are alike are
        one step under several answers to a choice, and stay one."""
        own = [each for each in found if each.step.kind == "process"]
        return own + super().told_apart([each for each in found if each.step.kind != "process"])

    def nothing_in_flight_of_all(self, state: State) -> bool:
        """Whether every outbox is empty."""
        return not any(state[self.first_outbox : self.first_cache])

    def _act(
        self, state: State, process: int, node: Node, number: int, action: Action
    ) -> Iterator[Transition] | list[Transition]:
        """The steps of an action, one for each answer to a choice that is made by it."""
        at = self.width - 1
        self.beside.horizon = self._horizon(state)
        self.channel.answers = self.beside.answers(state[at])
        try:
            return list(super()._act(state, process, node, number, action))
        except Needed as choice:
            found: list[Transition] = []
            for value in choice.values:
                made = self.beside.changed(state[at], choice.name, value)
                decided = (*state[:at], made)
                steps = self._act(decided, process, node, number, action)
                if not steps and action.waits:  # so it has to wait: the answer is in the state
                    steps = [Transition(Step("process", process, (number,)), decided)]
                found += steps
            return found

    def _write_all(self, work: list[int], writes: Sequence[boxes.Write]) -> None:
        for cell, _, mode in writes:
            held = self.round_values.plain(work[self.first_cell + cell])
            if mode == boxes.ADD and isinstance(held, Round):
                raise OutsideRounds("a number is added to a round in memory by the fabric")
        super()._write_all(work, writes)


class Frame(NamedTuple):
    """How a state is moved: ``by`` how much, and below which round things are then forgotten;
    ``rounds`` are those of the processes before, None for one that has returned."""

    by: int
    horizon: int
    rounds: tuple[int | None, ...]

    @property
    def running(self) -> tuple[int, ...]:
        """The processes that have not returned."""
        return tuple(p for p, each in enumerate(self.rounds) if each is not None)


class Aged(dict[int, int]):
    """What becomes of each value when it is moved."""

    def __init__(self, values: RoundValues, by: int, horizon: int) -> None:
        super().__init__()
        self.round_values, self.by, self.horizon = values, by, horizon

    def __missing__(self, number: int) -> int:
        found = self.round_values.aged(self.round_values.moved(number, -self.by), self.horizon)
        self[number] = found
        return found


class Quotient:
    """The states of a system with all rounds moved together, and what is long past forgotten."""

    def __init__(self, system: RoundSystem) -> None:
        self.system, channel = system, system.channel
        self.askers = channel.askers
        self.modulus, self.lookback = channel.modulus, channel.lookback
        self._frames: dict[State, Frame] = {}
        self._boxes: dict[tuple[int, int, int], int] = {}
        self._cells: dict[tuple[int, int], Aged] = {}
        self._beside: dict[tuple[Any, ...], int] = {}
        self._looks: dict[int, tuple[str, Hashable, Scale, Scale]] = {}

    def frame(self, state: State) -> Frame:
        """How a state is moved; raises `NotCovered` where processes are too many rounds apart."""
        nodes = state[: self.system.processes]
        found = self._frames.get(nodes)
        if found is None:
            found = self._frames[nodes] = self._frame(nodes)
        return found

    def _frame(self, nodes: State) -> Frame:
        known = [self.system.node_of(nodes, process) for process in range(len(nodes))]
        rounds = tuple(None if each.state == "done" else each.round or 0 for each in known)
        running = [each for each in rounds if each is not None]
        if not running:
            last = max(each.round or 0 for each in known)
            return Frame(last - last % self.modulus, UNKNOWN, rounds)
        low = min(running)
        if max(running) - low > MOST_SKEW:
            raise NotCovered(
                f"processes come more than {MOST_SKEW} rounds apart: the skew is not bounded"
            )
        by = low - low % self.modulus
        return Frame(by, low - by - 1 - self.lookback, rounds)

    def least(self, state: State) -> tuple[State, int]:
        """The state of its class that comes first, and by how much its rounds were moved."""
        frame = self.frame(state)
        return self._moved(state, frame), frame.by

    def _moved(self, state: State, frame: Frame) -> State:
        system, (by, horizon, rounds) = self.system, frame
        if system.features.caches or system.features.views:
            raise NotCovered("write-back caches and early loads are not covered")
        nodes = state[: system.processes]
        if by:
            framed = zip(system.framed, nodes, strict=True)
            nodes = tuple([automaton.moved(number, -by) for automaton, number in framed])
        cells = map(
            self._aged(by, horizon).__getitem__, state[system.first_cell : system.first_outbox]
        )
        boxes_held = state[system.first_outbox : system.first_cache]
        held = [self._outbox(each, by, horizon) if each else 0 for each in boxes_held]
        last = system.width - 1
        relative = tuple([None if each is None else each - by for each in rounds])
        beside = self._aside(state[last], by, horizon, relative)
        return (*nodes, *cells, *held, *state[system.first_cache : last], beside)

    def _aged(self, by: int, horizon: int) -> Aged:
        found = self._cells.get((by, horizon))
        if found is None:
            found = self._cells[by, horizon] = Aged(self.system.round_values, by, horizon)
        return found

    def _outbox(self, number: int, by: int, horizon: int) -> int:
        key = (number, by, horizon)
        found = self._boxes.get(key)
        if found is None:
            elements = [
                each._replace(packet=self.packet(each.packet, by, horizon))
                for each in self.system.outboxes[number]
            ]
            outbox = boxes.canonical(elements)
            found = self._boxes[key] = self.system.outboxes.number(outbox)
        return found

    def packet(self, packet: boxes.Packet, by: int, horizon: int) -> boxes.Packet:
        """A put in flight, moved and aged."""
        aged = self._aged(by, horizon)
        writes = tuple((c, v if v < 0 else aged[v], m) for c, v, m in packet.writes)
        return packet._replace(writes=writes)

    # Choices, tokens, ghosts

    def names(self, number: int, frame: Frame) -> dict[int, int | None]:
        """What becomes of each choice, token and ghost when a state is moved."""
        held, (by, horizon, rounds) = dict(self.system.beside.pairs(number)), frame
        relative = tuple(None if each is None else each - by for each in rounds)
        return {name: self._kept(name, held, by, horizon, relative) for name in held}

    def _aside(self, number: int, by: int, horizon: int, rounds: tuple[int | None, ...]) -> int:
        key = (number, by, horizon, rounds)
        found = self._beside.get(key)
        if found is None:
            held = dict(self.system.beside.pairs(number))
            kept: dict[int, int] = {}
            for name, value in held.items():
                after = self._kept(name, held, by, horizon, rounds)
                if after is not None:
                    lost = self._look(after)[0] == "lost"
                    kept[after] = 0 if lost else self._aged(by, horizon)[value]
            interned = self.system.beside.interned
            found = self._beside[key] = interned.number(tuple(sorted(kept.items())))
        return found

    def _kept(
        self,
        name: int,
        held: Mapping[int, int],
        by: int,
        horizon: int,
        rounds: tuple[int | None, ...],
    ) -> int | None:
        """A key as it is kept in the moved state, or None if it is not needed any more."""
        values = self.system.round_values
        kind, about, oldest, latest = self._look(name)
        if kind == "choice":
            asked_again = any(
                rounds[process] is not None
                and (rounds[process] or 0) - 1 - self.lookback <= latest - by
                for process in self.askers.get(about, ())
            )
            return values.moved(name, -by) if asked_again else None
        if kind == "ghost" and oldest - by < horizon:
            return None
        if kind in ("sent", "consumed") and oldest - by < horizon:
            sent = held.get(values.number(("sent", about)))
            count = held.get(values.number(("consumed", about)))
            if sent is not None and count is not None and values.plain(count) == 1:
                return None
            return self._aged(by, horizon)[values.number(("lost", about))]
        return self._aged(by, horizon)[name]

    def _look(self, name: int) -> tuple[str, Hashable, Scale, Scale]:
        """What a key is: its kind, what it is about, its oldest and its latest round."""
        found = self._looks.get(name)
        if found is None:
            value = self.system.round_values.plain(name)
            assert isinstance(value, tuple)
            rounds = [r.when_ for r in rounds_in(value) if type(r) is Round]
            about = mapped(value[1], lambda r: "r") if value[0] == "choice" else value[1]
            oldest, latest = min(rounds, default=UNKNOWN), max(rounds, default=UNKNOWN)
            found = self._looks[name] = (value[0], about, oldest, latest)
        return found


# From a protocol
