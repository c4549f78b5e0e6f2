"""Faults to plant in the reduction: each drops or weakens a condition that it rests on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from syncproof.checkers.explicit import conflicts, contents, persistent
from syncproof.checkers.explicit.contents import GiveUp
from syncproof.checkers.explicit.outlook import Behind, Fenced, Outlook, PacketAgent
from syncproof.checkers.explicit.persistent import PersistentSets
from syncproof.checkers.explicit.standing import Standing
from syncproof.models.lowering import ActionKind

Plant = Callable[[pytest.MonkeyPatch], None]


def values_decide_for_plain_reads(patch: pytest.MonkeyPatch) -> None:
    """A plain read that goes the same way on both values is independent of the write (C4)."""
    patch.setattr(conflicts, "_plain_reader", lambda *_: None)


def statements_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """Two edges to one node are alike whatever they say (C5 a)."""
    patch.setattr(conflicts, "alike", lambda a, b: b is not None and a.target is b.target)


def targets_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """Two edges are alike if both pass."""
    patch.setattr(conflicts, "alike", lambda a, b: b is not None)


def a_blocked_agent_has_no_steps(patch: pytest.MonkeyPatch) -> None:
    """What is disabled now joins the set by itself, without what must happen before it (C6)."""

    def closed(sets: Any, state: Any, seed: Any, by_agent: Any, bound: int) -> Any:
        agents = {seed}
        while True:
            members = [each for agent in agents for each in by_agent.get(agent, ())]
            run = Outlook(sets.system, sets._atoms, state, agents, sets.asked)
            try:
                run.run()
                found = sets._first_conflict(run, agents & set(by_agent), by_agent)
            except GiveUp:
                return None
            if found is None:
                return members
            if found in agents:
                return None
            agents.add(found)

    patch.setattr(PersistentSets, "_closed", closed)


def stores_at_once_are_free(patch: pytest.MonkeyPatch) -> None:
    """An immediate store is a free step like a put (C6)."""
    patch.setattr(persistent, "FREE", (*persistent.FREE, ActionKind.WRITE))


def reads_are_free(patch: pytest.MonkeyPatch) -> None:
    """A wait that passes is a free step."""
    patch.setattr(persistent, "FREE", (*persistent.FREE, ActionKind.READ))


def updates_are_free(patch: pytest.MonkeyPatch) -> None:
    """An atomic is a free step (C6)."""
    patch.setattr(persistent, "FREE", (*persistent.FREE, ActionKind.UPDATE))


def puts_never_meet(patch: pytest.MonkeyPatch) -> None:
    """Two landings in one cell are independent."""

    def writer(run: Outlook, cells: Any, behind: int = -1) -> Any:
        found = [w for cell in cells for w in run.writers.get(cell, ())]
        return next((each.agent for each in found if each.packet is None), None)

    patch.setattr(conflicts, "_writer", writer)


def writes_do_not_disturb_reads(patch: pytest.MonkeyPatch) -> None:
    """A member that reads is independent of later writes."""
    original = conflicts._with_memory

    def with_memory(run: Any, state: Any, process: int, node: Any, number: int, edge: Any) -> Any:
        if node.actions[number].kind is ActionKind.READ:
            return None
        return original(run, state, process, node, number, edge)

    patch.setattr(conflicts, "_with_memory", with_memory)


def waits_do_not_look(patch: pytest.MonkeyPatch) -> None:
    """A wait from outside is independent of every landing."""
    patch.setattr(conflicts, "_waiter", lambda *_: None)


def ghosts_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """Steps that touch one ghost are independent (C5 a)."""
    patch.setattr(conflicts, "ghosts_of", lambda _: set())


def a_put_with_a_ghost_is_free(patch: pytest.MonkeyPatch) -> None:
    """A put that carries a ghost update is a free step (C6)."""
    patch.setattr(persistent, "ghosts_of", lambda _: set())


def every_quiet_is_blocked(patch: pytest.MonkeyPatch) -> None:
    """A frozen put blocks the quiet of any process, of a ``local`` kind too."""

    def is_held(run: Any, process: int, action: Any) -> bool:
        return bool(run._held)

    patch.setattr(Outlook, "_is_held", is_held)


def every_fence_is_for_all(patch: pytest.MonkeyPatch) -> None:
    """A fence towards one target holds back what goes to any."""

    def fence(run: Any, process: int, action: Any) -> Fenced:
        return Fenced.FROM_ALL if run._held.get(process) else Fenced.NOT

    patch.setattr(Outlook, "_fence", fence)


def later_puts_wait(patch: pytest.MonkeyPatch) -> None:
    """What is issued later by the same process lands later, on any fabric."""
    original = Outlook._issue

    def issue(run: Any, place: Any, number: int, action: Any, fenced: Any) -> None:
        if not run._held.get(place.process):
            original(run, place, number, action, fenced)

    patch.setattr(Outlook, "_issue", issue)


def copies_do_not_read(patch: pytest.MonkeyPatch) -> None:
    """The fabric's read of the source of a copy conflicts with nothing."""
    original = Outlook._lands

    def lands(run: Any, packet: Any, agent: Any, instance: Any) -> None:
        before = dict(run.plain_readers)
        original(run, packet, agent, instance)
        run.plain_readers = before

    patch.setattr(Outlook, "_lands", lands)


