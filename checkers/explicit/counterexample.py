"""From a finding to a trace: the run made minimal, cut to its causal past, and explained."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache

from syncproof.checkers.explicit.causes import told_with_causes
from syncproof.checkers.explicit.footprints import Ends
from syncproof.checkers.explicit.persistent import PersistentSets
from syncproof.checkers.explicit.search import Exploration, Finding, judge_end, racing
from syncproof.checkers.explicit.shortening import IsWrong, Shortening
from syncproof.checkers.explicit.stuck import as_run, is_stuck, stays_waiting, straight_on
from syncproof.checkers.explicit.waiting import core_of_hang, wait_for_table
from syncproof.models.core import Unresolved
from syncproof.models.errors import UserError
from syncproof.models.instance import Choices
from syncproof.models.lowering import ActionKind
from syncproof.models.narrate import (
    NotEnabled,
    describe,
    follow,
    origins,
    puts_of,
    touched,
)
from syncproof.models.nodes import TooLong
from syncproof.models.system import System
from syncproof.models.transitions import (
    Failure,
    Move,
    Overfull,
    State,
    Step,
    Transition,
    differences,
)
from syncproof.models.verdict import Question, Trace, TraceStep

Run = list[tuple[State, Transition]]
Taken = Sequence[tuple[State, Transition]]
Hangs = Callable[[System, State, frozenset[str]], bool]
"""Whether a system hangs in a state, where the properties named are no longer broken otherwise."""
MOST_STATES_TO_JUDGE_A_HANG = 20_000


def build_trace(
    question: Question,
    finding: Finding,
    exploration: Exploration,
    choices: Choices,
    *,
    fewest: bool,
    to_the_end: bool = False,
) -> Trace:
    """The trace of a finding.

    With ``fewest`` the run is the search's own, which has the fewest steps, and only what is shown
    is cut; otherwise every step that can be left out is left out, by replay. Whether a run is
    bound to hang takes a search; ``to_the_end`` is for systems that are too large for one: a run
    into a hang goes on to where nothing can happen, and only what leads to the hang is shown.
    """
    system = exploration.system
    asked = frozenset(question.properties)
    full = exploration.path(finding.state) + ([finding.last.step] if finding.last else [])
    run = follow(system, full)
    knot = core_of_hang(system, finding.state, to_the_end) if _is_hang(finding) else {}
    waiting = tuple(knot) if to_the_end else ()

    @cache
    def ahead(state: State) -> list[Move] | None:
        return straight_on(system, state, asked, waiting)

    def hangs(system: System, state: State, asked: frozenset[str]) -> bool:
        if to_the_end:
            stays = stays_waiting(system, state, waiting)  # soon told, and surely so if it hangs
            return stays and ahead(state) is not None
        return is_hung(system, state, asked)

    def still_waits(system: System, state: State, asked: frozenset[str]) -> bool:
        return stays_waiting(system, state, waiting)

    is_wrong = still_wrong(system, finding, asked, hangs, knot)
    if fewest:
        taken = run
        past = causal_past(system, run, finding)
        is_enough = _enough(system, [full[i] for i in past], is_wrong) is not None
        shown = past if is_enough else range(len(run))
    else:
        seems_wrong = still_wrong(system, finding, asked, still_waits, knot) if waiting else None
        taken = shortened(system, run, finding, is_wrong, waiting, seems_wrong)
        shown = range(len(taken))
    if to_the_end and _is_hang(finding):
        end = _end_of(system, taken)
        taken += as_run(end, ahead(end) or ())
        run = taken
    told = told_with_causes(system, taken)
    edge, unordered = missing_edge(system, taken, told, finding)
    return Trace(
        question,
        finding.failure.property,
        finding.failure.message,
        tuple(sorted((spoken(name), str(value)) for name, value in choices.items())),
        tuple(str(each.process) for each in system.automata),
        told,
        tuple(shown),
        fewest,
        edge,
        wait_for_table(system, run, finding),
        unordered=unordered,
        memory=touched(system, told, awaited(system, taken, finding)),
    )


def _is_hang(finding: Finding) -> bool:
    return finding.failure.property == "deadlock-free"


def awaited(system: System, taken: Taken, finding: Finding) -> set[int]:
    """The cells on which processes wait when a run has ended in a hang."""
    if not _is_hang(finding):
        return set()
    end = taken[-1][1].state if taken else system.initial_transition().state
    nodes = [system.node(end, process) for process in range(system.processes)]
    actions = [each for node in nodes if node.state == "run" for each in node.actions]
    cells = {cell for each in actions if each.waits for cell in each.cells}
    return {cell for cell in cells if cell < len(system.cells)}


def spoken(name: object) -> str:
    """A choice's name in words."""
    if isinstance(name, tuple) and name[:1] == ("tokens",) and len(name) == 4:
        _, source, expert, round = name
        return f"tokens from rank {source} to expert {expert} in round {round}"
    return " ".join(map(str, name)) if isinstance(name, tuple) else str(name)


# Which runs still show the failure


