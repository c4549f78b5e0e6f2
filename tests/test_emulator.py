"""The emulator: protocols on real bytes, under every adversary, each step one of the model's."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any

import numpy
import pytest

from syncproof.checkers.emulator.content import FORMATS, Content, Garbage, Shape
from syncproof.checkers.emulator.events import Event
from syncproof.checkers.emulator.operations import HANDLERS
from syncproof.checkers.emulator.results import Result
from syncproof.checkers.emulator.run import Options, run
from syncproof.checkers.emulator.schedule import ADVERSARIES
from syncproof.models.bounds import Bounds
from syncproof.models.core import Core
from syncproof.models.instance import Instance
from syncproof.models.operations import Kind
from syncproof.models.profiles import load_profile
from syncproof.models.values import SENTINEL, Part
from syncproof.protocols.dc import DataForChecksum
from syncproof.registry import built_ins

PROVED = ("sw", "tff", "dc", "sp", "bsp", "cumsum", "ubep", "barrier")


BY_TURNS = ("sw", "bsp", "dc", "cumsum", "ubep", "tff", "sp", "barrier")
"""The same in the order in which they take turns with the adversaries."""


def adversary_of(name: str) -> str:
    """The adversary of a protocol where each has one."""
    return list(ADVERSARIES)[BY_TURNS.index(name) % len(ADVERSARIES)]


def instance_of(name: str, ranks: int, tokens: int, rounds: int, fabric: str = "cm384") -> Instance:
    bounds = Bounds(ranks, tokens, rounds)
    return Instance(built_ins()[name], bounds, load_profile(fabric), {})


def test_every_operation_is_handled() -> None:
    """The emulator knows what each operation of a role does."""
    assert set(HANDLERS) == set(Kind)


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("name", PROVED)
def test_proved_protocol_runs(name: str, adversary: str) -> None:
    """Every byte is right, nothing is left in flight, and the model allows every step."""
    made = instance_of(name, 3, 2, 3)
    found = run(made, Options(seed=1, adversary=adversary))
    assert found.outcome == "complete", found
    assert found.walked == found.steps or name == "dc"
    calls = {"ubep": 2, "barrier": 0}.get(name, 1)
    assert found.blocks == 3 * 2 * 2 * 3 * calls


def assert_all_right(found: Result) -> None:
    """Complete: no wrong byte, nothing in flight, no step that the model does not allow."""
    assert found.outcome == "complete", found
    assert found.walked and not found.in_flight and not found.in_model


@pytest.mark.heavy
@pytest.mark.parametrize("name", BY_TURNS)
def test_proved_protocol_runs_50_rounds(name: str) -> None:
    """8 ranks, 4 tokens and 50 rounds under an adversary for each protocol, all steps walked."""
    options = Options(seed=2, adversary=adversary_of(name))
    assert_all_right(run(instance_of(name, 8, 4, 50), options))


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("name", PROVED)
def test_proved_protocol_runs_among_many_ranks(name: str, adversary: str) -> None:
    """8 ranks, 2 tokens and 6 rounds under each adversary, all steps walked."""
    assert_all_right(run(instance_of(name, 8, 2, 6), Options(seed=2, adversary=adversary)))


@pytest.mark.long
@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("name", PROVED)
def test_proved_protocol_runs_50_rounds_under_each(name: str, adversary: str) -> None:
    """8 ranks, 4 tokens and 50 rounds under each adversary, all steps walked."""
    assert_all_right(run(instance_of(name, 8, 4, 50), Options(seed=2, adversary=adversary)))


@pytest.mark.long
@pytest.mark.parametrize("name", BY_TURNS)
def test_proved_protocol_runs_1000_rounds(name: str) -> None:
    """1,000 rounds of each protocol, every step walked."""
    options = Options(seed=5, adversary=adversary_of(name))
    assert_all_right(run(instance_of(name, 8, 4, 1000), options))


@pytest.mark.parametrize("name", ("sp", "tff"))
def test_proved_protocol_runs_on_threads(name: str) -> None:
    """Real threads: the same, and no thread is left."""
    before = threading.active_count()
    for adversary in ADVERSARIES:
        options = Options(seed=3, schedule="free", adversary=adversary)
        found = run(instance_of(name, 3, 1, 3), options)
        assert found.outcome == "complete", found
    assert threading.active_count() == before


@pytest.mark.long
@pytest.mark.parametrize("name", PROVED)
def test_proved_protocol_runs_on_64_ranks(name: str) -> None:
    """64 ranks, one token, ten rounds."""
    bounds = Bounds(64, 1, 10, topk=8)
    made = Instance(built_ins()[name], bounds, load_profile("cm384"), {})
    assert_all_right(run(made, Options(seed=4, adversary=adversary_of(name))))


def test_a_seed_repeats_its_run() -> None:
    """The same options give the same steps, byte for byte; another seed gives others."""
    seen = []
    for seed in (5, 5, 6):
        told: list[Event] = []
        run(instance_of("sp", 3, 1, 2), Options(seed=seed), told.append)
        seen.append(told)
    assert seen[0] == seen[1] != seen[2]


@pytest.mark.parametrize("number_format", FORMATS)
def test_tokens_are_numbers_that_come_back(number_format: str) -> None:
    """A token is finite numbers, differs from other tokens, and is known by all of its bytes."""
    content, shape = Content(number_format), Shape(((0, 480),))
    tokens = [Part(0, 1, token, 0, "rest") for token in range(50)]
    data = [content.encode(each, shape) for each in tokens]
    assert len(set(data)) == 50
    assert [content.decode(each, shape) for each in data] == tokens
    wrong = data[0][:-1] + bytes([data[0][-1] ^ 1])
    assert isinstance(content.decode(wrong, shape), Garbage)
    assert not content.same(content.decode(wrong, shape), tokens[0])
    if number_format == "bf16":
        bits = numpy.frombuffer(b"".join(data), dtype="<u2").astype("<u4") << 16
        assert numpy.isfinite(bits.view("<f4")).all()
    if number_format == "fp16":
        assert numpy.isfinite(numpy.frombuffer(b"".join(data), dtype="<f2")).all()


def test_sentinel_of_bf16_is_no_number() -> None:
    """No finite token has the sentinel's bytes; with a small domain one has, and is not seen."""
    sentinel = Content().encode(SENTINEL, Shape(((0, 32),)))
    bits = numpy.frombuffer(sentinel, dtype="<u2").astype("<u4") << 16
    assert numpy.isnan(bits.view("<f4")).all()
    found = run(instance_of("sp", 2, 1, 2), Options(seed=1, domain=1, conform=False))
    assert found.outcome == "stuck"
    assert any("window" in each.waits_for for each in found.blocked)
    assert any("SENTINEL" in each.sees for each in found.blocked)


