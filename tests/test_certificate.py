"""The certificate of a single run: never given where another run exists, and given often."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from syncproof.checkers.automatic import check as check_automatically
from syncproof.checkers.certificate import certify, clocks, execution, sweeps
from syncproof.checkers.certificate import closure as closures
from syncproof.checkers.certificate import roles as certificate_roles
from syncproof.checkers.certificate.check import certificate, outside
from syncproof.checkers.certificate.closure import Closure
from syncproof.checkers.certificate.execution import Beyond
from syncproof.checkers.certificate.relation import Relation
from syncproof.checkers.certificate.roles import LiveRoles, NotCertified
from syncproof.checkers.certificate.sending import Outgoing
from syncproof.checkers.certificate.sweeps import Sweep
from syncproof.checkers.explicit.check import assignments, question_of
from syncproof.checkers.explicit.search import Budget, Meter
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.errors import UserError
from syncproof.models.instance import Choices, Instance
from syncproof.models.memory import Ghost, Region
from syncproof.models.nodes import same
from syncproof.models.operations import Operation
from syncproof.models.profiles import load_profile
from syncproof.models.protocol import Protocol, Setting, parameter, role
from syncproof.models.standing import Standing
from syncproof.models.verdict import Answer, Verdict
from syncproof.protocols.barrier import SCHEMES, Barrier
from syncproof.registry import find
from tests import letters, random_protocols
from tests.letters import has_one_clean_outcome
from tests.small import FlagAfterData, Meeting, OneRound, instance, with_settings

SEEDS = 200
TELLING = (*range(20), *range(60, 70), *range(265, 290), *range(345, 355))
"""Letters among which each fault is noticed; of all the first 400 few others notice some."""
MANY_SEEDS = 50_000

Case = tuple[str, Instance, Choices]
Certify = Callable[[Instance, Choices], int]


def by_clocks(made: Instance, choices: Choices) -> int:
    """The steps of the one run if a record and clocks can tell, or 0."""
    try:
        run = execution.run(lambda: made.parts(choices), Meter(Budget()))
        sound = clocks.first_gap(run.record)[0] == clocks.SOUND
        run.persisting()
    except (NotCertified, Beyond):
        return 0
    return run.record.steps if sound else 0


def by_closure(made: Instance, choices: Choices) -> int:
    """The steps of the one run if the closure can tell, or 0."""
    try:
        run = Closure(made.parts(choices), Meter(Budget()))
        run.run()
        run.persisting()
    except (NotCertified, UserError):
        return 0
    return run.steps


def by_either(made: Instance, choices: Choices) -> int:
    """The steps of the one run, or 0 without a certificate."""
    try:
        return certificate(made, choices, Meter(Budget())).steps
    except (NotCertified, UserError):
        return 0


def some_letters(seeds: Iterable[int]) -> Iterator[Case]:
    """Random letters."""
    for seed in seeds:
        yield f"letters {seed}", letters.instance_of(letters.draw(seed)), {}


def some_plans(seeds: Iterable[int]) -> Iterator[Case]:
    """Random protocols of every operation, as far as the certificate covers their fabric."""
    for seed in seeds:
        made = random_protocols.instance_of(random_protocols.plan_of(seed))
        if not outside(made):
            yield f"plan {seed}", made, next(assignments(made))


def wrong_certificates(cases: Iterable[Case], certify: Certify) -> tuple[int, list[str]]:
    """How many cases are certified, and those among them that have another outcome."""
    certified, wrong = 0, []
    for name, made, choices in cases:
        if certify(made, choices):
            outcome = has_one_clean_outcome(made.system(choices))
            certified += outcome is not None
            if outcome is False:
                wrong.append(name)
    return certified, wrong


@pytest.mark.parametrize("certify", [by_clocks, by_closure])
def test_never_certified_where_the_full_graph_differs(certify: Certify) -> None:
    """Of random letters that are certified, the full graph of each has one clean outcome."""
    certified, wrong = wrong_certificates(some_letters(range(SEEDS)), certify)
    assert wrong == []
    assert certified > SEEDS // 5


def test_never_certified_where_the_full_graph_of_any_protocol_differs() -> None:
    """The same with every operation and statement: atomics, sweeps, ghosts, events, gets."""
    certified, wrong = wrong_certificates(some_plans(range(1_000, 1_400)), by_closure)
    assert wrong == []
    assert certified > 5


@pytest.mark.long
@pytest.mark.parametrize("kind", [some_letters, some_plans])
def test_never_certified_where_the_full_graph_differs_at_length(
    kind: Callable[[Iterable[int]], Iterator[Case]],
) -> None:
    """The same on a hundred thousand protocols, half of them letters."""
    _, wrong = wrong_certificates(kind(range(10_000, 10_000 + MANY_SEEDS)), by_either)
    assert wrong == []


def test_clocks_know_nothing_that_the_closure_does_not() -> None:
    """What clocks certify the closure certifies too, with the same number of steps."""
    compared = 0
    for name, made, choices in some_letters(range(1_000, 1_300)):
        steps = by_clocks(made, choices)
        if steps:
            compared += 1
            assert by_closure(made, choices) == steps, name
    assert compared > 50


@pytest.mark.parametrize(
    ("kind", "seeds", "least"), [(some_letters, 100, 0.95), (some_plans, 300, 0.6)]
)
def test_share_of_single_outcome_protocols_that_is_certified(
    kind: Callable[[Iterable[int]], Iterator[Case]], seeds: int, least: float
) -> None:
    """Most random protocols with one clean outcome are certified; the share is printed."""
    single = certified = 0
    for _, made, choices in kind(range(SEEDS, SEEDS + seeds)):
        if has_one_clean_outcome(made.system(choices)):
            single += 1
            certified += bool(by_either(made, choices))
    print(f"{kind.__name__}: {certified} of {single} protocols with one outcome are certified")
    assert single > 5
    assert certified >= least * single, f"{certified} of {single}"


# Each rule is needed


def everything(*_: Any) -> int:
    return -1


def yes(*_: Any) -> bool:
    return True


def nothing(*_: Any) -> None:
    return None


def sound(*_: Any) -> tuple[int, int]:
    return clocks.SOUND, -1


def first_of_put(self: Outgoing, packet: Any, profile: Any) -> int:
    """Every put is held back by the one before it."""
    return self._packets[-1][1] if self._packets else 0


def tried_on_nothing(process: int, place: int, since: int, *rest: Any) -> tuple[int, int]:
    return CHECK_WAIT(process, place, -1, *rest)


CHECK_WAIT = clocks.check_wait

CLOCK_FAULTS: dict[str, tuple[Any, str, Any]] = {
    "a landing is always known": (clocks, "has_landed", yes),
    "a step is always known": (clocks, "has_step", yes),
    "loads are not checked": (clocks, "check_load", sound),
    "waits are not tried on older values": (clocks, "check_wait", tried_on_nothing),
    "writes are not checked": (clocks, "check_write", sound),
    "returns are not checked": (clocks, "unproved", lambda *_: -1),
}


@pytest.mark.parametrize("fault", CLOCK_FAULTS)
def test_each_rule_of_the_clocks_is_needed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With any one of its rules taken away the certificate is wrong, and this test sees it."""
    monkeypatch.setattr(*CLOCK_FAULTS[fault])
    cases = some_letters(TELLING)
    assert any(wrong_certificates([case], by_clocks)[1] for case in cases)