def still_wrong(
    system: System,
    finding: Finding,
    asked: frozenset[str],
    hangs: Hangs,
    knot: Mapping[int, int],
) -> IsWrong:
    """What tells of the end of a run whether it breaks the property of ``finding`` the same way.

    A run into a hang must also bring a knot of blocked processes to where they wait for each
    other: a system may be bound to hang from its first state on.
    """

    def is_wrong(failures: Sequence[Failure], state: State) -> bool:
        in_place = all(state[process] == node for process, node in knot.items())
        return in_place and breaks(system, failures, state, finding, asked, hangs)

    return is_wrong


def _enough(system: System, steps: Sequence[Step], is_wrong: IsWrong) -> Run | None:
    """Some steps as a run, if it is one that ends wrong."""
    try:
        taken = follow(system, steps)
    except (NotEnabled, Overfull, TooLong, Unresolved, UserError):
        return None
    last = taken[-1][1] if taken else system.initial_transition()
    return taken if is_wrong(last.failures, last.state) else None


def _end_of(system: System, taken: Taken) -> State:
    return taken[-1][1].state if taken else system.initial_transition().state


def breaks(
    system: System,
    failures: Sequence[Failure],
    state: State,
    finding: Finding,
    asked: frozenset[str],
    hangs: Hangs,
) -> bool:
    """Whether a run that ends in ``state``, its last step with ``failures``, ends with the
    failure of ``finding``."""
    name, process = finding.failure.property, finding.failure.process
    is_said = any(each.property == name and each.process == process for each in failures)
    if is_said or finding.last is not None:
        return is_said
    if name == "deadlock-free":
        return hangs(system, state, asked)
    if name == "race-free":
        return racing(system, state, finding.cell)
    return system.all_done(state) and any(e.property == name for e in judge_end(system, state))


def is_hung(system: System, state: State, asked: frozenset[str]) -> bool:
    """Whether no run from ``state`` lets every process finish, as far as can be told soon.

    A run that breaks another property in ``asked`` is over and no hang.
    """
    choose = PersistentSets(system, asked).choose if PersistentSets.covers(system) else None
    if is_stuck(system, state):
        return True
    seen, work = {state}, [state]
    while work:
        here = work.pop()
        try:
            enabled = [each for each in system.transitions(here) if each.fair]
        except (Overfull, UserError):
            return False
        if not enabled and system.all_done(here):
            return False
        for each in choose(here, enabled) if choose else enabled:
            if any(f.property in asked and f.property != "quiescent" for f in each.failures):
                return False
            if each.state not in seen:
                seen.add(each.state)
                work.append(each.state)
        if len(seen) > MOST_STATES_TO_JUDGE_A_HANG:
            return False
    return True


def shortened(
    system: System,
    taken: Taken,
    finding: Finding,
    is_wrong: IsWrong,
    waiting: Collection[int] = (),
    seems_wrong: IsWrong | None = None,
) -> list[tuple[State, Transition]]:
    """The run without what it can do without: no single step, no turn round a loop is left that
    could be left out. All of it where it takes too long to tell of a hang that it is one."""
    short = Shortening(system, taken, is_wrong, _ends(system, finding, waiting), seems_wrong)
    short.leave_out_loops()
    if not short.leave_out_the_unneeded():
        short.keep_only(causal_past(system, follow(system, short.steps), finding, waiting))
    while short.leave_out_single_steps():
        short.leave_out_loops()
    enough = _enough(system, short.steps, is_wrong)
    return [*taken] if enough is None else enough


def _ends(system: System, finding: Finding, waiting: Collection[int]) -> Ends | None:
    """What of the end of a run into a failure shows it."""
    if finding.last is not None:
        return None
    nodes = [system.node(finding.state, process) for process in waiting]
    cells = {cell for node in nodes for action in node.actions for cell in action.cells}
    everybody = range(system.processes)
    return Ends(waiting or everybody, {system.first_cell + cell for cell in cells})


# Causal past


def causal_past(
    system: System, taken: Taken, finding: Finding, waiting: Collection[int] = ()
) -> list[int]:
    """The numbers of the steps that the failure depends on, in order: for a hang, what brought
    those ``waiting`` to where they wait, all if none is named."""
    before = _dependencies(system, taken)
    wanted: list[int] = []
    if finding.last is not None:
        wanted = [len(taken) - 1]
    else:
        state = taken[-1][1].state if taken else system.initial_transition().state
        wanted = _roots(system, taken, state, waiting or range(system.processes))
    past: set[int] = set()
    while wanted:
        step = wanted.pop()
        if step not in past:
            past.add(step)
            wanted += before[step]
    return sorted(past)


def _roots(system: System, taken: Taken, state: State, processes: Collection[int]) -> list[int]:
    """For a failure of a state: the last step of each process and last write of what it awaits."""
    last_step, last_write, _ = _last(system, taken)
    roots = {last_step[each] for each in processes if each in last_step}
    for process in processes:
        for action in system.node(state, process).actions:
            roots |= {last_write[cell] for cell in action.cells if cell in last_write}
    return sorted(roots)