def _batches() -> tuple[tuple[bytes, bytes], tuple[bytes, bytes], tuple[bytes, bytes]]:
    """Three batches of two leads, all finite BF16 numbers; the first two have one sum of words."""
    random = numpy.random.default_rng(7)
    one, other = (random.integers(0, 2**14, 16, dtype="<u2") for _ in range(2))
    moved = other.view("<u4")[0] // 2
    third, fourth = one.copy(), other.copy()
    third.view("<u4")[0] += moved
    fourth.view("<u4")[0] -= moved
    old, twin = (one.tobytes(), other.tobytes()), (third.tobytes(), fourth.tobytes())
    fourth.view("<u4")[1] += 1
    return old, twin, (third.tobytes(), fourth.tobytes())


OLD, TWIN, OTHER = _batches()


class Twins(DataForChecksum):
    """Leads are 32 real bytes, and the checksum is the sum of their 32-bit words."""

    batches = (OLD, TWIN)

    def lead(self, core: Core, source: int, destination: int, token: int, round: int) -> Any:
        """Two batches in turn."""
        return self.batches[round // self.windows % 2][token]

    def checksum_of(self, leads: tuple[Any, ...], round: int) -> Hashable:
        """The sum of all words of all leads."""
        if not all(isinstance(lead, bytes) for lead in leads):
            return None
        words = numpy.frombuffer(b"".join(leads), dtype="<u4")
        return (int(words.sum(dtype="<u4")), round)


class Others(Twins):
    """The same with batches whose sums differ."""

    batches = (OLD, OTHER)


@pytest.mark.parametrize("kind", (Twins, Others))
def test_checksum_twins_deceive_the_receiver(kind: type[DataForChecksum]) -> None:
    """Different bytes with one checksum: the old batch is taken for the new one, and only then."""
    assert len({*OLD, *TWIN}) == len({*OLD, *OTHER}) == 4
    bounds = Bounds(2, 2, 3, routing=(((0, 2), (0, 0)),))
    made = Instance(kind, bounds, load_profile("cm384"), {})
    outcomes = (
        run(made, Options(seed=seed, adversary=adversary, conform=False))
        for seed in range(8)
        for adversary in ADVERSARIES
    )
    deceived = next((each for each in outcomes if each.outcome != "complete"), None)
    if kind is Others:
        assert deceived is None
        return
    assert deceived is not None and deceived.properties == ("happens-before",)
    assert "expected" in deceived.wrong[0].difference
