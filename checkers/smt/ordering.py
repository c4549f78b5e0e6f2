"""The fabric's order: what a landing, a quiet, a get and an atomic wait for.

The pairs are those of `must_precede`; fences stand between as marks that are released when all that
they cover has landed.
"""

from __future__ import annotations

from collections.abc import Iterator

from syncproof.checkers.smt.control import Control
from syncproof.checkers.smt.events import Landing, Mark
from syncproof.checkers.smt.terms import Term, all_of, implies, precedes
from syncproof.checkers.smt.unrolling import Point
from syncproof.models.lowering import Action, ActionKind
from syncproof.models.outbox import SET, Packet, must_precede, reads_first


def add_fabric_order(encoding: Control) -> None:
    """Require all of it."""
    by_process: dict[int, list[Landing]] = {}
    for landing in encoding.landings:
        by_process.setdefault(landing.point.process, []).append(landing)
    marks: dict[int, list[Mark]] = {}
    for mark in encoding.marks:
        marks.setdefault(mark.point.process, []).append(mark)
    for process, landings in by_process.items():
        own = marks.get(process, [])
        for mark in own:
            _hold_mark(encoding, mark, landings, own)
        for late in landings:
            _hold_landing(encoding, late, landings, own)
    for point in encoding.unrolling.all_points():
        landings, own = by_process.get(point.process, []), marks.get(point.process, [])
        for number, action in enumerate(point.node.actions):
            if action.kind is ActionKind.QUIET:
                _quiet(encoding, point, number, landings, own)
            elif action.ordered:
                _hold_back(encoding, point, number, landings, own)


def _hold_mark(encoding: Control, mark: Mark, landings: list[Landing], marks: list[Mark]) -> None:
    for early in landings:
        if mark.point.follows(early.point) and must_precede(
            early.settled, mark.packet, mark.profile
        ):
            both = all_of((mark.released, early.issued))
            held = all_of((early.landed, precedes(early.clock, mark.clock)))
            encoding.add(implies(both, held), ("fence", early, mark))
    for before in marks:
        earlier = mark.point.follows(before.point) or (
            mark.point is before.point and marks.index(before) < marks.index(mark)
        )
        if earlier and must_precede(before.packet, mark.packet, mark.profile):
            both = all_of((mark.released, before.issued))
            held = all_of((before.released, precedes(before.clock, mark.clock)))
            encoding.add(implies(both, held))


def _hold_landing(
    encoding: Control, late: Landing, landings: list[Landing], marks: list[Mark]
) -> None:
    """What must land before ``late`` does; before a get reads its source."""
    happens, clock = late.landed, late.clock
    if late.packet.is_get:
        happens, clock = late.fetched, late.fetch_clock
    for early in landings:
        if _precedes(early, late):
            held = all_of((early.landed, precedes(early.clock, clock)))
            both = all_of((happens, early.issued))
            encoding.add(implies(both, held), ("order", early, late))
        if _fetched_first(early, late):
            held = all_of((early.fetched, precedes(early.fetch_clock, late.fetch_clock)))
            encoding.add(implies(all_of((late.fetched, early.issued)), held))
    for mark in marks:
        if _fenced(mark, late):
            held = all_of((mark.released, precedes(mark.clock, clock)))
            encoding.add(implies(all_of((happens, mark.issued)), held), ("fenced", mark, late))


def must_wait_for(
    encoding: Control, late: Landing, *, to_fetch: bool = False
) -> Iterator[tuple[Term, Term]]:
    """What holds a landing back, or a copy's source: that it is issued, and that it is over."""
    for early in encoding.landings:
        if early.point.process != late.point.process:
            continue
        if to_fetch and _fetched_first(early, late):
            yield early.issued, early.fetched
        if not to_fetch and _precedes(early, late):
            yield early.issued, early.landed
    for mark in encoding.marks:
        if not to_fetch and mark.point.process == late.point.process and _fenced(mark, late):
            yield mark.issued, mark.released


def _precedes(early: Landing, late: Landing) -> bool:
    packet = _as_seen(early, late)
    return packet is not None and must_precede(packet, late.packet, late.profile)


def _fetched_first(early: Landing, late: Landing) -> bool:
    packet = _as_seen(early, late)
    if packet is None or not early.packet.reads or not late.packet.reads:
        return False
    gets = early.packet.is_get or late.packet.is_get
    return not gets and reads_first(packet, late.packet, late.profile)


def _fenced(mark: Mark, late: Landing) -> bool:
    return late.point.follows(mark.point) and must_precede(mark.packet, late.packet, late.profile)


def _as_seen(early: Landing, late: Landing) -> Packet | None:
    """The earlier packet as it is when the later one is issued; None if it is not earlier."""
    if late.point.follows(early.point):
        return early.settled
    if late is not early and late.was_with(early):
        packets = late.point.node.actions[late.action].packets
        places = {id(packet): i for i, packet in enumerate(packets)}
        if places[id(early.packet)] < places[id(late.packet)]:
            return early.packet
    return None


def _quiet(
    encoding: Control, point: Point, number: int, landings: list[Landing], marks: list[Mark]
) -> None:
    target = point.node.actions[number].target
    is_local = encoding.system.automata[point.process].quiet_is_local
    step, clock = encoding.step[point, number], encoding.clock[point]
    for early in landings:
        if not point.follows(early.point):
            continue
        both = all_of((step, early.issued))
        if is_local and not early.packet.is_get:
            if early.packet.reads:
                held = all_of((early.fetched, precedes(early.fetch_clock, clock)))
                encoding.add(implies(both, held))
        elif is_local or target < 0 or early.packet.target == target:
            held = all_of((early.landed, precedes(early.clock, clock)))
            encoding.add(implies(both, held), ("quiet", early, point))
    for mark in marks:
        covered = target >= 0 and mark.packet.target in (target, -1) and not is_local
        if covered and point.follows(mark.point):
            held = all_of((mark.released, precedes(mark.clock, clock)))
            encoding.add(implies(all_of((step, mark.issued)), held))


def _hold_back(
    encoding: Control, point: Point, number: int, landings: list[Landing], marks: list[Mark]
) -> None:
    """A get or an atomic comes behind the earlier puts that must not be overtaken."""
    action = point.node.actions[number]
    step, clock = encoding.step[point, number], encoding.clock[point]
    probe = probe_of(action)
    profile = encoding.system.automata[point.process].profile_to(action.target)
    for early in landings:
        if point.follows(early.point) and must_precede(early.settled, probe, profile):
            held = all_of((early.landed, precedes(early.clock, clock)))
            encoding.add(implies(all_of((step, early.issued)), held), ("behind", early, point))
    for mark in marks:
        if point.follows(mark.point) and must_precede(mark.packet, probe, profile):
            held = all_of((mark.released, precedes(mark.clock, clock)))
            encoding.add(implies(all_of((step, mark.issued)), held))


def probe_of(action: Action) -> Packet:
    """A get or an atomic as a packet, to ask what it must come behind."""
    is_get = action.kind is ActionKind.READ
    return Packet(
        tuple((cell, -1, SET) for cell in action.cells),
        action.cells if is_get else (),
        action.target,
        action.queue,
        False,
        0,
        False,
        is_get,
        False,
    )