def _last(
    system: System, taken: Taken
) -> tuple[dict[int, int], dict[int, int], dict[int, list[int]]]:
    """The last step of each process, the last write of each cell, the landings of each outbox."""
    step_of: dict[int, int] = {}
    write_of: dict[int, int] = {}
    landings: dict[int, list[int]] = {}
    for number, (state, transition) in enumerate(taken):
        for process in _members(system, state, transition.step):
            step_of[process] = number
        for cell in _written(system, state, transition):
            write_of[cell] = number
        if transition.step.kind == "land":
            landings.setdefault(transition.step.process, []).append(number)
    return step_of, write_of, landings


def _members(system: System, state: State, step: Step) -> tuple[int, ...]:
    if step.kind != "process":
        return ()
    action = system.node(state, step.process).actions[step.what[0]]
    return action.members or (step.process,)


def _written(system: System, state: State, transition: Transition) -> list[int]:
    first, end = system.first_cell, system.first_cell + len(system.cells)
    return [cell for cell, _ in differences(state[first:end], transition.state[first:end])]


def _dependencies(system: System, taken: Taken) -> list[list[int]]:
    """For each step, those that it directly depends on."""
    issue_of = origins(system, taken)
    found: list[list[int]] = []
    last_of: dict[int, int] = {}
    write_of: dict[int, int] = {}
    landings: dict[int, list[int]] = {}
    for number, (state, transition) in enumerate(taken):
        step = transition.step
        needs: set[int] = set()
        members = _members(system, state, step)
        needs |= {last_of[p] for p in members if p in last_of}
        if step.kind == "process":
            action = system.node(state, step.process).actions[step.what[0]]
            needs |= {write_of[cell] for cell in action.cells if cell in write_of}
            if action.kind is ActionKind.QUIET or action.ordered:
                needs |= set(landings.get(step.process, ()))
        else:
            needs |= {issue_of[number][0]} if number in issue_of else set()
            needs |= {
                write_of[cell]
                for cell in step.what
                if cell in write_of
                and (step.kind != "land" or taken[write_of[cell]][1].step.process == step.process)
            }
            needs |= set(landings.get(step.process, ())) if _ordered(system) else set()
            if step.kind != "land" and step.process in last_of:
                needs.add(last_of[step.process])
        found.append(sorted(needs))
        for process in members:
            last_of[process] = number
        for cell in _written(system, state, transition):
            write_of[cell] = number
        if step.kind == "land":
            landings.setdefault(step.process, []).append(number)
    return found


def _ordered(system: System) -> bool:
    """Whether landings of one outbox may have to wait for each other beyond one address."""
    profile = system.automata[0].profile
    return profile.ordering != "none" or profile.fence == "orders" or bool(profile.hops)


# The missing edge


def missing_edge(
    system: System, taken: Taken, told: Sequence[TraceStep], finding: Finding
) -> tuple[str, tuple[int, ...]]:
    """A sentence that names what nothing orders, and the two steps if both are in the run."""
    if finding.failure.property == "race-free":
        return finding.failure.message, ()
    if finding.failure.property != "happens-before" or not taken:
        return "", ()
    state, last = taken[-1]
    end = len(taken) - 1
    node = system.node(state, last.step.process)
    reader = system.automata[last.step.process].process
    where = f"the read in {reader}, {node.place}"
    cells = node.actions[last.step.what[0]].cells
    culprit = _overwriter(system, taken, cells, finding.failure.expected)
    if culprit is None:
        edge = f"nothing orders the landing of {finding.failure.expected} before {where}"
        late = _not_landed(system, taken, told, cells, finding.failure.expected)
        return edge, () if late is None else (late, end)
    before, transition = taken[culprit]
    edge = f"nothing orders this landing after {where}: {describe(system, before, transition)}"
    return edge, (end, culprit)


def _not_landed(
    system: System, taken: Taken, told: Sequence[TraceStep], cells: Sequence[int], expected: str
) -> int | None:
    """The step with a put of what was expected to the block of ``cells``, if it is in flight."""
    blocks = {system.cells[cell].slot for cell in cells}
    landed = [(each.put, each.what[:-1]) for each in told if each.put >= 0]
    for number, (state, transition) in enumerate(taken):
        step = transition.step
        if step.kind != "process":
            continue
        for packet in puts_of(system.node(state, step.process).actions[step.what[0]]):
            put = tuple(cell for cell, _, _ in packet.writes)
            is_there = blocks & {system.cells[cell].slot for cell in put}
            values = {str(system.values[value]) for _, value, _ in packet.writes if value >= 0}
            if is_there and (number, put) not in landed and expected in values:
                return number
    return None


def _overwriter(system: System, taken: Taken, cells: Sequence[int], expected: str) -> int | None:
    """The landing that overwrote what should have been read, if that had landed before."""
    held: set[int] = set()
    for number, (_, transition) in enumerate(taken):
        if transition.step.kind != "land":
            continue
        for cell in sorted(set(transition.step.what) & set(cells)):
            if str(system.values[system.value(transition.state, cell)]) == expected:
                held.add(cell)
            elif cell in held:
                return number
    return None