CLOSURE_FAULTS: dict[str, tuple[Any, str, Any]] = {
    "unordered writes are not compared": (Relation, "_check_unordered", nothing),
    "later writes are not looked at": (Relation, "_judge_again", nothing),
    "returns are not checked": (Outgoing, "open", lambda *_: False),
    "the in-flight bound is not checked": (Outgoing, "overfull", lambda *_: False),
    "puts never overtake each other": (Outgoing, "before", first_of_put),
    "every read teaches all": (Relation, "_judge", lambda self, *_: self.pasts[-2]),
}


@pytest.mark.parametrize("fault", CLOSURE_FAULTS)
def test_each_rule_of_the_closure_is_needed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With any one of its rules taken away the certificate is wrong, and this test sees it."""
    monkeypatch.setattr(*CLOSURE_FAULTS[fault])
    cases = some_letters(TELLING)
    assert any(wrong_certificates([case], by_closure)[1] for case in cases)


# Built-in and small protocols


@pytest.mark.parametrize(("ranks", "tokens"), [(2, 1), (3, 1), (3, 2), (8, 2)])
@pytest.mark.parametrize("certify", [by_clocks, by_closure])
def test_one_run_has_one_state_more_than_steps(certify: Certify, ranks: int, tokens: int) -> None:
    """One-round Sentinel Polling takes five steps a token and pair: design section 7's counts."""
    made = instance(OneRound, ranks=ranks, tokens=tokens)
    assert certify(made, {}) == 0  # it ends without a quiet, which is all that is wrong with it
    made = instance(Quieted, ranks=ranks, tokens=tokens)
    pairs = ranks * (ranks - 1)
    assert certify(made, {}) == 5 * tokens * pairs + 2 * ranks


