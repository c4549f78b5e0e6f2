"""Checksums over the leads of a batch: which bytes make two different batches look the same?

z3 finds the bytes or proves that there are none (for CRC-32, linear algebra does); each checksum
stands here in plain Python (`zlib`), by which every witness is checked before it is given out.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from syncproof.models.errors import UserError

LEAD, BLOCK, WORD = 32, 512, 4


def _words(data: bytes) -> list[int]:
    return [int.from_bytes(data[i : i + WORD], "little") for i in range(0, len(data), WORD)]


def _xor(data: bytes) -> int:
    found = 0
    for word in _words(data):
        found ^= word
    return found


def _fletcher(data: bytes) -> int:
    """Fletcher-32: sums modulo 65,535 of 16-bit words, and of these sums."""
    first = second = 0
    for i in range(0, len(data), 2):
        first = (first + int.from_bytes(data[i : i + 2], "little")) % 65_535
        second = (second + first) % 65_535
    return second << 16 | first


CHECKSUMS: dict[str, Callable[[bytes], int]] = {
    "sum": lambda data: sum(_words(data)) % 2**32,
    "xor": _xor,
    "crc32": zlib.crc32,
    "fletcher": _fletcher,
}


def checksum(name: str, leads: Sequence[bytes]) -> int:
    """The checksum of a batch: over its leads, one behind the other."""
    if name not in CHECKSUMS:
        expected = ", ".join(CHECKSUMS)
        raise UserError(f"no checksum {name!r}", where="--checksum", expected=expected)
    return CHECKSUMS[name](b"".join(leads))


class NotChecked(Exception):
    """A witness of z3 that plain Python does not confirm: an error of ours."""


@dataclass(frozen=True)
class Collision:
    """A window whose content verifies and is not what it should hold.

    ``held`` and ``wanted`` are a marker, a lead or a block for each slot; ``value`` is the checksum
    of what is held, and what the checksum's cell holds.
    """

    checksum: str
    held: tuple[bytes, ...]
    wanted: tuple[bytes, ...]
    value: int
    text: str

    def __post_init__(self) -> None:
        if self.held == self.wanted or not self.held:
            raise NotChecked("the two contents are one")


def stale_markers(name: str, blocks: int = 2, size: int = WORD) -> Collision | None:
    """Two batches of markers of ``size`` bytes that differ in *every* slot and have one checksum.

    None is a proof that there are none. ``size`` is a multiple of 4 bytes.
    """
    if size % WORD or not 0 < size <= LEAD or not 0 < blocks <= 64:
        raise UserError(
            f"{blocks} markers of {size} B", where="bits", expected="1 to 64 of 4 to 32 B, by 4"
        )
    if name not in CHECKSUMS:
        raise UserError(f"no checksum {name!r}", where="--checksum", expected=", ".join(CHECKSUMS))
    found = _collide_linearly(blocks, size) if name == "crc32" else _collide(name, blocks, size)
    if found is None:
        return None
    old, new = (tuple(data[i : i + size] for i in range(0, len(data), size)) for data in found)
    if checksum(name, old) != checksum(name, new):
        raise NotChecked(f"{name} of {old} and {new} differ")
    text = "every marker is that of an earlier round, and the checksum agrees"
    return Collision(name, old, new, checksum(name, new), text)


def _collide(name: str, blocks: int, size: int) -> tuple[bytes, bytes] | None:
    """Two strings of bytes that differ in every slot and have one checksum, from z3."""
    import z3

    solver = z3.Solver()
    unit = 2 if name == "fletcher" else WORD
    count = blocks * size // unit
    if name == "fletcher":
        held, wanted = ([z3.Int(f"{w}{i}") for i in range(count)] for w in ("held", "wanted"))
        solver.add(*[z3.And(term >= 0, term < 2**16) for term in (*held, *wanted)])
        solver.add(*_equal_fletcher(held, wanted))
    else:
        held, wanted = (
            [z3.BitVec(f"{which}{i}", 32) for i in range(count)] for which in ("held", "wanted")
        )
        solver.add(_equal(name, held, wanted))
    for slot in range(blocks):
        here = range(slot * size // unit, (slot + 1) * size // unit)
        solver.add(z3.Or([held[i] != wanted[i] for i in here]))
    answer = solver.check()
    if answer == z3.unknown:
        raise NotChecked(f"z3 says unknown: {solver.reason_unknown()}")
    if answer == z3.unsat:
        return None
    model = solver.model()

    def bytes_of(terms: Sequence[Any]) -> bytes:
        values = [model.eval(each, model_completion=True).as_long() for each in terms]
        return b"".join(value.to_bytes(unit, "little") for value in values)

    return bytes_of(held), bytes_of(wanted)


def _equal(name: str, one: Sequence[Any], other: Sequence[Any]) -> Any:
    """That two strings of 32-bit words have one checksum."""
    import z3

    totals = []
    for words in (one, other):
        total = z3.BitVecVal(0, 32)
        for word in words:
            total = total + word if name == "sum" else total ^ word
        totals.append(total)
    return totals[0] == totals[1]


def _collide_linearly(blocks: int, size: int) -> tuple[bytes, bytes] | None:
    """The same for CRC-32, by elimination: of equal length it is linear in the bits.

    None is a proof: the differences that it does not see are zero in some slot.
    """
    length = blocks * size
    unseen = _unseen_differences(length)
    found = [0] * length
    for slot in range(blocks):
        here = slice(slot * size, (slot + 1) * size)
        options = [each for each in unseen if any(each[here])]
        if not options:
            return None
        done = [slice(s * size, (s + 1) * size) for s in range(slot + 1)]
        for each in [[0] * length, *options, *_sums_of_two(options)]:
            trial = [a ^ b for a, b in zip(found, each, strict=True)]
            if all(any(trial[part]) for part in done):
                found = trial
                break
        else:
            raise NotChecked("no sum of three unseen differences changes every slot")
    wanted = bytes(i % 251 + 1 for i in range(length))
    return bytes(a ^ b for a, b in zip(wanted, found, strict=True)), wanted


def _sums_of_two(options: Sequence[Sequence[int]]) -> list[list[int]]:
    few = options[:16]
    return [[a ^ b for a, b in zip(x, y, strict=True)] for x in few for y in few]


def _unseen_differences(length: int) -> list[list[int]]:
    """A basis of the differences of strings of ``length`` bytes that CRC-32 does not see."""
    nothing = zlib.crc32(bytes(length))
    pivots: dict[int, tuple[int, int]] = {}
    found = []
    for bit in range(8 * length):
        string = 1 << bit
        image = zlib.crc32(string.to_bytes(length, "little")) ^ nothing
        while image and image.bit_length() in pivots:
            its_image, its_string = pivots[image.bit_length()]
            image, string = image ^ its_image, string ^ its_string
        if image:
            pivots[image.bit_length()] = (image, string)
        else:
            found.append(list(string.to_bytes(length, "little")))
    return found


def _equal_fletcher(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    """Sums modulo 65,535 of 16-bit words: both sums of the differences must vanish."""
    import z3

    first, second = z3.Ints("first_multiple second_multiple")
    differences = [a - b for a, b in zip(one, other, strict=True)]
    weights = range(len(differences), 0, -1)
    weighted = z3.Sum([w * d for w, d in zip(weights, differences, strict=True)])
    return [z3.Sum(differences) == 65_535 * first, weighted == 65_535 * second]


# Findings that need no search, only bytes that show them


def zero_window(name: str, blocks: int = 2) -> Collision | None:
    """Whether a window and a checksum cell of zeros, as memory begins, verify each other."""
    held = (bytes(LEAD),) * blocks
    if checksum(name, held) != 0:
        return None
    wanted = tuple(bytes([slot + 1]) * LEAD for slot in range(blocks))
    return Collision(name, held, wanted, 0, "nothing has landed, and the batch verifies")


def torn_tail(name: str, blocks: int = 2) -> Collision:
    """Blocks whose lead has landed and whose tail has not: the checksum covers the lead alone."""
    leads = [bytes([slot + 1]) * LEAD for slot in range(blocks)]
    wanted = tuple(lead + b"\xbb" * (BLOCK - LEAD) for lead in leads)
    torn = wanted[-1][:LEAD] + b"\xaa" * (BLOCK - LEAD)
    held = (*wanted[:-1], torn)
    return _over_leads(name, held, wanted, "the last tail is that of an earlier round")


def shared_lead(name: str, blocks: int = 2) -> Collision:
    """Two tokens that begin alike: the one left over from an earlier round verifies."""
    wanted = tuple(bytes([slot + 1]) * LEAD + b"\xbb" * (BLOCK - LEAD) for slot in range(blocks))
    held = tuple(block[:LEAD] + b"\xaa" * (BLOCK - LEAD) for block in wanted)
    return _over_leads(name, held, wanted, "no token has landed: the old ones have the same leads")


def _over_leads(
    name: str, held: tuple[bytes, ...], wanted: tuple[bytes, ...], text: str
) -> Collision:
    values = {checksum(name, [block[:LEAD] for block in each]) for each in (held, wanted)}
    if len(values) != 1:
        raise NotChecked(f"{name}: the leads have two checksums")
    return Collision(name, held, wanted, values.pop(), text)
