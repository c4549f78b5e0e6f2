"""Rounds without bound: the quotient agrees with every bounded run, and says what it rests on."""

from __future__ import annotations

import dataclasses
import dis
from typing import Any

import pytest

from syncproof.checkers.explicit.check import Budget, check, question_of
from syncproof.checkers.explicit.mutating import find_mutants
from syncproof.checkers.unbounded import frames, search, system
from syncproof.checkers.unbounded.check import check as check_unbounded
from syncproof.checkers.unbounded.liveness import live_at
from syncproof.cli import BAD_INPUT, run
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.memory import RANK, Ghost, Region
from syncproof.models.protocol import Protocol, Setting, parameter, role
from syncproof.models.rounds import LEAVES, NeedsLookback, Old, OutsideRounds, Round, mapped
from syncproof.models.values import Part
from syncproof.models.verdict import Answer, Verdict
from syncproof.protocols.barrier import SCHEMES, Barrier
from syncproof.protocols.bsp import BulkSynchronous
from syncproof.protocols.dc import DataForChecksum
from syncproof.protocols.sp import SentinelPolling
from syncproof.protocols.sw import StopAndWait
from syncproof.protocols.tff import TokenFlagFusion
from tests.round_protocols import RoundByRound

CM384 = Profile("cm384")
PROVED, VIOLATED, UNDECIDED = Answer.PROVED, Answer.VIOLATED, Answer.UNDECIDED


def instance_of(
    kind: type[Protocol], *, routing: str = "balanced", **settings: Setting
) -> Instance:
    return Instance(kind, Bounds(routing=routing), CM384, settings)


def unbounded(instance: Instance, engine: str = "quotient", states: int = 50_000) -> Verdict:
    question = question_of(instance, instance.kind.__name__)
    return check_unbounded(instance, question, engine, Budget(states=states))


def bounded(instance: Instance, rounds: int) -> Answer:
    made = dataclasses.replace(instance, bounds=dataclasses.replace(instance.bounds, rounds=rounds))
    return check(made, question_of(made, "x"), "reduced", Budget(states=50_000)).answer


def reason(verdict: Verdict) -> str:
    return next(each.detail for each in verdict.properties if each.answer is UNDECIDED)


# What is proved and what is refuted


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (SentinelPolling, {}),
        (SentinelPolling, {"counts": False}),
        (SentinelPolling, {"counts": False, "windows": 3}),
        (TokenFlagFusion, {"counts": False}),
        (StopAndWait, {"counts": False}),
        (DataForChecksum, {"counts": False}),
        (BulkSynchronous, {}),
    ],
)
def test_proved_for_every_number_of_rounds(
    kind: type[Protocol], settings: dict[str, Setting]
) -> None:
    """What is proved for three rounds is proved for any number, and each premise is told."""
    instance = instance_of(kind, **settings)
    verdict = unbounded(instance)
    assert (verdict.answer, bounded(instance, 3)) == (PROVED, PROVED)
    assert len([note for note in verdict.notes if note.startswith("premise: ")]) == 5


@pytest.mark.parametrize("routing", ["all", "balanced"])
def test_reduction_changes_no_verdict(routing: str) -> None:
    """With and without the reduction the answer is the same, and the reduction is one."""
    instance = instance_of(SentinelPolling, routing=routing, counts=False)
    full, less = unbounded(instance, "quotient-full"), unbounded(instance)
    assert full.answer is less.answer is PROVED
    assert less.states < full.states


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (SentinelPolling, {"windows": 1}),
        (SentinelPolling, {"quiet": False}),
        (StopAndWait, {"quiet": False}),
        (StopAndWait, {"windows": 1}),
        (TokenFlagFusion, {"windows": 1}),
        (TokenFlagFusion, {"reset": "never"}),
        (TokenFlagFusion, {"reset": "before", "reuse": "reset", "windows": 1}),
        (DataForChecksum, {"compare": False}),
        (BulkSynchronous, {"first_barrier": False}),
    ],
)
@pytest.mark.parametrize("routing", ["balanced"])
def test_refuted_with_a_run_that_replays(
    kind: type[Protocol], settings: dict[str, Setting], routing: str
) -> None:
    """A protocol without its second window, its quiet or its order is refuted by a bounded run."""
    instance = instance_of(kind, routing=routing, **settings)
    verdict = unbounded(instance)
    assert verdict.answer is VIOLATED
    assert verdict.trace is not None
    rounds = verdict.trace.question.bounds["rounds"]
    assert isinstance(rounds, int) and bounded(instance, rounds) is VIOLATED