class Quieted(OneRound):
    """One-round Sentinel Polling in which every process ends with a quiet."""

    @role
    async def sender(self, core: Core) -> None:
        await OneRound.sender.function(self, core)
        await core.quiet()

    @role
    async def receiver(self, core: Core) -> None:
        await OneRound.receiver.function(self, core)
        await core.quiet()


def test_verdict_names_the_engine_and_what_is_not_ordered() -> None:
    """The automatic engine uses the certificate if there is one and says why there is none."""
    sound = instance(FlagAfterData)
    found = check_automatically(sound, question_of(sound, "flag"), "auto", Budget())
    assert (found.engine, found.answer) == ("certificate", Answer.PROVED)
    assert found.states == found.transitions + 1
    broken = with_settings(sound, quiet=False)
    found = check_automatically(broken, question_of(broken, "flag"), "auto", Budget())
    assert (found.engine, found.answer) == ("reduced", Answer.VIOLATED)
    assert any("nothing orders sender@rank" in note for note in found.notes)


@pytest.mark.parametrize(
    "fault", ["meets", "orders"], ids=["nobody waits", "the ghosts do not commute"]
)
def test_ghosts_are_looked_at_in_every_order(fault: str) -> None:
    """A ghost that all change is what it should be in any order, or there is no certificate."""
    made = instance(Meeting, ranks=3)
    found = certify(made, question_of(made, "meeting"))
    assert isinstance(found, Verdict)
    assert has_one_clean_outcome(made.system({}))
    wrong = with_settings(made, meets=False) if fault == "meets" else instance(Told, ranks=3)
    assert not isinstance(certify(wrong, question_of(wrong, "meeting")), Verdict)


def _either(old: int, more: int) -> int:
    return 2 * old + more


class Told(Meeting):
    """Each rank tells a ghost its number; which comes last matters, although nobody asks."""

    @role
    async def member(self, core: Core) -> None:
        await core.fence()
        core.ghost_update(self.entered, _either, core.rank)
        core.reach("left")


class Counted(Protocol):
    """Each rank adds to a counter at all others and waits until all have; then it reads it."""

    least: int = parameter(0, "how many fewer than all it waits for", (0, 1))
    keeps: bool = parameter(False, "what the wait gives is looked at")

    def memory(self) -> None:
        self.counter = Region(index=(), block=8)

    @role
    async def member(self, core: Core) -> None:
        for peer in range(core.ranks):
            await core.add(self.counter[peer], 1)
        enough = core.ranks - self.least
        found = await core.wait_until(self.counter[core.rank], lambda count: count >= enough)
        if self.keeps:
            core.check(found == core.ranks, "not all are here")
        await core.quiet()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"keeps": True}, True),
        ({"least": 1}, False),
        ({"least": 1, "keeps": True}, False),
    ],
)
def test_adds_come_in_any_order(settings: dict[str, int], expected: bool) -> None:
    """A wait for all adds is certified; one for some of them has several ways to pass."""
    made = with_settings(instance(Counted, ranks=3), **settings)
    assert bool(by_either(made, {})) is expected
    outcome = has_one_clean_outcome(made.system({}))
    assert outcome is not False or not expected


HANGING = {"reset", "equal", "sense", "count"}
ORDER_MATTERS = {"count_at_least"}
"""Barriers that hold, but who comes first shows in what is read."""


@pytest.mark.parametrize("scheme", SCHEMES)
def test_barriers_are_certified_unless_they_hang_or_order_matters(scheme: str) -> None:
    """Adds, credits, epochs, a peer one barrier ahead, ghosts: as in the full graph."""
    bounds = Bounds(ranks=2, rounds=3)
    made = Instance(Barrier, bounds, load_profile("cm384"), {"scheme": scheme})
    steps = by_either(made, {})
    assert bool(steps) is (scheme not in HANGING | ORDER_MATTERS)
    if steps:
        assert has_one_clean_outcome(made.system({})) is not False


