"""What a trace tells beside its steps: memory, causes, and the order that is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import networkx
import pytest

from syncproof.checkers.explicit.causes import without_implied
from syncproof.checkers.explicit.check import Budget, check, question_of
from syncproof.checkers.explicit.replay import replay, system_of
from syncproof.models.core import Core
from syncproof.models.instance import Instance
from syncproof.models.memory import Region
from syncproof.models.narrate import follow
from syncproof.models.protocol import Protocol, parameter, role
from syncproof.models.system import System
from syncproof.models.transitions import State, Step, Transition
from syncproof.models.verdict import Trace, Verdict, from_data, to_data
from syncproof.reports.happens_before import Why, graph_of
from syncproof.reports.page_data import run_data, with_cells
from tests import page_examples
from tests.page_examples import VIOLATIONS, WEAK, polling, trace_of
from tests.small import CM384, FlagAfterData, instance, with_settings

ASKED: dict[Callable[[], Verdict], Instance] = {
    page_examples.torn: polling(1, WEAK),
    page_examples.hang: polling(1, CM384, reserved_sentinel=False),
    page_examples.stale: with_settings(instance(FlagAfterData), quiet=False),
}


def walked(trace: Trace, made: Instance) -> tuple[System, list[tuple[State, Transition]]]:
    """The system of a trace and its states."""
    system = system_of(trace, made)
    steps = [Step(s.kind, s.process, s.what[:-1], s.what[-1]) for s in trace.steps]
    return system, follow(system, steps)


def values_by_page(data: dict[str, object], step: int) -> list[str]:
    """What the page's data say that the cells hold before a step."""
    cells: list[dict[str, str]] = data["cells"]  # type: ignore[assignment]
    steps: list[dict[str, list[tuple[int, str]]]] = data["steps"]  # type: ignore[assignment]
    values = [cell["initial"] for cell in cells]
    for earlier in steps[:step]:
        for cell, value in earlier["writes"]:
            values[cell] = value
    return values


@pytest.mark.parametrize("example", ASKED, ids=lambda each: each.__name__)
def test_memory_is_that_of_the_model(example: Callable[[], Verdict]) -> None:
    """Before each step and at the end every cell holds what the system's state holds."""
    trace = trace_of(example())
    system, taken = walked(trace, ASKED[example])
    states = [state for state, _ in taken] + [taken[-1][1].state]
    data = run_data(trace)
    for step, state in enumerate(states):
        held = [str(system.values[system.value(state, each.number)]) for each in trace.memory]
        assert values_by_page(data, step) == held


@pytest.mark.parametrize("example", ASKED, ids=lambda each: each.__name__)
def test_every_cell_that_changes_or_is_read_is_there(example: Callable[[], Verdict]) -> None:
    """The cells of a trace are those that its steps read, change or land on, and no name twice."""
    trace = trace_of(example())
    system, taken = walked(trace, ASKED[example])
    known = {each.number for each in trace.memory}
    changed = {
        cell
        for state, transition in taken
        for cell in range(len(system.cells))
        if system.value(state, cell) != system.value(transition.state, cell)
    }
    read = {
        cell
        for state, transition in taken
        if transition.step.kind == "process"
        for cell in system.node(state, transition.step.process)
        .actions[transition.step.what[0]]
        .cells
    }
    assert changed | read <= known
    assert len({(c.block, c.field, c.byte) for c in trace.memory}) == len(trace.memory)


def test_a_hang_shows_what_is_waited_for() -> None:
    """The memory of a hang has the block that a process waits on, though no step touches it."""
    trace = trace_of(page_examples.at_once())
    assert not trace.steps
    assert {(cell.block, cell.initial) for cell in trace.memory} == {
        ("ready[0][1]", "0"),
        ("ready[1][0]", "0"),
    }


