"""The emulator: protocols on real bytes, under every adversary, each step one of the model's."""

from __future__ import annotations

import pytest

from syncproof.checkers.emulator.operations import HANDLERS
from syncproof.checkers.emulator.run import Options, run
from syncproof.checkers.emulator.schedule import ADVERSARIES
from syncproof.models.bounds import Bounds
from syncproof.models.instance import Instance
from syncproof.models.operations import Kind
from syncproof.models.profiles import load_profile
from syncproof.registry import built_ins

PROVED = ("sw", "tff", "dc", "sp", "bsp", "cumsum", "ubep", "barrier")


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
