"""Bytes that `check-protocol bits` finds: receivers are deceived by them, or wait for ever."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from syncproof.checkers.bits import CHECKSUMS, checksum, stale_markers
from syncproof.checkers.emulator.content import Content
from syncproof.checkers.emulator.run import Options, run
from syncproof.checkers.emulator.schedule import ADVERSARIES
from syncproof.checkers.emulator.twins import Twins, kind_with
from syncproof.cli import run as command
from syncproof.models.bounds import Bounds
from syncproof.models.instance import Instance
from syncproof.models.profiles import load_profile
from syncproof.protocols.dc import DataForChecksum
from tests.test_emulator import instance_of

Captured = pytest.CaptureFixture[str]
IN_TURN = ("--schedule", "deterministic", "--routing", "balanced")


def answers(tmp_path: Path, *words: str) -> str:
    """A file of ``bits --json``."""
    path = str(tmp_path / "bits.json")
    assert command(["bits", *words, "--json", path]) == 0
    return path


def stale_token(kind: type[DataForChecksum], seeds: int = 60) -> str:
    """What the first receiver that takes an old round's token for a new one is told; or nothing.

    Only tokens of a later round than the first two can be such.
    """
    bounds = Bounds(2, 2, 3, routing=(((0, 2), (0, 0)),))
    made = Instance(kind, bounds, load_profile("cm384"), {})
    for seed in range(seeds):
        for adversary in ADVERSARIES:
            found = run(made, Options(seed=seed, adversary=adversary))
            assert found.outcome in ("complete", "wrong", "stuck"), found.refused
            told = [each.message for each in found.wrong if each.property == "happens-before"]
            if told and "round 2" in told[0] and "round 0" in told[0]:
                return told[0]
    return ""


@pytest.mark.parametrize("name", CHECKSUMS)
def test_twins_of_the_solver_deceive_the_receiver(name: str) -> None:
    """Two batches that z3 (for CRC-32, elimination) finds to have one checksum: the receiver
    takes the token of round 0, still in its slot, for that of round 2. The model agrees."""
    found = stale_markers(name, 2)
    assert found is not None
    made = instance_of("dc", 2, 2, 3)
    twins = Twins(name, found.held, found.wanted)
    assert checksum(name, found.held) == checksum(name, found.wanted)
    assert stale_token(kind_with(made, twins)) != ""  # type: ignore[arg-type]


class Apart(Twins):
    """Batches that are no twins, let through."""

    def __post_init__(self) -> None:
        assert checksum(self.checksum, self.held) != checksum(self.checksum, self.wanted)


def test_batches_that_are_no_twins_deceive_nobody() -> None:
    """One bit more in the second batch, and no old token is taken for a new one."""
    found = stale_markers("crc32", 2)
    assert found is not None
    first, *others = found.wanted
    changed = (bytes([first[0] ^ 1]) + first[1:], *others)
    made = instance_of("dc", 2, 2, 3)
    twins, apart = (
        kind_with(made, kind("crc32", found.held, wanted))
        for kind, wanted in ((Twins, found.wanted), (Apart, changed))
    )
    assert stale_token(twins, 10) != ""  # type: ignore[arg-type]
    assert stale_token(apart, 10) == ""  # type: ignore[arg-type]


def test_command_puts_twins_into_a_run(tmp_path: Path, capsys: Captured) -> None:
    """``bits --json``, ``run --bytes-from``: wrong bytes, and a command that shows them again."""
    path = answers(tmp_path, "--checksum", "crc32")
    words = ["run", "dc", "--tokens", "2", "--bytes-from", path, *IN_TURN]
    assert command([*words, "--runs", "60", "--adversary", "all"]) == 1
    out = capsys.readouterr().out
    assert "happens-before is broken" in out and "expected" in out
    again = next(line for line in out.splitlines() if line.startswith("again: check-protocol "))
    assert command(again.split()[2:]) == 1
    assert "happens-before is broken" in capsys.readouterr().out


def test_finite_sentinel_of_real_numbers_hangs(tmp_path: Path, capsys: Captured) -> None:
    """BF16 1.0 as the sentinel: ``bits`` says that raw bytes can equal it, and a token of ones is
    never noticed; with other tokens the same sentinel does no harm."""
    path = answers(tmp_path, "--format", "bf16", "--sentinel", "0x3f80")
    assert command(["run", "sp", "--bytes-from", path, *IN_TURN]) == 1
    out = capsys.readouterr().out
    assert "nobody can go on" in out and "SENTINEL" in out
    harmless = run(instance_of("sp", 2, 1, 3), Options(seed=1, sentinel=0x3F80))
    assert harmless.outcome == "complete" and harmless.blocks


def _changed(path: str, change: Any) -> str:
    data = json.loads(Path(path).read_text())
    change(data)
    Path(path).write_text(json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("asked", "change", "protocol", "said"),
    [
        ("--checksum sum", lambda d: d.update(kind="verdict"), "dc", "no answer of bits"),
        ("--checksum sum", lambda d: d.update(schema=9), "dc", "no answer of bits"),
        ("--checksum sum", lambda d: d["checksums"].clear(), "dc", "0 checksums"),
        ("--checksum sum", lambda d: d["checksums"][0].pop("stale markers"), "dc", "be read"),
        (
            "--checksum sum",
            lambda d: d["checksums"][0]["stale markers"]["held"].reverse(),
            "dc",
            "no twins of sum",
        ),
        ("--checksum crc32 --markers 3", lambda d: None, "dc", "--tokens 3"),
        ("--checksum crc32 --markers 1", lambda d: None, "dc", "tells all batches"),
        ("--checksum sum", lambda d: None, "sp", "has no checksum"),
        ("--format bf16", lambda d: None, "sp", "no sentinel"),
    ],
)
def test_file_that_does_not_fit_is_refused(
    asked: str, change: Any, protocol: str, said: str, tmp_path: Path, capsys: Captured
) -> None:
    """One line that says what is wrong with the file."""
    path = _changed(answers(tmp_path, *asked.split()), change)
    capsys.readouterr()
    assert command(["run", protocol, "--tokens", "2", "--bytes-from", path, *IN_TURN]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def test_log_does_not_name_the_bytes(tmp_path: Path, capsys: Captured) -> None:
    """A log's first line could not say which protocol that was."""
    words = ["run", "dc", "--bytes-from", "x.json", "--log", str(tmp_path / "log.jsonl")]
    assert command(words) == 2
    assert "--log" in capsys.readouterr().err


def test_same_bytes_are_the_same_value() -> None:
    """A number and a string of bytes are one if a lead of them has the same 32 B."""
    content = Content()
    assert content.same(0, bytes(4)) and not content.same(1, bytes(4))
    assert content.same(b"ab", b"ab\0") and not content.same(b"ab", b"abc")