def a_held_copy_does_not_read(patch: pytest.MonkeyPatch) -> None:
    """A copy that must not land yet does not read its source yet (it may)."""

    def pending(run: Any, owner: int) -> None:
        held: set[int] = set()
        for position, each in enumerate(run.system.outbox(run.state, owner)):
            agent = PacketAgent(owner, position)
            if agent in run.frozen or held.intersection((*each.after, *each.read_after)):
                held.add(position)
            elif not each.packet.is_fence:
                run._lands(each.packet, agent, agent)

    patch.setattr(Outlook, "_pending", pending)


def puts_in_flight_stay(patch: pytest.MonkeyPatch) -> None:
    """What is in flight already does not land."""
    patch.setattr(Outlook, "_pending", lambda *_: None)


def returns_are_not_seen(patch: pytest.MonkeyPatch) -> None:
    """A return is independent of the landing of the process's puts (it says what is in flight)."""
    original = Outlook.run

    def run(self: Any) -> None:
        original(self)
        self.returned.clear()

    patch.setattr(Outlook, "run", run)


def a_quiet_long_ago_suffices(patch: pytest.MonkeyPatch) -> None:
    """A put behind the last quiet does not matter to a return."""
    original = Behind._replace
    patch.setattr(
        Behind, "_replace", lambda self, **keys: original(self, **{**keys, "quiet": True})
    )


def syncs_never_pass(patch: pytest.MonkeyPatch) -> None:
    """A process that comes to a sync stays there."""
    patch.setattr(Outlook, "_meet", lambda *_: None)


def syncs_pass_once(patch: pytest.MonkeyPatch) -> None:
    """A process passes one sync and stays at the next."""
    original = Outlook._meet

    def meet(run: Any, place: Any, number: int, action: Any) -> None:
        if not place.passed:
            original(run, place, number, action)

    patch.setattr(Outlook, "_meet", meet)


def memory_stands_still(patch: pytest.MonkeyPatch) -> None:
    """Waits see only what memory holds now."""
    patch.setattr(contents.AbstractMemory, "store", lambda *_: None)


def other_atoms_stand_still(patch: pytest.MonkeyPatch) -> None:
    """A read of several atoms takes the other atoms as they are now (C5 c)."""
    original = contents.AbstractMemory._readable

    def readable(memory: Any, atom: int, state: Any, without: Any) -> Any:
        found = list(original(memory, atom, state, without))
        return found if atom % 2 else found[:1]

    patch.setattr(contents.AbstractMemory, "_readable", readable)


