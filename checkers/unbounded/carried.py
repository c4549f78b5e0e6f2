"""What becomes of each round in a step, as claims about the integers of a state.

Where a round behind a step comes from is taken from the operation itself, not from its value: a
landing moves the rounds of its put, a put and a statement have rounds of their process, all else
stays. Each part of a state is looked at on its own, so that what is found is kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from syncproof.checkers.unbounded.channel import NotCovered
from syncproof.checkers.unbounded.frames import moved_statement
from syncproof.checkers.unbounded.guards import Taken, Term, number, plus, variable
from syncproof.checkers.unbounded.readings import Reader
from syncproof.checkers.unbounded.search import Graph
from syncproof.checkers.unbounded.system import Frame
from syncproof.models.rounds import mapped
from syncproof.models.transitions import State, Transition


class Fate(NamedTuple):
    """What becomes of the rounds of a part: claims that the state behind the step has them, and
    terms of those that are forgotten, each with the processes that must have passed it."""

    claims: tuple[Term, ...]
    forgotten: tuple[tuple[Term, tuple[int, ...]], ...]


class LeadsOut(Exception):
    """A part of the state behind a step has other rounds than the step gave it."""


class Carrier:
    """Follows the rounds of each part of a state through a step."""

    def __init__(self, graph: Graph, reader: Reader) -> None:
        self.system, self.quotient, self.reader = graph.system, graph.quotient, reader
        self._known: dict[tuple[object, ...], Fate] = {}
        self._told: dict[Hashable, set[tuple[int, int, int]]] = {}

    def fates(
        self, state: State, step: Transition, target: State, taken: Sequence[Taken], about: Hashable
    ) -> Iterator[Fate]:
        """What becomes of the rounds of each part; ``target`` is the state behind, moved.

        Of cells that stay as they are, what was told before is not told again ``about`` the same.
        """
        system, after = self.system, step.state
        frame = self.quotient.frame(after)
        for process in range(system.processes):
            yield self._process(state, after, target, process, frame.by)
        cells = slice(system.first_cell, system.first_outbox)
        stayed = set(zip(state[cells], after[cells], target[cells], strict=True))
        told = self._told.setdefault((frame, about), set())
        for before, now, then in stayed - told:
            if before == now:
                fate = self._value(now, now, then, frame)
                if not fate.forgotten:
                    told.add((before, now, then))
                yield fate
        if state[cells] != after[cells]:
            yield from self._changed(state, step, target, frame)
        for place in range(system.first_outbox, system.first_cache):
            if state[place] or after[place] or target[place]:
                yield self._outbox(state, after, target, place, frame)
        yield self._beside(state, after, target, frame, taken)

    def _changed(
        self, state: State, step: Transition, target: State, frame: Frame
    ) -> Iterator[Fate]:
        """What becomes of the rounds that land in a cell."""
        for place in range(self.system.first_cell, self.system.first_outbox):
            now, then = step.state[place], target[place]
            if state[place] != now:
                if step.step.kind != "land":
                    raise NotCovered("the invariant does not cover a write at once")
                source = self._delivered(state, step, place - self.system.first_cell)
                key = ("cell", source, now, then, frame)
                yield self._known.get(key) or self._keep(key, self._value(*key[1:]))

    def _keep(self, key: tuple[object, ...], fate: Fate) -> Fate:
        self._known[key] = fate
        return fate

    # Processes and cells

    def _process(self, state: State, after: State, target: State, process: int, by: int) -> Fate:
        old, new, then = (
            self.system.node_of(each, process).round for each in (state, after, target)
        )
        key = ("process", old, new, then, by)
        fate = self._known.get(key)
        if fate is not None:
            return fate
        if (new is None) != (then is None):
            raise LeadsOut
        if new is None or then is None:
            return self._keep(key, Fate((), ()))
        term = number(new) if old is None else plus(variable(old), new - old)
        return self._keep(key, Fate((_later(term, then, by),), ()))

    def _value(self, source: int, now: int, then: int, frame: Frame) -> Fate:
        terms = [variable(each) for each in self.reader.value(source)[1]]
        kept, lost = self._split(now, terms, frame)
        return Fate(self._are(kept, then, frame.by), tuple((t, frame.running) for t in lost))

    def _split(
        self, value: int, terms: Sequence[Term], frame: Frame
    ) -> tuple[list[Term], list[Term]]:
        """The terms of the rounds of a value that are kept when it is moved, and of the others."""
        kept: list[Term] = []
        lost: list[Term] = []
        rounds = self.reader.value(value)[1]
        if len(rounds) != len(terms):
            raise LeadsOut
        for term, each in zip(terms, rounds, strict=True):
            (kept if each - frame.by >= frame.horizon else lost).append(term)
        return kept, lost

    def _are(self, terms: Sequence[Term], then: int, by: int) -> tuple[Term, ...]:
        rounds = self.reader.value(then)[1]
        if len(rounds) != len(terms):
            raise LeadsOut
        return tuple(_later(term, each, by) for term, each in zip(terms, rounds, strict=True))

    def _delivered(self, state: State, step: Transition, cell: int) -> int:
        """The value that lands in a cell, as the put in flight has it."""
        outbox = state[self.system.first_outbox + step.step.process]
        packets = [
            each.packet
            for each in self.system.deliveries(step.step.process, outbox)
            if each.step == step.step
        ]
        if len(packets) != 1:
            raise NotCovered("the invariant does not cover two puts that may land alike")
        values = [v for c, v, _ in packets[0].writes if c == cell]
        if len(values) != 1 or values[0] < 0:
            raise NotCovered("the invariant does not cover a put that lands twice in a cell")
        return values[0]

    # Puts in flight

    def _outbox(self, state: State, after: State, target: State, place: int, frame: Frame) -> Fate:
        before, now, then = state[place], after[place], target[place]
        own = None
        if before != now and place - self.system.first_outbox < self.system.processes:
            own = self.system.node_of(state, place - self.system.first_outbox).round
        key = ("outbox", before, now, then, own, frame)
        return self._known.get(key) or self._keep(key, self._puts(before, now, then, own, frame))

    def _puts(self, before: int, now: int, then: int, own: int | None, frame: Frame) -> Fate:
        """Puts that stay keep their rounds; those that are issued have the role's own."""
        stayed = [each.packet for _, each in self.reader.elements(before)]
        later = [each.packet for _, each in self.reader.elements(then)]
        claims: list[Term] = []
        lost: list[Term] = []
        for _, (packet, *_) in self.reader.elements(now):
            has_stayed = packet in stayed
            if has_stayed:
                stayed.remove(packet)
            moved = self.quotient.packet(packet, frame.by, frame.horizon)
            if moved not in later:
                raise LeadsOut
            later.remove(moved)
            for (_, value, _), (_, becomes, _) in zip(packet.writes, moved.writes, strict=True):
                rounds = self.reader.value(value)[1] if value >= 0 else ()
                terms = [variable(each) if has_stayed else _issued(each, own) for each in rounds]
                kept, forgotten = self._split(value, terms, frame) if rounds else ([], [])
                claims += self._are(kept, becomes, frame.by) if rounds else ()
                lost += forgotten
        if later:
            raise LeadsOut
        return Fate(tuple(claims), tuple((each, frame.running) for each in lost))

    # Choices and tokens

    def _beside(
        self, state: State, after: State, target: State, frame: Frame, taken: Sequence[Taken]
    ) -> Fate:
        before, now, then = (self.system.beside_of(each) for each in (state, after, target))
        made: tuple[tuple[int, int | None], ...] = ()
        if before != now:
            known = self.system.beside.answers(before)
            names = [name for name, _ in self.reader.beside(now) if name not in known]
            # What is said behind the very first step has rounds that are what they are.
            rounds = [self.system.node_of(state, self._who(n, taken)).round for n in names]
            made = tuple(zip(names, rounds, strict=True))
        key = ("beside", now, then, made, frame)
        return self._known.get(key) or self._keep(key, self._names(now, then, dict(made), frame))

    def _names(self, now: int, then: int, made: dict[int, int | None], frame: Frame) -> Fate:
        """Names that were there keep their rounds; those that are new have the role's own."""
        becomes = self.quotient.names(now, frame)
        later = {name for name, _ in self.reader.beside(then)}
        claims: list[Term] = []
        lost: list[tuple[Term, tuple[int, ...]]] = []
        for name, value in self.reader.beside(now):
            rounds, after = self.reader.value(name)[1], becomes[name]
            if self.reader.value(value)[1]:
                raise NotCovered("the invariant does not cover ghosts that hold rounds")
            terms = [_issued(r, made[name]) if name in made else variable(r) for r in rounds]
            if after is None:
                lost += [(term, self._must_have_passed(name, frame)) for term in terms]
                continue
            if len(self.reader.value(after)[1]) != len(rounds):
                raise NotCovered("the invariant does not cover tokens that are lost")
            if after not in later:
                raise LeadsOut
            later.remove(after)
            claims += self._are(terms, after, frame.by)
        if later:
            raise LeadsOut
        return Fate(tuple(claims), tuple(lost))

    def _must_have_passed(self, name: int, frame: Frame) -> tuple[int, ...]:
        """The processes that must be further than a name that is forgotten."""
        key = self.reader.values.plain(name)
        assert isinstance(key, tuple)
        if key[0] != "choice":
            return frame.running
        askers = self.quotient.askers.get(mapped(key[1], lambda r: "r"), set())
        return tuple(p for p in frame.running if p in askers)

    def _who(self, name: int, taken: Sequence[Taken]) -> int:
        """The process that made a choice or said something in a step."""
        values = self.system.round_values
        about = values.plain(name)
        assert isinstance(about, tuple)
        if about[0] == "ghost":
            raise NotCovered("the invariant does not cover ghosts that change")
        for process, edge, node, _, _ in taken:
            if any(values.moved(own, node.shift) == name for own, _ in edge.used):
                return process
            for said in edge.edge.statements if edge.edge else ():
                key = getattr(moved_statement(said, node.shift), "key", None)
                if about[0] != "choice" and values.number((about[0], key)) == name:
                    return process
        raise NotCovered("the invariant does not know who said something")


def _issued(found: int, own: int | None) -> Term:
    """A round that a process gives away: so much from its own, or what it is."""
    return number(found) if own is None else plus(variable(own), found - own)


def _later(term: Term, then: int, by: int) -> Term:
    """That a round is the one of the moved state, later by as much as all of them."""
    return f"(= {term} {plus(plus('later', by), then)})"