@pytest.mark.parametrize("scheme", SCHEMES)
def test_barriers_agree_with_a_few_rounds(scheme: str) -> None:
    """Of sixteen ways to build a barrier the same ones hold for any number as for a few rounds."""
    instance = instance_of(Barrier, scheme=scheme)
    rounds = 2 if scheme.startswith("count") else 5
    assert unbounded(instance).answer is bounded(instance, rounds)


def test_all_routings_are_covered() -> None:
    """With sparse traffic and no exchange of counts it is refuted, as it is bounded."""
    sparse = instance_of(SentinelPolling, routing="all", counts=False, dense_traffic=False)
    assert unbounded(sparse).answer is VIOLATED
    dense = instance_of(SentinelPolling, routing="all", counts=False)
    assert unbounded(dense).answer is PROVED


def disagreement(seed: int) -> str:
    """What the quotient says against what bounded runs say of a random protocol; "" if alike."""
    instance = instance_of(RoundByRound, seed=seed, windows=1 + seed % 3)
    answer = unbounded(instance, states=5_000).answer
    if answer is UNDECIDED:
        return "undecided"
    runs = []
    for rounds in (1, 2, 3, 4):
        runs.append(bounded(instance, rounds))
        if runs[-1] is VIOLATED:
            break
    alike = (answer is VIOLATED) == (VIOLATED in runs)
    return "" if alike else f"{seed}: {answer} but {runs}"


def test_random_protocols_agree_with_bounded_runs() -> None:
    """A random protocol is proved for all numbers of rounds only if it holds for the first four."""
    found = [disagreement(seed) for seed in range(1, 26)]
    assert [each for each in found if each not in ("", "undecided")] == []
    assert found.count("") >= 20


@pytest.mark.long
def test_many_random_protocols_agree_with_bounded_runs() -> None:
    """The same, of a thousand."""
    found = [disagreement(seed) for seed in range(26, 1026)]
    assert [each for each in found if each not in ("", "undecided")] == []


@pytest.mark.long
def test_every_mutant_is_answered_as_in_three_rounds() -> None:
    """Each mutant of sp, sw and tff that three rounds refute is refuted, and no other."""
    for kind in (SentinelPolling, StopAndWait, TokenFlagFusion):
        instance = instance_of(kind)
        for mutant in find_mutants(instance):
            changed = mutant.applied(instance)
            answer = unbounded(changed).answer
            assert answer in (bounded(changed, 3), UNDECIDED), mutant.name


# Faults planted in the engine


def _residues_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """States are moved by one round although windows are used in turn."""
    patch.setattr(frames.Channel, "note", lambda *_: None)


def _choices_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A choice is made again by each process that asks."""
    keep = system.Quotient._kept

    def kept(self: Any, name: int, *about: Any) -> int | None:
        return None if self._look(name)[0] == "choice" else keep(self, name, *about)

    patch.setattr(system.Quotient, "_kept", kept)


def _choices_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """The first answer to a choice holds for all."""
    patch.setattr(frames.HomeAutomaton, "_applies", lambda self, edge, shift: edge.asks is None)


def _memory_stays(patch: pytest.MonkeyPatch) -> None:
    """Rounds in memory are not moved with those of processes."""
    patch.setattr(system.Aged, "__missing__", lambda self, number: number)


def _tokens_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Tokens that were never consumed are forgotten like those that were."""
    keep = system.Quotient._kept

    def kept(self: Any, name: int, held: Any, by: int, horizon: int, rounds: Any) -> int | None:
        kind, _, _, latest = self._look(name)
        old = kind in ("sent", "consumed") and latest - by < horizon
        return None if old else keep(self, name, held, by, horizon, rounds)

    patch.setattr(system.Quotient, "_kept", kept)


def _any_step_is_free(patch: pytest.MonkeyPatch) -> None:
    """Reads and landings are taken to be seen by nobody else."""
    patch.setattr(search._Search, "_chosen", lambda self, state, enabled: enabled[:1])


class LateToken(Protocol):
    """The receiver takes nothing in odd rounds, so these tokens are lost."""

    def memory(self) -> None:
        self.flag = Region(index=(RANK,), block=32)
        self.data = Region(index=(RANK, 2), fields={"payload": 512}, compared=())

    @role
    async def worker(self, core: Core) -> None:
        for round in core.rounds():
            for peer in core.destinations():
                slot = self.data[peer][core.rank, round % 2]
                await core.put(slot, core.payload(peer, 0, round))
                await core.quiet()
                await core.put(self.flag[peer][core.rank], round + 1)
                mine = self.flag[core.rank][peer]
                await core.wait_until(mine, lambda found, r=round: found >= r + 1)
                if round % 2 == 0:
                    found = await core.load(self.data[core.rank][peer, 0])
                    core.consume(found, source=peer, token=0, round=round)
            await core.barrier()
        await core.quiet()