def adds_come_once_in_all(patch: pytest.MonkeyPatch) -> None:
    """Two equal adds count as one."""
    original = contents.AbstractMemory._count
    patch.setattr(
        contents.AbstractMemory, "_count", lambda m, atom, effect, _: original(m, atom, effect, 0)
    )


def what_is_counted_may_repeat(patch: pytest.MonkeyPatch) -> None:
    """An add in a loop counts as one that is passed once."""
    patch.setattr(Outlook, "_may_come_back", lambda *_: False)


def a_read_of_old_does_not_see_its_write(patch: pytest.MonkeyPatch) -> None:
    """The write of an atomic that has begun counts as that of the next time round its loop."""
    patch.setattr(Outlook, "_read_at", lambda _, place, base: place._replace(node=base))


def split_agents_join(patch: pytest.MonkeyPatch) -> None:
    """A process with some steps enabled and others not yet is taken as if these did not exist.

    Harmless as things are: only a get of several atoms is split, where a put of its own process to
    one of them is in flight. What the missing read could conflict with writes that atom, and so
    conflicts with this put as well, which is then in the set, and the read cannot come before it.
    """
    patch.setattr(PersistentSets, "_is_split", lambda *_: False)


def outlooks_are_not_extended(patch: pytest.MonkeyPatch) -> None:
    """An outlook of an earlier state is used although its process has issued since."""
    patch.setattr(Outlook, "follow", lambda *_: None)


def gets_are_behind(patch: pytest.MonkeyPatch) -> None:
    """A get that was issued before a put of the same process counts as behind it."""

    def writer(run: Outlook, cells: Any, behind: int = -1) -> Any:
        found = [w for cell in cells for w in run.writers.get(cell, ())]
        apart = (w.agent for w in found if w.packet is None or w.agent[0] != behind)
        return next(apart, None)

    patch.setattr(conflicts, "_writer", writer)


def order_is_taken_for_granted(patch: pytest.MonkeyPatch) -> None:
    """Puts of one process to one cell count as ordered on every fabric."""
    original = Standing.__init__

    def begin(standing: Any, *arguments: Any) -> None:
        original(standing, *arguments)
        standing._in_order = True

    patch.setattr(Standing, "__init__", begin)


def any_wait_stands_still(patch: pytest.MonkeyPatch) -> None:
    """A process that waits for several cells stands still until the put to one of them lands."""
    original = Standing._blocked

    def blocked(sets: Any, state: Any) -> Any:
        return {
            cell: [(process, frozenset((cell,)))]
            for waiting in original(sets, state).values()
            for process, cells in waiting
            for cell in cells
        }

    patch.setattr(Standing, "_blocked", blocked)


PLANTS: tuple[Plant, ...] = (
    values_decide_for_plain_reads,
    statements_do_not_count,
    targets_do_not_count,
    a_blocked_agent_has_no_steps,
    stores_at_once_are_free,
    reads_are_free,
    updates_are_free,
    puts_never_meet,
    writes_do_not_disturb_reads,
    waits_do_not_look,
    ghosts_do_not_count,
    a_put_with_a_ghost_is_free,
    every_quiet_is_blocked,
    every_fence_is_for_all,
    later_puts_wait,
    copies_do_not_read,
    a_held_copy_does_not_read,
    puts_in_flight_stay,
    returns_are_not_seen,
    a_quiet_long_ago_suffices,
    syncs_never_pass,
    syncs_pass_once,
    memory_stands_still,
    other_atoms_stand_still,
    adds_come_once_in_all,
    what_is_counted_may_repeat,
    a_read_of_old_does_not_see_its_write,
    outlooks_are_not_extended,
    gets_are_behind,
    order_is_taken_for_granted,
    any_wait_stands_still,
)

HARMLESS: tuple[Plant, ...] = (split_agents_join,)
