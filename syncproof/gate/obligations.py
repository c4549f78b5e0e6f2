"""From the entries of a gate file to single obligations: lists and ranges multiplied out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

from syncproof.gate.file import Entry
from syncproof.models.errors import UserError
from syncproof.models.gate import ALL, Kernel, Obligation
from syncproof.models.verdict import Answer
from syncproof.request import ANY, UNBOUNDED, Request

MOST = 10_000
"""Obligations that one file may mean: more are a slip of a range."""

ITS_MUTANTS = ", its mutants"

NUMBERS = ("ranks", "tokens", "rounds", "experts", "topk")
TEXTS = ("routing", "fabric", "engine")
"""Keys of a request that may be lists; so may the protocol and the values of settings."""

Choice = tuple[str, Any]


@dataclass(frozen=True)
class Task:
    """An obligation and the request that answers it.

    ``mutants`` is empty, or says which mutants the task stands for until they are known.
    """

    obligation: Obligation
    request: Request
    mutants: tuple[str, ...] = ()

    def of_mutant(self, name: str, text: str) -> Task:
        """The task for one mutant. Its name holds no line number, so that it outlives edits."""
        request = replace(self.request, mutant=name)
        title = f"{self.obligation.name.removesuffix(ITS_MUTANTS)} {text}"
        obligation = replace(self.obligation, name=title, command=request.command())
        return Task(obligation, request)


def tasks_of(entries: Iterable[Entry]) -> list[Task]:
    """The tasks that a gate file means, in its order; `UserError` where two have one name."""
    found: list[Task] = []
    seen: dict[str, Entry] = {}
    for entry in entries:
        count = prod(len(values) for _, values in _alternatives(entry))
        if len(found) + count > MOST:
            raise UserError(f"more than {MOST} obligations", where=entry.where)
        for task in _tasks(entry):
            name = task.obligation.name
            if name in seen:
                line = seen[name].line
                raise UserError(
                    f"{name!r} is also what line {line} asks",
                    where=entry.where,
                    expected="another question, or another name",
                )
            seen[name] = entry
            found.append(task)
    return found


def _tasks(entry: Entry) -> Iterator[Task]:
    alternatives = _alternatives(entry)
    for values in product(*(values for _, values in alternatives)):
        chosen = dict(zip((name for name, _ in alternatives), values, strict=True))
        yield _task(entry, chosen)


def _alternatives(entry: Entry) -> list[tuple[str, list[Any]]]:
    """The keys that may be given as lists, with their values; settings as ``set NAME``."""
    found: list[tuple[str, list[Any]]] = [("protocol", _list(entry.keys["protocol"]))]
    for key in NUMBERS:
        if key in entry.keys:
            found.append((key, [n for each in _list(entry.keys[key]) for n in _range(each, entry)]))
    found += [(key, _list(entry.keys[key])) for key in TEXTS if key in entry.keys]
    found += [(f"set {name}", _list(v)) for name, v in entry.keys.get("set", {}).items()]
    return found


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def _range(value: int | str, entry: Entry) -> Sequence[int | str]:
    if isinstance(value, int) or value in (ANY, UNBOUNDED):
        return (value,)
    first, _, last = value.partition("..")
    if len(last) > 9 or not int(first) <= int(last) <= int(first) + MOST:
        raise UserError(f"the range {value:.40}", where=entry.where, expected="such as 2..8")
    return range(int(first), int(last) + 1)


def _task(entry: Entry, chosen: Mapping[str, Any]) -> Task:
    keys, budget = entry.keys, entry.keys.get("budget", {})
    settings = {k.removeprefix("set "): v for k, v in chosen.items() if k.startswith("set ")}
    request = Request(
        protocol=chosen["protocol"],
        **{key: chosen[key] for key in (*NUMBERS, *TEXTS) if key in chosen},
        settings=tuple(f"{name}={spelled(value)}" for name, value in settings.items()),
        dropped=tuple(keys.get("drop", ())),
        properties=tuple(keys.get("properties", ())),
        memory=budget.get("memory", ""),
        budget_states=budget.get("states", 0),
        budget_seconds=float(budget.get("seconds", 0)),
    )
    expect = keys.get("expect", "violated" if "mutants" in keys else "proved")
    obligation = Obligation(
        _name(entry, chosen),
        request.protocol,
        request.command(),
        {ALL: expect} if isinstance(expect, str) else dict(expect),
        keys.get("at", ""),
        tuple(Kernel(each["file"], each["sha256"]) for each in keys.get("kernels", ())),
        entry.line,
        entry.column,
    )
    _check_place(obligation, entry)
    mutants = keys.get("mutants", ())
    return Task(obligation, request, (mutants,) if isinstance(mutants, str) else tuple(mutants))


def _check_place(obligation: Obligation, entry: Entry) -> None:
    if obligation.at and Answer.VIOLATED.value not in obligation.expected.values():
        raise UserError("at without a violation", where=entry.where, expected="expect: violated")


def _name(entry: Entry, chosen: Mapping[str, Any]) -> str:
    """What is asked, in few words: the keys that the entry itself gives.

    With a name of its own, only those of which there are several.
    """
    several = {key for key, values in _alternatives(entry) if len(values) > 1}
    named = entry.keys.get("name", "")
    said = [named] if named else []
    for key, value in chosen.items():
        if key in several or (not named and key.partition(" ")[0] in (*entry.given, "protocol")):
            word = "" if key == "protocol" else f"{key.removeprefix('set ')}="
            said.append(f"{word}{spelled(value)}")
    if not named and "drop" in entry.given:
        said += [f"without {each}" for each in entry.keys["drop"]]
    if not named and "properties" in entry.given:
        said.append(", ".join(entry.keys["properties"]))
    return " ".join(said) + (ITS_MUTANTS if "mutants" in entry.keys else "")


def spelled(value: object) -> str:
    """A setting as ``--set`` takes it."""
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
