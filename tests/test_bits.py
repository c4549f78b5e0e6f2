"""Bits: formats against numpy and struct, free patterns against trial, checksums against zlib."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from syncproof.checkers import bits
from syncproof.checkers.bits import FORMATS, checksums, sentinels
from syncproof.checkers.bits.sentinels import apply, ask_sentinel, free_patterns, result_with
from syncproof.cli import run
from syncproof.models.errors import UserError

BF16, FP16, E5M2, E4M3, INT8 = FORMATS.values()


def test_fp16_decodes_as_numpy_does() -> None:
    """All 65,536 patterns of FP16 have numpy's value."""
    theirs = np.arange(65_536, dtype=np.uint16).view(np.float16).astype(np.float64)
    ours = np.array([FP16.decode(p) for p in range(65_536)])
    assert np.array_equal(ours, theirs, equal_nan=True)


def test_bf16_is_the_upper_half_of_fp32() -> None:
    """All 65,536 patterns of BF16 have the value of the float with these upper bits."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        theirs = (np.arange(65_536, dtype=np.uint32) << 16).view(np.float32).astype(np.float64)
    ours = np.array([BF16.decode(p) for p in range(65_536)])
    assert np.array_equal(ours, theirs, equal_nan=True)


def test_fp8_has_the_published_landmarks() -> None:
    """Largest and smallest values of the OCP 8-bit floating-point specification, 5.2.3."""
    assert E4M3.decode(0x7E) == 448 and E4M3.decode(0x01) == 2.0**-9
    assert E5M2.decode(0x7B) == 57_344 and E5M2.decode(0x01) == 2.0**-16
    assert sum(map(E4M3.is_nan, range(256))) == 2 and sum(map(E5M2.is_nan, range(256))) == 6
    assert E4M3.is_finite(0x78) and not E5M2.is_finite(0x7C)


def test_fp16_arithmetic_is_numpys() -> None:
    """Sums, differences and products of 3,000 pairs of FP16 are numpy's, signs of zero too."""
    random = np.random.default_rng(1)
    pairs = random.integers(0, 65_536, size=(3_000, 2), dtype=np.uint16)
    pairs[:50] &= 0x83FF  # subnormals
    pairs[50:60] &= 0x8000  # zeros
    with np.errstate(all="ignore"):
        for a, b in pairs:
            if not (FP16.is_finite(int(a)) and FP16.is_finite(int(b))):
                continue
            x, y = a.view(np.float16), b.view(np.float16)
            for name, theirs in (("add", x + y), ("sub", x - y), ("mul", x * y)):
                assert apply(FP16, name, int(a), int(b)) == int(theirs.view(np.uint16)), (a, b)


@pytest.mark.parametrize("format", (BF16, FP16, E5M2, E4M3), ids=lambda f: f.name)
def test_finite_values_encode_as_themselves(format: bits.Format) -> None:
    """Decoding and encoding a finite pattern gives it back."""
    for pattern in range(0, 1 << format.bits, 1 if format.bits == 8 else 7):
        if format.is_finite(pattern):
            value = format.decode(pattern)
            negative = bool(pattern >> (format.bits - 1))
            assert format.encode(Fraction(value), negative) == pattern


# Free patterns


@pytest.mark.parametrize("format", (BF16, FP16), ids=lambda f: f.name)
def test_no_finite_arithmetic_gives_a_nan(format: bits.Format) -> None:
    """z3 proves it; the free patterns are the NaNs, all others are results."""
    free = free_patterns(format)
    assert set(free) == {p for p in range(1 << format.bits) if format.is_nan(p)}
    assert len(free) == 2 * (2**format.mantissa - 1)
    zero, infinity = 0, ((1 << format.exponent) - 1) << format.mantissa
    for pattern in (zero, 1, 1 << (format.bits - 1), infinity, infinity - 1, 0x3F80):
        found = result_with(format, pattern)
        assert found is not None and apply(format, *found) == pattern


def test_every_other_bf16_pattern_is_a_result() -> None:
    """What is finite is itself plus 0 (every third is tried), and the infinities overflow."""
    negative = 1 << 15
    for pattern in range(0, 1 << 16, 3):
        if BF16.is_finite(pattern):
            zero = negative if pattern == negative else 0
            assert apply(BF16, "add", pattern, zero) == pattern
    for sign in (0, negative):
        largest = 0x7F7F | sign
        assert apply(BF16, "add", largest, largest) == 0x7F80 | sign


def test_free_patterns_of_eight_bits() -> None:
    """E5M2 keeps its NaNs free; E4M3 overflows into them, and INT8 uses every pattern."""
    assert set(free_patterns(E5M2)) == {0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF}
    assert free_patterns(E4M3) == ()
    assert free_patterns(INT8) == ()


