"""Real bytes that hurt, as ``check-protocol bits --json`` finds them, put into a run."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from syncproof.checkers.bits import CHECKSUMS, checksum
from syncproof.checkers.bits import FORMATS as BIT_FORMATS
from syncproof.checkers.emulator.run import Options
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.protocol import Protocol
from syncproof.models.verdict import SCHEMA

OPTION = "--bytes-from"
TWINS = "stale markers"
RAW = "can raw bytes equal the sentinel"


@dataclass(frozen=True)
class Twins:
    """Two batches of leads, different in every slot, that have one checksum."""

    checksum: str
    held: tuple[bytes, ...]
    wanted: tuple[bytes, ...]

    def __post_init__(self) -> None:
        sums = [checksum(self.checksum, each) for each in (self.held, self.wanted)]
        pairs = list(zip(self.held, self.wanted, strict=True))
        if sums[0] != sums[1] or not pairs or any(one == other for one, other in pairs):
            raise UserError(
                f"the batches are no twins of {self.checksum}",
                where=OPTION,
                expected="other leads in every slot, and one checksum",
            )


@dataclass(frozen=True)
class Sentinel:
    """A number of a payload's format that is taken for the sentinel."""

    payload: str
    pattern: int


def crafted(data: Any) -> Twins | Sentinel:
    """What a file of ``bits --json`` tells to try; `UserError` if it is none, or tells nothing."""
    try:
        is_ours = (data["schema"], data["kind"]) == (SCHEMA, "bits")
        found = [*data["checksums"], *data["formats"]] if is_ours else []
    except (TypeError, KeyError):
        is_ours, found = False, []
    if not is_ours:
        raise UserError("no answer of bits", where=OPTION, expected="a file of bits --json")
    if len(found) != 1:
        raise UserError(
            f"{len(found)} checksums and formats",
            where=OPTION,
            expected="one: bits --checksum NAME, or --format NAME --sentinel PATTERN",
        )
    try:
        return _twins(found[0]) if data["checksums"] else _sentinel(found[0])
    except (ValueError, TypeError, KeyError, StopIteration) as error:
        expected = "a file of bits --json, not changed"
        raise UserError("bytes cannot be read", where=OPTION, expected=expected) from error


def _twins(data: Any) -> Twins:
    name, found = data["checksum"], data[TWINS]
    if name not in CHECKSUMS:
        expected = ", ".join(CHECKSUMS)
        raise UserError(f"no checksum {name!r:.40}", where=OPTION, expected=expected)
    if found is None:
        raise UserError(f"{name} tells all batches of that many markers apart", where=OPTION)
    held, wanted = (tuple(map(bytes.fromhex, found[which])) for which in ("held", "wanted"))
    return Twins(name, held, wanted)


def _sentinel(data: Any) -> Sentinel:
    if "answers" not in data:
        raise UserError("no sentinel", where=OPTION, expected="bits --format NAME --sentinel N")
    answer = next(each for each in data["answers"] if each["question"] == RAW)
    (pattern,) = answer["patterns"]
    format = BIT_FORMATS[data["format"]]
    if type(pattern) is not int or not 0 <= pattern < 1 << format.bits:
        raise ValueError(pattern)
    return Sentinel(format.name.split("-")[0], pattern)


def with_bytes(
    made: Instance, options: Options, found: Twins | Sentinel
) -> tuple[Instance, Options]:
    """The instance and options of a run whose tokens have these bytes."""
    if isinstance(found, Twins):
        return replace(made, kind=kind_with(made, found)), options
    domain = options.domain or 1
    return made, replace(options, payload=found.payload, sentinel=found.pattern, domain=domain)


def kind_with(made: Instance, twins: Twins) -> type[Protocol]:
    """The protocol with the twins for leads, in turn as slots are used again, and their real
    checksum; `UserError` if it has no checksum or batches of another size."""
    kind: Any = made.kind
    if not (hasattr(kind, "checksum_of") and hasattr(kind, "lead")):
        raise UserError(
            f"{kind.name or kind.__name__} has no checksum", where=OPTION, expected="dc"
        )
    size = made.bounds.tokens_per_pair
    if size != len(twins.held):
        raise UserError(
            f"batches of {len(twins.held)} markers",
            where=OPTION,
            expected=f"--tokens {len(twins.held)}, or bits --markers {size}",
        )

    size_of_one = len(twins.held[0])

    class WithTwins(kind):  # type: ignore[misc]
        """The same with real bytes for leads and a real checksum over them."""

        def lead(self, core: Any, source: int, destination: int, token: int, round: int) -> Any:
            batch = twins.wanted if round // self.windows % 2 else twins.held
            return batch[token]

        def checksum_of(self, leads: tuple[Any, ...], round: int) -> Hashable:
            markers = [_marker(each, size_of_one) for each in leads]
            if None in markers:
                return None
            value = checksum(twins.checksum, [each for each in markers if each is not None])
            return (round, value) if self.round_in_checksum else value

    WithTwins.__name__, WithTwins.__qualname__ = kind.__name__, kind.__qualname__
    found: type[Protocol] = WithTwins
    return found


def _marker(value: Any, size: int) -> bytes | None:
    """The bytes of a lead as it was read; None if they are none of a marker's."""
    if isinstance(value, bytes):
        return value
    return value.to_bytes(size, "little") if value == 0 and isinstance(value, int) else None