@pytest.mark.parametrize(
    ("name", "ranks", "settings"),
    [
        ("dc", 4, {}),
        ("bsp", 3, {"syncall": "software"}),
        ("bsp", 2, {"syncall": "software", "cores": 3}),
        ("ubep", 2, {"data": "dc"}),
    ],
)
def test_sweeps_of_built_in_protocols_are_certified(
    name: str, ranks: int, settings: dict[str, Setting]
) -> None:
    """Sweeps over checksums and over the counters of a barrier pass in one way only."""
    bounds = Bounds(ranks=ranks, rounds=2)
    made = Instance(find(name).kind, bounds, load_profile("cm384"), settings)
    assert by_either(made, next(assignments(made)))


@pytest.mark.parametrize(
    ("name", "fabric", "settings"),
    [
        ("dc", "cm384", {"compare": False}),
        ("dc", "cm384", {"round_in_checksum": False}),
        ("dc", "cm384,store_atomicity=128", {}),
        ("sp", "cm384,store_atomicity=128", {}),
        ("sp", "cm384", {"windows": 1}),
        ("bsp", "cm384", {"first_barrier": False}),
        ("sw", "cm384", {"quiet": False}),
    ],
)
def test_broken_variants_of_built_in_protocols_have_none(
    name: str, fabric: str, settings: dict[str, Setting]
) -> None:
    """What the general engines refute is never certified."""
    made = Instance(find(name).kind, Bounds(ranks=2), load_profile(fabric), settings)
    for choices in assignments(made):
        assert not by_either(made, choices)


def test_a_wait_for_some_of_the_adds_teaches_nothing() -> None:
    """At two ranks the wait for one of two adds passes on either, and gives one or two."""
    made = with_settings(instance(Counted, ranks=2), least=1)
    found = has_one_clean_outcome(made.system({}))
    assert bool(by_closure(made, {})) <= bool(found)


class Tracking(Protocol):
    """A sweep that fails may leave a trace: it counts how often it has looked."""

    traces: bool = parameter(True, "the sweep counts its turns")

    def memory(self) -> None:
        self.flag = Region(index=(), block=8)

    @role
    async def setter(self, core: Core) -> None:
        await core.put(self.flag[core.rank], 1)
        await core.quiet()

    @role
    async def waiter(self, core: Core) -> None:
        turns: list[int] = []

        async def look() -> bool | None:
            if self.traces:
                turns.append(1)
            return await core.load(self.flag[core.rank]) == 1 or None

        await core.poll_until(look)
        core.check(len(turns) <= 1, "looked more than once")


def test_a_sweep_that_leaves_a_trace_has_no_certificate() -> None:
    """What depends on how often a sweep failed is no single run."""
    made = instance(Tracking, ranks=2)
    assert by_either(with_settings(made, traces=False), {})
    assert not by_either(made, {})


TURNS: list[int] = []


