"""Fabric profiles: how weak the interconnect is, read from ``specs/fabrics/*.yaml``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from math import inf
from typing import Any, Literal, get_args, get_origin, get_type_hints

from syncproof.models.errors import UserError

HOPS = ("same_rank", "one_hop", "two_hops")


@dataclass(frozen=True)
class Profile:
    """What a fabric guarantees; every key is explained in ``specs/fabrics/README.md``."""

    name: str
    store_atomicity: int = 512
    load_atomicity: int = 0
    in_block_order: Literal["any", "ascending"] = "any"
    ordering: Literal["none", "per_pair", "per_queue"] = "none"
    same_address_order: bool = True
    fence: Literal["orders", "drains", "none"] = "orders"
    fence_scope: Literal["target", "all"] = "all"
    load_order: Literal["program", "none"] = "program"
    quiet: Literal["all", "target", "local"] = "all"
    signal: Literal["own", "prior"] = "own"
    atomics: Literal["one_domain", "nic_only"] = "one_domain"
    in_flight: int = 2
    immediate: bool = False
    ranks_per_switch: int = 0
    latency_ns: Mapping[str, float] = field(default_factory=dict, hash=False)
    hops: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        hints = _hints()
        for key in fields(self):
            check_value(self.name, key.name, getattr(self, key.name), hints[key.name])
        self._check_numbers()
        if self.quiet == "target" and self.load_order == "none":
            raise UserError(
                "load_order is 'none' and quiet is 'target'",
                where=f"fabric {self.name}",
                expected="one of the two: both together are not modelled",
            )
        for hop, delay in self.latency_ns.items():
            self._check_hop(hop)
            number = isinstance(delay, int | float) and not isinstance(delay, bool)
            if not number or not 0 <= delay < inf:
                where = f"fabric {self.name}, latency_ns"
                raise UserError(f"{hop} is {delay!r:.60}", where=where, expected="nanoseconds")
        for hop, keys in self.hops.items():
            self._check_hop(hop)
            where = f"{self.name}, {hop}"
            check_value(where, hop, keys, Mapping)
            for key_name in keys:
                if key_name not in HOP_KEYS:
                    raise _unknown(where, key_name, HOP_KEYS)
            replace(self, name=where, hops={}, **keys)

    def _check_numbers(self) -> None:
        where = f"fabric {self.name}"
        for key_name in ("store_atomicity", "load_atomicity"):
            value = getattr(self, key_name)
            if value.bit_count() != 1 and (value or key_name != "load_atomicity"):
                expected = "a power of two, in bytes"
                raise UserError(f"{key_name} is {value}", where=where, expected=expected)
        if self.in_flight < 1:
            raise UserError(f"in_flight is {self.in_flight}", where=where, expected="at least 1")

    def _check_hop(self, hop: object) -> None:
        if hop not in HOPS:
            raise _unknown(self.name, str(hop), HOPS)

    def hop(self, source: int, target: int) -> str:
        """The hop class from one rank to another; one switch spans ``ranks_per_switch`` ranks."""
        if source == target:
            return "same_rank"
        span = self.ranks_per_switch
        return "one_hop" if not span or source // span == target // span else "two_hops"

    def between(self, source: int, target: int) -> Profile:
        """The profile as it is from rank ``source`` to rank ``target``."""
        if not self.hops:
            return self
        keys = self.hops.get(self.hop(source, target))
        return replace(self, hops={}, **keys) if keys else self

    @property
    def finest_atomicity(self) -> int:
        """The bytes of the smallest atom that any hop class stores or loads."""
        classes = [self, *(replace(self, hops={}, **keys) for keys in self.hops.values())]
        return min(
            min(each.store_atomicity, each.load_atomicity or each.store_atomicity)
            for each in classes
        )

    def changed(self, settings: Mapping[str, Any]) -> Profile:
        """The same profile with some keys changed."""
        known = [key.name for key in fields(self)]
        for key in settings:
            if key not in known:
                raise _unknown(self.name, key, known[1:])
        return replace(self, **settings)

    def as_data(self) -> dict[str, Any]:
        """Every key and value, for a verdict."""
        return {
            key.name: dict(value) if isinstance(value, Mapping) else value
            for key in fields(self)
            for value in [getattr(self, key.name)]
        }


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(Profile)


HOP_KEYS = (
    "store_atomicity",
    "load_atomicity",
    "in_block_order",
    "ordering",
    "fence",
    "fence_scope",
    "signal",
)


def check_value(profile: str, key: str, value: object, hint: Any) -> None:
    """Refuse a value of the wrong type, or not among those that the key can have."""
    where = f"fabric {profile}"
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            expected = " or ".join(map(str, get_args(hint)))
            raise UserError(f"{key} is {value!r:.60}", where=where, expected=expected)
        return
    kind = get_origin(hint) or hint
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        name = {int: "a whole number", bool: "true or false", str: "a name"}.get(kind, "a mapping")
        raise UserError(f"{key} is {value!r:.60}", where=where, expected=name)
    if kind is int and isinstance(value, int) and value < 0:
        raise UserError(f"{key} is {value}", where=where, expected="not below zero")


def _unknown(profile: str, key: str, known: tuple[str, ...] | list[str]) -> UserError:
    near = difflib.get_close_matches(str(key), known, n=2) or known
    return UserError(
        f"unknown key {key!r}", where=f"fabric {profile}", expected=f"perhaps {', '.join(near)}"
    )


def profile_from_data(name: str, data: object) -> Profile:
    """A profile from what a YAML file holds."""
    if not isinstance(data, Mapping):
        raise UserError("not a mapping of keys", where=f"fabric {name}")
    known = [key.name for key in fields(Profile)]
    for key in data:
        if key not in known or key == "name":
            raise _unknown(name, str(key), known[1:])
    return Profile(name=name, **data)
