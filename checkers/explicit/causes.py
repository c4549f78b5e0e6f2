"""What each step of a run had to come after, and no more than that.

A run is one order of many. A step must follow the one before it in its program, the landing that
it reads, what the fabric may not let it overtake, and what a quiet waits for; that it also came
after others is chance. `causal_past` of `counterexample` keeps more: what a replay needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from syncproof.models.lowering import Action, ActionKind
from syncproof.models.narrate import delivered, narrate, origins
from syncproof.models.outbox import Element, Packet, must_precede, reads_first
from syncproof.models.system import System
from syncproof.models.transitions import State, Transition, differences
from syncproof.models.verdict import TraceStep

Taken = Sequence[tuple[State, Transition]]
Origin = tuple[int, int]
"""A step, and which of the packets that it issues."""


def told_with_causes(system: System, taken: Taken) -> tuple[TraceStep, ...]:
    """A run in words, with what each step depends on."""
    told = narrate(system, taken)
    causes = without_implied(_Causes(system, taken, told).all())
    return tuple(replace(step, after=after) for step, after in zip(told, causes, strict=True))


def without_implied(before: Sequence[Iterable[int]]) -> list[tuple[int, ...]]:
    """Dependencies on earlier steps, without those that follow from the others."""
    past: list[int] = []
    found = []
    for needs in before:
        mine, kept = 0, []
        for need in sorted(needs, reverse=True):
            if not mine >> need & 1:
                kept.append(need)
                mine |= past[need] | 1 << need
        past.append(mine)
        found.append(tuple(reversed(kept)))
    return found


class Issues:
    """All that one process issues, in order, and what of it must land or be read before what."""

    def __init__(self) -> None:
        self._packets: list[Packet] = []
        self._landings: list[int] = []
        self._reads: list[int] = []
        self._place: dict[Origin, int] = {}

    def add(self, number: int, action: Action) -> None:
        """Issue the packets of an action; ``number`` is its step."""
        start = len(self._packets)
        for index, (packet, profile) in enumerate(
            zip(action.packets, action.profiles, strict=True)
        ):
            landings = reads = 0
            for place, early in enumerate(self._packets):
                if must_precede(early, packet, profile):
                    landings |= self._landings[place] | 1 << place
                if _is_copy(early) and _is_copy(packet) and reads_first(early, packet, profile):
                    reads |= self._reads[place] | 1 << place
            self._place[number, index] = len(self._packets)
            self._packets.append(packet)
            self._landings.append(landings)
            self._reads.append(reads)
        for place in range(start, len(self._packets)):
            settled = self._packets[place]._replace(own_put=False, place=0, is_signal=False)
            self._packets[place] = settled

    def lands_first(self, early: Origin, late: Origin) -> bool:
        """Whether a packet lands before another does (a get: before its source is read)."""
        return self._is_among(self._landings, early, late)

    def is_read_first(self, early: Origin, late: Origin) -> bool:
        """Whether the source of a copy is read before that of another."""
        return self._is_among(self._reads, early, late)

    def _is_among(self, past: Sequence[int], early: Origin, late: Origin) -> bool:
        if early not in self._place or late not in self._place:
            return False
        return bool(past[self._place[late]] >> self._place[early] & 1)


def _is_copy(packet: Packet) -> bool:
    return bool(packet.reads) and not packet.is_get


class _Causes:
    def __init__(self, system: System, taken: Taken, told: Sequence[TraceStep]) -> None:
        self.system, self.taken, self.told = system, taken, told
        self.last_of: dict[int, int] = {}
        self.write_of: dict[int, int] = {}
        self.landings: dict[int, list[int]] = {}
        self.issues = [Issues() for _ in range(system.processes)]
        self.origins = origins(system, taken)
        self.sources: dict[Origin, int] = {}
        self.past: list[int] = []
        """For each step all that comes before it, a bit each."""

    def all(self) -> list[set[int]]:
        """For each step those that it depends on."""
        of_kind = {"process": self._of_process, "land": self._of_landing}
        found = []
        for number, (state, transition) in enumerate(self.taken):
            found.append(of_kind.get(transition.step.kind, self._of_fabric)(number))
            self.past.append(self._behind(found[-1]))
            self._note(number, state, transition)
        return found

    def _behind(self, steps: Iterable[int]) -> int:
        """The steps and all that comes before them."""
        found = 0
        for step in steps:
            found |= self.past[step] | 1 << step
        return found

    def _note(self, number: int, state: State, transition: Transition) -> None:
        step = transition.step
        self.write_of.update(dict.fromkeys(self._changed(number, state, transition), number))
        if step.kind == "land":
            self.write_of.update(dict.fromkeys(step.what, number))
            self.landings.setdefault(step.process, []).append(number)
        elif step.kind == "process":
            action = self._action(number)
            self.last_of.update(dict.fromkeys(action.members or (step.process,), number))
            self.issues[step.process].add(number, action)

    def _changed(self, number: int, state: State, transition: Transition) -> Sequence[int]:
        """The cells whose value changes, what stands behind them among them."""
        first, end = self.system.first_cell, self.system.first_outbox
        if end == first + len(self.system.cells):
            return self.told[number].writes
        changed = differences(state[first:end], transition.state[first:end])
        return [cell for cell, _ in changed]

    def _action(self, number: int) -> Action:
        state, transition = self.taken[number]
        step = transition.step
        return self.system.node(state, step.process).actions[step.what[0]]

    def _of_process(self, number: int) -> set[int]:
        process = self.taken[number][1].step.process
        action = self._action(number)
        members = action.members or (process,)
        needs = {self.last_of[each] for each in members if each in self.last_of}
        needs |= {self.write_of[cell] for cell in action.cells if cell in self.write_of}
        if action.kind is ActionKind.QUIET or action.ordered:
            known = self._behind(needs)
            landings = [n for n in self.landings.get(process, ()) if not known >> n & 1]
            done = [(each, self._delivered(each)) for each in landings]
            done += [
                (each, self._packet(origin))
                for origin, each in self.sources.items()
                if self.taken[each][1].step.process == process
            ]
            needs |= {each for each, packet in done if self._waits(number, packet)}
        return needs

    def _waits(self, number: int, packet: Packet) -> bool:
        """Whether the step could not be taken with ``packet`` in flight."""
        state, transition = self.taken[number]
        work = list(state)
        alone = self.system.outboxes.number((Element(packet, (), ()),))
        work[self.system.first_outbox + transition.step.process] = alone
        held = self.system.step_transitions(tuple(work), transition.step)
        return all(each.step != transition.step for each in held)

    def _delivered(self, landing: int) -> Packet:
        state, transition = self.taken[landing]
        return delivered(self.system, state, transition.step)

    def _of_landing(self, number: int) -> set[int]:
        origin = self.origins.get(number)
        if origin is None:
            return set()
        needs = {origin[0]}
        if origin in self.sources:
            needs.add(self.sources[origin])
        known = self._behind(needs)
        landings = self.landings.get(self.taken[number][1].step.process, [])
        earlier = [each for each in landings if not known >> each & 1]
        return needs | {each for each in earlier if self._is_held_back(origin, by=each)}

    def _is_held_back(self, origin: Origin, by: int) -> bool:
        """Whether what was issued so may not overtake the landing ``by``."""
        issues = self.issues[self.taken[by][1].step.process]
        return by in self.origins and issues.lands_first(self.origins[by], origin)

    def _of_fabric(self, number: int) -> set[int]:
        """A source is read after its copy is issued; what a cache does, after its core's step."""
        step = self.taken[number][1].step
        needs = {self.write_of[cell] for cell in step.what if cell in self.write_of}
        if step.kind == "read source":
            return needs | self._of_source(number)
        return needs | ({self.last_of[step.process]} if step.process in self.last_of else set())

    def _of_source(self, number: int) -> set[int]:
        origin = self._issue_of_copy(number)
        if origin is None:
            return set()
        process = self.taken[number][1].step.process
        issues = self.issues[process]
        needs = {origin[0]}
        needs |= {n for each, n in self.sources.items() if issues.is_read_first(each, origin)}
        if self._packet(origin).is_get:
            landings = self.landings.get(process, [])
            needs |= {each for each in landings if self._is_held_back(origin, by=each)}
        self.sources[origin] = number
        return needs

    def _issue_of_copy(self, number: int) -> Origin | None:
        """The first copy of this source that has not been read yet."""
        step = self.taken[number][1].step
        for earlier in range(number):
            other = self.taken[earlier][1].step
            if (other.kind, other.process) != ("process", step.process):
                continue
            for index, packet in enumerate(self._action(earlier).packets):
                if packet.reads == step.what and (earlier, index) not in self.sources:
                    return earlier, index
        return None

    def _packet(self, origin: Origin) -> Packet:
        return self._action(origin[0]).packets[origin[1]]