class Counting(Tracking):
    """A sweep that counts its turns where all roles see it."""

    @role
    async def waiter(self, core: Core) -> None:
        async def look() -> bool | None:
            found = await core.load(self.flag[core.rank]) == 1 or None
            if self.traces and not found:
                TURNS.append(1)
            return found

        await core.poll_until(look)


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_sweep_that_changes_what_roles_share_is_refused(
    is_ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind each turn or, in a protocol of this package, before somebody else goes on."""
    monkeypatch.setattr(certificate_roles, "is_of_package", lambda _: is_ours)
    made = instance(Counting, ranks=2)
    assert by_closure(with_settings(made, traces=False), {})
    assert not by_closure(made, {})
    assert TURNS


def test_sweep_faults_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its own checks a sweep would be certified where it must not be."""
    made = instance(Tracking, ranks=2)
    with monkeypatch.context() as patch:
        patch.setattr(Sweep, "_check_failed", lambda self, coroutine, complete: None)
        assert by_either(made, {})
    assert not by_either(made, {})
    monkeypatch.setattr(Standing, "is_as_it_was", lambda *_: True)
    assert by_either(made, {})


class Passing(Protocol):
    """A sweep passes on one put or on the next, and the role tells which."""

    keeps: bool = parameter(True, "the role keeps what it has seen")

    def memory(self) -> None:
        self.flag = Region(index=(), block=8)
        self.seen = Region(index=(), block=8)

    @role
    async def setter(self, core: Core) -> None:
        await core.put(self.flag[core.rank], 1)
        await core.quiet()
        await core.put(self.flag[core.rank], 2)
        await core.quiet()

    @role
    async def waiter(self, core: Core) -> None:
        async def look() -> int | None:
            seen = await core.load(self.flag[core.rank])
            return (seen if self.keeps else 1) if seen else None

        told = await core.poll_until(look)
        await core.put(self.seen[core.rank], told)
        await core.quiet()


def test_a_sweep_that_passes_on_several_values_must_not_matter() -> None:
    """Passing on another value than in the run is compared with how the run went on."""
    made = instance(Passing, ranks=2)
    assert by_closure(with_settings(made, keeps=False), {})
    assert not by_closure(made, {})


def test_other_values_taken_for_those_of_the_run_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only a pass on the very values of the run needs no comparison."""
    monkeypatch.setattr(sweeps, "plain", lambda _: 0)
    assert by_closure(instance(Passing, ranks=2), {})


def test_roles_are_fed_again_in_a_time_that_grows_with_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sweeps are tried on coroutines that are kept: none is fed the whole history each time."""
    bounds = Bounds(ranks=3, rounds=6, routing="balanced")
    made = Instance(find("dc").kind, bounds, load_profile("cm384"), {})
    compared = []

    def counted(*operations: Any) -> bool:
        compared.append(operations)
        return same(*operations)

    monkeypatch.setattr(certificate_roles, "same", counted)
    steps = by_closure(made, {})
    assert 0 < steps < len(compared) < 3 * steps


def test_a_role_that_keeps_what_it_read_is_told_from_one_that_does_not() -> None:
    """`drops_result` looks at the code: only a value that is thrown away at once is dropped."""
    made = instance(Dropping, ranks=1)
    roles = LiveRoles(made.parts({}), keep_all=True)
    roles.resume(0, None)
    found = []
    while roles.operations[0] is not None:
        found.append(roles.drops_result(0))
        roles.resume(0, 0)
    assert found == [True, False, True, False, False]


class Looking:
    """Stands between a role and an operation, and looks at what it gives."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def __await__(self) -> Any:
        self.found = yield from self.operation.__await__()


class Dropping(Protocol):
    """Loads whose values are dropped, kept, dropped in a helper, given back by one, looked at."""

    def memory(self) -> None:
        self.flag = Region(index=(), block=8)

    @role
    async def reader(self, core: Core) -> None:
        await core.load(self.flag[0])
        kept = await core.load(self.flag[0])
        await self.drop(core)
        core.check(await self.give(core) == kept, "another value")
        await Looking(core.load(self.flag[0]))

    async def drop(self, core: Core) -> None:
        await core.load(self.flag[0])

    async def give(self, core: Core) -> int:
        return await core.load(self.flag[0])  # type: ignore[no-any-return]


def test_limits_end_in_no_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many contents, or too long a run, are said and never proved."""
    made = instance(Counted, ranks=3)
    monkeypatch.setattr(closures, "MOST_STEPS", 5)
    obstacle = certify(made, question_of(made, "counted"))
    assert "more than 5 steps" in str(obstacle)


class Unhashable(Protocol):
    """Puts a list, which is no value."""

    def memory(self) -> None:
        self.flag = Region(index=(), block=8)

    @role
    async def writer(self, core: Core) -> None:
        await core.put(self.flag[0], [])


def test_a_users_mistake_is_no_certificate_and_no_crash() -> None:
    """What a role does wrong is left to the general engine, which says where."""
    made = instance(Unhashable, ranks=1)
    assert "hashed" in str(certify(made, question_of(made, "unhashable")))


def _always(_: int) -> bool:
    return True


class Overheard(Protocol):
    """Two raise a counter, one of them after its data; the waiter checks a ghost as it passes."""

    def memory(self) -> None:
        self.counter, self.data = Region(index=(), block=8), Region(index=(), block=8)
        self.seen = Ghost(0)

    @role
    async def teller(self, core: Core) -> None:
        await core.put(self.data[0], 1)
        await core.quiet()
        await core.add(self.counter[0], 1)
        await core.quiet()

    @role
    async def waiter(self, core: Core) -> None:
        await core.wait_until(self.counter[0], lambda count: count >= 1)
        core.ghost_check(self.seen, _always, message="never")
        core.check(await core.get(self.data[0]) == 1, "no data")

    @role
    async def other(self, core: Core) -> None:
        await core.add(self.counter[0], 1)
        await core.quiet()


def test_every_read_of_one_event_is_judged_again() -> None:
    """A ghost that is checked at a wait does not hide that the wait may pass without the data."""
    made = instance(Overheard, ranks=1)
    assert has_one_clean_outcome(made.system({})) is False
    assert not by_closure(made, {})
