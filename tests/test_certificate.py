"""The certificate of a single run: never given where another run exists, and given often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from syncproof.checkers.automatic import check as check_automatically
from syncproof.checkers.certificate import certify
from syncproof.checkers.certificate.knowledge import Known
from syncproof.checkers.certificate.run import NotCertified, SingleRun
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.search import (
    Budget,
    Meter,
    explore,
    hung_states,
    judge_races,
)
from syncproof.models.core import Core
from syncproof.models.instance import Instance
from syncproof.models.protocol import role
from syncproof.models.transitions import PROPERTIES
from syncproof.models.verdict import Answer, Verdict
from tests.letters import draw, instance_of
from tests.small import FlagAfterData, Meeting, OneRound, instance, with_settings

SEEDS = 400
MANY_SEEDS = 100_000
MOST_STATES = 2_000


def is_certified(made: Instance) -> int:
    """The number of steps of the one run, or 0 without a certificate."""
    run = SingleRun(made.parts({}))
    try:
        run.run()
    except NotCertified:
        return 0
    return run.steps


def has_one_clean_outcome(made: Instance) -> bool | None:
    """Whether every run of the full graph ends in one state with nothing wrong anywhere.

    None if the graph is too large to say.
    """
    meter = Meter(Budget(states=MOST_STATES))
    found = explore(made.system({}), None, frozenset(PROPERTIES), meter)
    if found.stopped.startswith("--budget"):
        return None
    clean = not (found.stopped or found.findings or hung_states(found) or judge_races(found))
    return clean and len(found.good) == 1


def wrong_certificates(seeds: range) -> tuple[int, list[int]]:
    """How many letters are certified, and the seeds of those that have another outcome."""
    certified, wrong = 0, []
    for seed in seeds:
        made = instance_of(draw(seed))
        if is_certified(made):
            outcome = has_one_clean_outcome(made)
            certified += outcome is not None
            if outcome is False:
                wrong.append(seed)
    return certified, wrong


def test_never_certified_where_the_full_graph_differs() -> None:
    """Of random protocols that are certified, the full graph of each has one clean outcome."""
    certified, wrong = wrong_certificates(range(SEEDS))
    assert wrong == []
    assert certified > SEEDS // 20


@pytest.mark.long
def test_never_certified_where_the_full_graph_differs_at_length() -> None:
    """The same on a hundred thousand protocols."""
    certified, wrong = wrong_certificates(range(MANY_SEEDS))
    assert wrong == []
    assert certified > MANY_SEEDS // 20


def test_share_of_single_outcome_protocols_that_is_certified() -> None:
    """At least four in five of the random protocols with one clean outcome are certified.

    The rest are waits over several atoms of which only the compared ones matter.
    """
    single = certified = 0
    for seed in range(SEEDS, SEEDS + 150):
        made = instance_of(draw(seed))
        if has_one_clean_outcome(made):
            single += 1
            certified += bool(is_certified(made))
    assert single > 20
    assert certified >= 0.8 * single, f"{certified} of {single}"


def knows_everything(*_: Any) -> bool:
    return True


def nothing(*_: Any) -> None:
    return None


FAULTS: dict[str, tuple[type, str, Callable[..., Any]]] = {
    "a landing is always known": (Known, "has_landed", knows_everything),
    "a step is always known": (Known, "has_step", knows_everything),
    "reads are not checked": (SingleRun, "_check_read", nothing),
    "writes are not checked": (SingleRun, "_check_write", nothing),
    "returns are not checked": (SingleRun, "_judge_return", nothing),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_check_is_needed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With any one of its checks taken away the certificate is wrong, and this test sees it."""
    where, name, replacement = FAULTS[fault]
    monkeypatch.setattr(where, name, replacement)
    assert any(wrong_certificates(range(seed, seed + 1))[1] for seed in range(3_000))


@pytest.mark.parametrize(("ranks", "tokens"), [(2, 1), (3, 1), (3, 2), (8, 2)])
def test_one_run_has_one_state_more_than_steps(ranks: int, tokens: int) -> None:
    """One-round Sentinel Polling takes five steps a token and pair: design section 7's counts."""
    made = instance(OneRound, ranks=ranks, tokens=tokens)
    run = SingleRun(made.parts({}))
    with pytest.raises(NotCertified, match="may return before"):
        run.run()  # it ends without a quiet, which is all that is wrong with it
    made = instance(Quieted, ranks=ranks, tokens=tokens)
    pairs = ranks * (ranks - 1)
    assert is_certified(made) == 5 * tokens * pairs + 2 * ranks


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


def test_what_it_does_not_cover_has_no_certificate() -> None:
    """Ghosts are left to the general engines, by name."""
    made = instance(Meeting)
    obstacle = certify(made, question_of(made, "meeting"))
    assert not isinstance(obstacle, Verdict)
    assert "ghost" in obstacle