@pytest.mark.parametrize("example", VIOLATIONS, ids=lambda each: each.__name__)
def test_causes_come_first_and_none_is_implied(example: Callable[[], Verdict]) -> None:
    """The graph has no edge that others imply, and each program stays in order."""
    trace = trace_of(example())
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(len(trace.steps)))
    for number, step in enumerate(trace.steps):
        assert all(cause < number for cause in step.after)
        graph.add_edges_from((cause, number) for cause in step.after)
    assert set(networkx.transitive_reduction(graph).edges) == set(graph.edges)
    for lane in trace.processes:
        mine = [n for n, s in enumerate(trace.steps) if lane in (s.actor, *s.joined)]
        for one, two in pairwise(mine):
            assert networkx.has_path(graph, one, two)
    for number, step in enumerate(trace.steps):
        assert step.put < 0 or networkx.has_path(graph, step.put, number)


def test_what_is_implied_is_left_out() -> None:
    """The reduction keeps reachability and nothing else, on every graph of up to five steps."""
    pairs = [(one, two) for two in range(5) for one in range(two)]
    for chosen in range(2 ** len(pairs)):
        edges = [pair for place, pair in enumerate(pairs) if chosen >> place & 1]
        given = [[one for one, other in edges if other == two] for two in range(5)]
        found = {(one, two) for two, causes in enumerate(without_implied(given)) for one in causes}
        whole = networkx.DiGraph(edges)
        assert found == set(networkx.transitive_reduction(whole).edges)


@pytest.mark.parametrize("example", [page_examples.torn, page_examples.stale])
def test_the_missing_order_is_the_one_that_mends_it(example: Callable[[], Verdict]) -> None:
    """When what the first step put lands before the second, the second reads what it should."""
    trace = trace_of(example())
    system, taken = walked(trace, ASKED[example])
    first, second = trace.unordered
    assert second == len(trace.steps) - 1
    assert any(each.property == trace.property for each in taken[-1][1].failures)
    state = taken[second][0]
    owner = trace.steps[first].process
    slot = trace.steps[first].text.split(": ")[0].removeprefix("put ")
    while True:
        landing = next(
            (
                each
                for each in system.transitions(state)
                if each.step.kind == "land"
                and each.step.process == owner
                and {str(system.cells[cell].slot) for cell in each.step.what} == {slot}
            ),
            None,
        )
        if landing is None:
            break
        state = landing.state
    again = [each for each in system.transitions(state) if each.step == taken[-1][1].step]
    assert again and not any(each.failures for each in again)


class TwoInFlight(Protocol):
    """Two messages go to one block and a flag overtakes both; the reader expects one of them."""

    second: bool = parameter(True, "the second message is expected, not the first")

    def memory(self) -> None:
        self.data = Region(owner=1)
        self.flag = Region(owner=1, block=8)

    @role(on=[0])
    async def sender(self, core: Core) -> None:
        await core.put(self.data[1], core.payload(1, 0, 0))
        await core.put(self.data[1], core.payload(1, 0, 1))
        await core.put(self.flag[1], 1)

    @role(on=[1])
    async def receiver(self, core: Core) -> None:
        await core.wait_until(self.flag[1], lambda flag: flag == 1)
        core.consume(await core.load(self.data[1]), 0, 0, 1 if self.second else 0)


@pytest.mark.parametrize("second", [False, True])
def test_the_missing_order_is_of_the_put_that_was_expected(second: bool) -> None:
    """Of two puts in flight to the block that is read, the one with the expected message."""
    made = with_settings(instance(TwoInFlight, rounds=2), second=second)
    question = replace(question_of(made, "two"), properties=("happens-before",))
    found = trace_of(check(made, question, "reduced", Budget()))
    puts = [n for n, step in enumerate(found.steps) if step.text.startswith("put data[1]")]
    assert not any("lands at data[1]" in step.text for step in found.steps)
    assert found.unordered == (puts[second], len(found.steps) - 1)


def test_the_missing_order_of_an_overwritten_block() -> None:
    """The read should come before the landing that it came after, and nothing says so."""
    trace = trace_of(page_examples.overwritten())
    first, second = trace.unordered
    assert first == len(trace.steps) - 1
    assert trace.steps[second].kind == "land"
    assert set(trace.steps[second].writes) <= set(trace.steps[first].reads)
    past, work = set(), [second]
    while work:
        step = work.pop()
        past.add(step)
        work += trace.steps[step].after
    assert first not in past