CASES: tuple[tuple[type[Protocol], dict[str, Setting], Answer], ...] = (
    (SentinelPolling, {"counts": False, "windows": 2}, PROVED),
    (SentinelPolling, {"counts": False, "windows": 1}, VIOLATED),
    (SentinelPolling, {"counts": False, "dense_traffic": False}, VIOLATED),
    (StopAndWait, {"counts": False, "windows": 1}, VIOLATED),
    (StopAndWait, {"counts": False}, PROVED),
    (LateToken, {}, VIOLATED),
)


def wrong_cases() -> list[int]:
    """The cases that are not answered as they should be."""
    wrong = []
    for i, (kind, settings, expected) in enumerate(CASES):
        instance = instance_of(kind, routing="all", **settings)
        try:
            if unbounded(instance, states=6_000).answer is not expected:
                wrong.append(i)
        except (AssertionError, KeyError):
            wrong.append(i)
    return wrong


def test_the_cases_are_answered_right() -> None:
    """Without a fault each case gets its answer."""
    assert wrong_cases() == []


@pytest.mark.parametrize(
    "fault",
    [
        _residues_do_not_count,
        _choices_are_forgotten,
        _choices_do_not_count,
        _memory_stays,
        _tokens_are_forgotten,
        _any_step_is_free,
    ],
    ids=lambda fault: fault.__name__.strip("_"),
)
def test_a_planted_fault_is_noticed(fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a fault in the engine some case gets another answer."""
    fault(monkeypatch)
    assert wrong_cases() != []


# Premises that do not hold


class Carrying(Protocol):
    """One round of a handshake, with something that is not covered."""

    what: str = parameter("nothing", "what is done with the round")

    def memory(self) -> None:
        self.flag = Region(index=(RANK,), block=32)

    @role
    async def worker(self, core: Core) -> None:
        count, first = 0, None
        for round in core.rounds():
            first = round if self.what == "first" and first is None else first
            count += self.what == "counter"
            value = self.value(core, round, first, count)
            for peer in core.destinations():
                await core.put(self.flag[peer][core.rank], value)
                mine = self.flag[core.rank][peer]
                await core.wait_until(mine, lambda found, v=value: found == v)
            await core.barrier()
            if self.what == "first":
                core.check(round - first >= 0, "a later round is before the first")

    def value(self, core: Core, round: int, first: int, count: int) -> Any:
        match self.what:
            case "twice":
                return 2 * round + 1 if round % 2 else round + 1
            case "less":
                return -round
            case "square":
                return round * round
            case "absolute":
                return round + 1 if round > 0 else 1
            case "counter":
                return count
            case "text":
                return int(str(round + 1)[-1])
            case "all":
                return round + 1 if core.bounds.rounds > 1 else 1
        return round + 1


NOT_COVERED = {
    "twice": "a round times 1 is compared with a round times 2",
    "less": "used as a plain number",
    "square": "Round is times a round (a whole number)",
    "absolute": "compared with 0",
    "counter": "never twice in the same local state",
    "text": "a round is made a text",
    "all": "the number of rounds is used",
    "first": "keeps a round too long",
}


@pytest.mark.parametrize("what", ["nothing", *NOT_COVERED])
def test_what_is_not_covered_is_named(what: str) -> None:
    """A use of a round beside its type, or something carried over, is refused with its line."""
    instance = instance_of(Carrying, what=what)
    verdict = unbounded(instance)
    if what == "nothing":
        assert verdict.answer is PROVED
        return
    assert verdict.answer is UNDECIDED
    assert NOT_COVERED[what] in reason(verdict)
    assert "test_unbounded.py:" in reason(verdict)


class OneWay(Protocol):
    """Rank 0 counts up, and waits for nobody."""

    def memory(self) -> None:
        self.flag = Region(owner=1, index=(), block=32)

    @role(on=[0])
    async def sender(self, core: Core) -> None:
        for round in core.rounds():
            await core.put(self.flag[1], round + 1)
            await core.quiet()

    @role(on=[1])
    async def receiver(self, core: Core) -> None:
        for round in core.rounds():
            await core.wait_until(self.flag[1], lambda found, r=round: found >= r + 1)


def test_a_skew_without_bound_is_not_decided() -> None:
    """A rank that waits for nobody runs ahead: the quotient is not finite, and this is said."""
    verdict = unbounded(instance_of(OneWay))
    assert verdict.answer is UNDECIDED
    assert "rounds apart" in reason(verdict)


class NeverReset(Protocol):
    """A constant flag that nobody resets, in two windows: stale from the third round on."""

    def memory(self) -> None:
        self.flag = Region(index=(RANK, 2), block=32)
        self.data = Region(index=(RANK, 2), fields={"payload": 512}, compared=())

    @role
    async def worker(self, core: Core) -> None:
        for round in core.rounds():
            for peer in core.destinations():
                await core.put(self.data[peer][core.rank, round % 2], core.payload(peer, 0, round))
                await core.fence()
                await core.put(self.flag[peer][core.rank, round % 2], 1)
            for peer in core.sources():
                await core.wait_until(self.flag[core.rank][peer, round % 2], lambda f: f == 1)
                found = await core.load(self.data[core.rank][peer, round % 2])
                core.consume(found, source=peer, token=0, round=round)
            await core.sync("all")
        await core.quiet()


def test_lock_step_does_not_hide_a_stale_flag() -> None:
    """Processes are never more than a round apart, and yet the third round reads the first's."""
    instance = instance_of(NeverReset)
    verdict = unbounded(instance)
    assert [bounded(instance, rounds) for rounds in (1, 2, 3)] == [PROVED, PROVED, VIOLATED]
    assert verdict.answer is VIOLATED
    assert verdict.trace is not None and verdict.trace.question.bounds["rounds"] == 3


# The type


def test_a_round_offers_sums_residues_and_comparisons() -> None:
    """What is allowed gives what numbers give."""
    five, seven = Round(5), Round(7)
    assert (five + 2 == seven, 2 + five == seven, seven - 2 == five) == (True, True, True)
    assert seven - five == 2 and seven % 4 == 3
    assert five < seven and five <= seven and not five > seven and five != seven
    assert isinstance(five, int) and hash(Round(5)) == hash(five)
    assert f"{five}" == str(seven) == "r"


@pytest.mark.parametrize(
    "use",
    [
        lambda r: r * 0,
        lambda r: -2 * r,
        lambda r: r * 1.5,
        lambda r: r * r,
        lambda r: r // 0,
        lambda r: r // r,
        lambda r: 2 // r,
        lambda r: 2 * r == r,
        lambda r: 2 * r < r + 1,
        lambda r: 2 * r - r,
        lambda r: r // 2 == r,
        lambda r: r + r,
        lambda r: -r,
        lambda r: bool(r),
        lambda r: range(r),
        lambda r: [0, 1][r],
        lambda r: r == 0,
        lambda r: r >= 2,
        lambda r: r < 5,
        lambda r: r & 1,
        lambda r: 7 % r,
        lambda r: 10 - r,
        lambda r: r < "a",
    ],
)
def test_everything_else_is_refused(use: Any) -> None:
    """No other operation tells one round from another."""
    with pytest.raises(OutsideRounds):
        use(Round(3))


def test_a_round_is_compared_with_a_number_only_where_that_is_known() -> None:
    """``round + 1`` is never 0, which is what untouched memory holds; of others it is not known."""
    later = Round(3) + 1
    assert later != 0 and later > 0 and not later <= 0
    with pytest.raises(OutsideRounds):
        assert later != 1


def test_a_round_long_past_is_before_all_that_are_kept() -> None:
    """It is below every round from its bound on; more is not known of it."""
    old = Old(4, 1)
    assert old != Round(4) and old < Round(6) and Round(4) > old and old != 0
    for use in (lambda: old == Round(3), lambda: old == Old(4, 1), lambda: old % 2):
        with pytest.raises(NeedsLookback):
            use()


def test_a_value_that_may_hide_a_round_is_refused() -> None:
    """Values are moved only if they are known to the last part."""
    part = Part(0, 1, 0, Round(3), "lead")
    moved = mapped((part, 5), lambda r: Round(r.number_ - 2))
    assert moved[0].round == Round(1) and moved[1] == 5
    assert all(mapped(kind(), lambda r: r) == kind() for kind in LEAVES[:4])
    with pytest.raises(OutsideRounds):
        mapped(frozenset({Round(3)}), lambda r: r)


class Swapped(Protocol):
    """Rank 0 sends tokens that nobody takes, and rank 1 takes some that nobody sent."""

    def memory(self) -> None:
        self.data = Region(index=(RANK,), fields={"payload": 512}, compared=())

    @role
    async def worker(self, core: Core) -> None:
        for round in core.rounds():
            if core.rank == 0 and core.choose(("send", round), (False, True)):
                core.payload(1, 0, round)
            if core.rank == 1 and core.choose(("take", round), (False, True)):
                token = core.payload(0, 1, round)
                core.consume(token.field("payload"), 1, 1, round, owner=0)
            await core.barrier()


def test_lost_tokens_do_not_make_up_for_each_other() -> None:
    """A token that is long past and was never consumed is a failure at whatever end comes."""
    assert unbounded(instance_of(Swapped)).answer is VIOLATED


class CountingGhost(Protocol):
    """A ghost that is written once and looked at for ever."""

    def memory(self) -> None:
        self.seen = Ghost(0)

    @role
    async def worker(self, core: Core) -> None:
        for round in core.rounds():
            if core.choose(("write", round), (False, True)):
                core.ghost_update(self.seen, _newest, round + 1)
            core.ghost_check(self.seen, _near, round + 1, message="too far behind")
            await core.barrier()


def _newest(old: Any, new: Any) -> Any:
    return new


def _near(seen: Any, now: Any) -> bool:
    return bool(seen >= now - 2)


def test_a_ghost_that_is_long_past_is_not_guessed() -> None:
    """A ghost may lie any number of rounds back; whether it is too far is refused or found."""
    assert unbounded(instance_of(CountingGhost)).answer in (VIOLATED, UNDECIDED)


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "sp"),
        ("check", "sp", "--engine", "certificate"),
        ("check", "sp", "--swarm", "2"),
    ],
)
def test_who_cannot_answer_for_all_rounds_says_so(words: tuple[str, ...]) -> None:
    """A command or an engine that is bounded never answers with a few rounds instead."""
    assert run([*words, "--rounds", "unbounded"]) == BAD_INPUT