def test_planted_nan_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If some finite operands did give a NaN, nothing would be called free."""
    monkeypatch.setattr(sentinels, "_finite", lambda term: term == term)
    assert free_patterns(BF16) == ()


# One sentinel


def holds(format: bits.Format, sentinel: int) -> list[bool]:
    return [each.holds for each in ask_sentinel(format, sentinel)]


def test_negative_zero_is_a_poor_sentinel() -> None:
    """-0.0 is a product of finite values and equals 0.0; flushed, it equals every subnormal."""
    raw, result, equal, flushed, itself = ask_sentinel(BF16, 0x8000)
    assert raw.holds and result.holds and not itself.holds
    assert equal.patterns == (0x0000,)
    assert len(flushed.patterns) == 2 * 2**7 - 1
    for pattern in flushed.patterns:
        (value,) = struct.unpack("<f", struct.pack("<I", pattern << 16))
        assert abs(value) < 2.0**-126


def test_nan_is_free_but_only_by_its_bits() -> None:
    """No result equals a NaN; compared as a number it is taken for a token at once."""
    assert holds(BF16, 0x7FC1) == [True, False, False, False, True]


def test_ordinary_number_is_no_sentinel() -> None:
    """1.0 is a result, and compared as a number only itself."""
    assert holds(BF16, 0x3F80) == [True, True, False, False, False]


# Checksums


@pytest.mark.parametrize("name", ("sum", "xor", "fletcher", "crc32"))
def test_stale_markers_with_the_same_checksum(name: str) -> None:
    """Two markers of 4 B, both stale, verify: with bytes that zlib or plain sums confirm."""
    found = bits.stale_markers(name)
    assert found is not None
    assert all(old != new for old, new in zip(found.held, found.wanted, strict=True))
    assert bits.checksum(name, found.held) == bits.checksum(name, found.wanted) == found.value


@pytest.mark.parametrize("name", ("sum", "xor", "crc32"))
def test_single_word_has_a_checksum_of_its_own(name: str) -> None:
    """A single marker of 4 B is told apart from every other: proved."""
    assert bits.stale_markers(name, blocks=1) is None


def test_fletcher_takes_all_ones_for_all_zeros() -> None:
    """Modulo 65,535 even a single marker collides: 0xffff stands for 0."""
    assert bits.checksum("fletcher", [b"\0\0\0\0"]) == bits.checksum("fletcher", [b"\xff" * 4])
    assert bits.stale_markers("fletcher", blocks=1) is not None


def test_checksums_are_the_published_ones() -> None:
    """Check values of CRC-32 and Fletcher-32 from their descriptions."""
    assert bits.checksum("crc32", [b"123456789"]) == 0xCBF43926
    assert bits.checksum("fletcher", [b"abcdef"]) == 0x56502D2A
    assert bits.checksum("fletcher", [b"abcdefgh"]) == 0xEBE19591


def test_untouched_window_verifies_itself() -> None:
    """Zeros have the checksum 0 under sum, xor and Fletcher, not under CRC-32."""
    verifies = {name: bits.zero_window(name) is not None for name in bits.CHECKSUMS}
    assert verifies == {"sum": True, "xor": True, "fletcher": True, "crc32": False}


@pytest.mark.parametrize("find", (bits.torn_tail, bits.shared_lead), ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", bits.CHECKSUMS)
def test_what_the_leads_do_not_cover(find: Callable[[str], bits.Collision], name: str) -> None:
    """Tails of an earlier round verify under every checksum of the leads."""
    found = find(name)
    assert found.held != found.wanted
    leads = [[block[:32] for block in each] for each in (found.held, found.wanted)]
    assert leads[0] == leads[1] and all(len(block) == 512 for block in found.held)


def test_witness_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong formula is found out by plain Python before its bytes are given out."""
    monkeypatch.setattr(checksums, "_equal", lambda name, one, other: one[0] != other[0])
    with pytest.raises(checksums.NotChecked):
        bits.stale_markers("sum")


@pytest.mark.parametrize(("name", "size"), (("md5", 4), ("sum", 3), ("sum", 0), ("sum", 36)))
def test_bad_checksum_is_a_user_error(name: str, size: int) -> None:
    """An unknown checksum or a size that does not fit is refused."""
    with pytest.raises(UserError):
        bits.stale_markers(name, size=size)


# The command


def test_command_tells_patterns_and_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    """``check-protocol bits`` gives the free patterns and the bytes, as text and as JSON."""
    assert run(["bits", "--format", "bf16"]) == 0
    assert "0x7f81 to 0x7fff, 0xff81 to 0xffff" in " ".join(capsys.readouterr().out.split())
    assert run(["bits", "--sentinel", "0x8000"]) == 0
    assert "252 more would never be noticed" in " ".join(capsys.readouterr().out.split())
    assert run(["bits", "--checksum", "crc32", "--json", "-"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["checksums"]
    held, wanted = (
        [bytes.fromhex(x) for x in told["stale markers"][k]] for k in ("held", "wanted")
    )
    assert held != wanted and zlib.crc32(b"".join(held)) == zlib.crc32(b"".join(wanted))
    assert told["untouched window"] is None


@pytest.mark.parametrize(
    "arguments",
    (
        ["--format", "fp64"],
        ["--sentinel", "nan"],
        ["--sentinel", "0x10000"],
        ["--checksum", "md5"],
        ["--checksum", "sum", "--markers", "0"],
    ),
    ids=" ".join,
)
def test_command_refuses_in_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is no format, pattern or checksum is exit 2, in one line that says what would be."""
    assert run(["bits", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