def test_the_graph_says_why() -> None:
    """Each edge of a torn read is of the kind that it is, and the missing one is drawn."""
    graph = graph_of(trace_of(page_examples.torn()))
    assert {(edge.first, edge.second, edge.why) for edge in graph.edges} == {
        (0, 1, Why.PROGRAM),
        (0, 2, Why.PUT),
        (1, 5, Why.PUT),
        (2, 3, Why.READ),
        (3, 4, Why.PROGRAM),
        (4, 6, Why.PROGRAM),
        (5, 6, Why.READ),
        (6, 7, Why.PROGRAM),
        (1, 7, Why.MISSING),
    }


@pytest.mark.parametrize("example", VIOLATIONS, ids=lambda each: each.__name__)
def test_no_two_nodes_share_a_place(example: Callable[[], Verdict]) -> None:
    """Causes lie in earlier layers, and each node has its own place within its lane's columns."""
    trace = trace_of(example())
    graph = graph_of(trace)
    layers = {node.step: node.layer for node in graph.nodes}
    assert set(layers) == set(trace.shown)
    for edge in graph.edges:
        assert edge.why is Why.MISSING or layers[edge.first] < layers[edge.second]
    places = {(node.lane, node.layer, node.column) for node in graph.nodes}
    assert len(places) == len(graph.nodes)
    assert all(node.column < graph.widths[node.lane] for node in graph.nodes)


@pytest.mark.parametrize("example", VIOLATIONS, ids=lambda each: each.__name__)
def test_traces_round_trip_with_their_memory(example: Callable[[], Verdict]) -> None:
    """JSON keeps what is new in a trace."""
    trace = trace_of(example())
    data = json.loads(json.dumps(to_data(trace)))
    loaded = from_data(Trace, data, "t.json")
    assert to_data(loaded) == data
    assert (loaded.steps, loaded.memory) == (trace.steps, trace.memory)


def test_what_a_trace_does_not_have_is_not_written() -> None:
    """A trace from before these fields gives the same JSON as then, and is read as it was."""
    new = trace_of(page_examples.torn())
    steps = tuple(replace(s, reads=(), writes=(), issues=0, after=()) for s in new.steps)
    old = replace(new, steps=steps, memory=(), unordered=())
    data = to_data(old)
    assert {"memory", "unordered"}.isdisjoint(data)
    assert all({"reads", "writes", "issues", "after"}.isdisjoint(step) for step in data["steps"])
    assert from_data(Trace, data, "old.json") == old


def test_a_trace_without_cells_gets_them_from_its_changes() -> None:
    """The page of an older trace shows the blocks that change, atoms of one field apart."""
    new = trace_of(page_examples.torn())
    steps = tuple(replace(s, reads=(), writes=(), issues=0, after=()) for s in new.steps)
    cells, numbered = with_cells(replace(new, steps=steps, memory=(), unordered=()))
    assert [(cell.block, cell.field, cell.initial) for cell in cells] == [
        ("status[0][1, 0]", "flag", "0"),
        ("status[0][1, 0]", "count", "0"),
        ("window[0][1, 0, 0]", "lead", "SENTINEL"),
        ("window[0][1, 0, 0]", "rest", "SENTINEL"),
    ]
    assert [step.writes for step in numbered if step.writes] == [(0, 1), (2, 3)]


def test_a_replay_gives_the_run_as_it_is_now() -> None:
    """Replaying an older trace fills in its memory and causes."""
    new = trace_of(page_examples.torn())
    steps = tuple(replace(s, reads=(), writes=(), issues=0, after=()) for s in new.steps)
    old = replace(new, steps=steps, memory=(), unordered=())
    replayed = replay(old, ASKED[page_examples.torn])
    assert replayed.trace == replace(new, unordered=())