def test_the_command_line_says_what_it_is_an_answer_to(capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict and the command that repeats it say that rounds are not bounded."""
    assert run(["barrier", "--rounds", "unbounded"]) == 0
    printed = capsys.readouterr().out
    assert "rounds:unbounded" in printed and "unbounded rounds" in printed
    assert "--rounds unbounded" in printed.splitlines()[-1]
    assert run(["barrier", "--rounds", "many"]) == BAD_INPUT


def test_only_what_may_still_be_read_is_live() -> None:
    """A variable is left out only where it is overwritten before it is read, on every way on."""

    async def role(core: Any, given: Any) -> None:
        kept, lost = given, given
        for each in given:
            await core.here(each)
            lost = each
            await core.there(lost)
        try:
            await core.here(lost)
        except ValueError:
            await core.there(kept)

    places = [i.offset for i in dis.get_instructions(role) if i.opname == "YIELD_VALUE"]
    inside, later, behind = (live_at(role.__code__, place) for place in places[:3])
    assert {"each", "kept", "core"} <= inside and "lost" not in inside
    assert "lost" in later and "each" not in later
    assert "kept" in behind and "lost" not in behind


class EndsApart(Protocol):
    """Rank 0 ends with its own rank, rank 1 waits for all: never do both return."""

    def memory(self) -> None:
        self.bell = Region(owner=0, block=8)

    @role
    async def worker(self, core: Core) -> None:
        for _ in core.rounds():
            await core.barrier()
        await core.sync("all" if core.rank else "rank")


@pytest.mark.parametrize("engine", ["quotient", "quotient-full"])
@pytest.mark.parametrize("ordered", [True, False])
def test_where_steps_are_told_apart_a_run_still_ends(ordered: bool, engine: str) -> None:
    """Also where the fabric may take steps that are alike the end of a run remains one of two."""
    profile = CM384.changed({"same_address_order": ordered})
    made = Instance(EndsApart, Bounds(routing="balanced"), profile, {})
    assert unbounded(made, engine).answer is VIOLATED


class MayPollForEver(Protocol):
    """If it is so chosen rank 1 polls two atoms that nobody writes."""

    def memory(self) -> None:
        self.bell = Region(owner=1, block=1024)

    @role
    async def worker(self, core: Core) -> None:
        for round in core.rounds():
            if core.rank and core.choose(("waits", round), (False, True)):
                await core.wait_until(self.bell[1], lambda rung, due=round + 1: rung == due)
            await core.barrier()


def test_a_hang_is_shown_behind_the_choice_that_leads_to_it() -> None:
    """Before it is made a run may still end, so that a run of other choices would show nothing."""
    verdict = unbounded(instance_of(MayPollForEver))
    assert verdict.answer is VIOLATED and verdict.trace is not None
