"""What the command line asks, and the instance, the question and the command that it means."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from syncproof.checkers.any_ranks.grammar import check_written
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.mutating import find_mutants
from syncproof.checkers.unbounded.channel import NotCovered
from syncproof.models.bounds import Bounds, RoutingTable
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.mutants import mutant_named
from syncproof.models.profiles import load_profile, parsed_yaml
from syncproof.models.protocol import Assumption, Parameter, Protocol, Setting
from syncproof.models.transitions import PROPERTIES
from syncproof.models.verdict import Question
from syncproof.registry import Subject, blaming

ROUTINGS = ("all", "balanced")
MOST_RANKS_FOR_ALL_ROUTINGS = 2
UNBOUNDED, ANY = "unbounded", "any"
A_PAIR = 2
"""Ranks of an instance that is asked about for all numbers of ranks."""
A_FEW_ROUNDS = 3
"""Of an instance that is asked about for all numbers of rounds, to list its mutants."""


@dataclass(frozen=True)
class Request:
    """A question as the user typed it; empty and 0 stand for the default."""

    protocol: str
    ranks: int | str = 2
    tokens: int = 1
    rounds: int | str = 3
    experts: int = 0
    topk: int = 0
    routing: str = ""
    fabric: str = "cm384"
    settings: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    mutant: str = ""
    engine: str = "auto"
    memory: str = ""
    threads: int = 0
    budget_states: int = 0
    budget_seconds: float = 0.0
    swarm: int = 0
    cluster: str = ""

    @property
    def unbounded(self) -> bool:
        """Whether all numbers of rounds are asked about at once."""
        return self.rounds == UNBOUNDED

    @property
    def any_ranks(self) -> bool:
        """Whether all numbers of ranks are asked about at once."""
        return self.ranks == ANY

    @property
    def pair_or_more(self) -> int:
        """The ranks of the instance: of any number of them the pair that stands for all."""
        return self.ranks if isinstance(self.ranks, int) else A_PAIR

    @property
    def routing_asked(self) -> str:
        """``all`` where it is small enough to be the default, else ``balanced``."""
        few = self.pair_or_more <= MOST_RANKS_FOR_ALL_ROUTINGS
        return self.routing or ("all" if few else "balanced")

    def command(self) -> str:
        """The command that asks the same again, whatever the defaults are then."""
        words = ["check-protocol", "check", self.protocol]
        if self.protocol.startswith("-"):
            words[1:] = ["check", f"./{self.protocol}"]
        for option, value in (
            ("--ranks", self.ranks),
            ("--tokens", self.tokens),
            ("--rounds", self.rounds),
            ("--experts", self.experts),
            ("--topk", self.topk),
            ("--routing", self.routing_asked),
            ("--fabric", self.fabric),
            *(("--set", each) for each in self.settings),
            *(("--drop", each) for each in self.dropped),
            *(("--property", each) for each in self.properties),
            ("--mutant", self.mutant),
            ("--engine", self.engine),
            ("--memory", self.memory),
            ("--threads", self.threads),
            ("--budget-states", self.budget_states),
            ("--budget-seconds", self.budget_seconds),
            ("--swarm", self.swarm),
            ("--cluster", self.cluster),
        ):
            if value:
                words += [option, f"{value:g}" if isinstance(value, float) else str(value)]
        return shlex.join(words)


@dataclass(frozen=True)
class Asked:
    """A request made definite: the instance to search and the question that it answers."""

    subject: Subject
    instance: Instance
    question: Question


def resolve(request: Request, subject: Subject, *, unbounded: bool = False) -> Asked:
    """The instance and question of a request; `UserError` for what does not fit the protocol.

    ``unbounded``: whether who asks can also answer for all numbers of rounds or ranks at once.
    """
    whole = _asked_whole(request)
    if whole and not unbounded:
        name = next(iter(whole))
        raise UserError(
            f"only a check can be of all numbers of {name}", where=f"--{name}", expected="a number"
        )
    bounds = Bounds(
        ranks=request.pair_or_more,
        tokens=request.tokens,
        rounds=request.rounds if isinstance(request.rounds, int) else A_FEW_ROUNDS,
        experts=request.experts,
        topk=request.topk,
        routing=_routing(request.routing_asked),
    )
    settings = settings_of(subject.kind, request.settings, request.dropped)
    instance = Instance(subject.kind, bounds, load_profile(request.fabric), settings)
    asked = resolve_instance(
        subject, instance, request.dropped, request.mutant, properties_of(request.properties)
    )
    if request.any_ranks:
        _check_language(instance, subject)
    question = replace(asked.question, bounds={**asked.question.bounds, **whole})
    return replace(asked, question=question)


def _check_language(instance: Instance, subject: Subject) -> None:
    """Refuse a file from which a role might tell how many ranks there are."""
    with blaming(subject):
        protocol = instance.protocol()
    try:
        check_written(protocol)
    except NotCovered as reason:
        raise UserError(
            f"--ranks any does not cover {reason}",
            where="--ranks",
            expected="a number, or the language of docs/any-ranks.md",
        ) from None


def _asked_whole(request: Request) -> dict[str, str]:
    """What is asked about for all its numbers at once."""
    if not request.any_ranks:
        return {"rounds": UNBOUNDED} if request.unbounded else {}
    for option, value, expected in (
        ("--rounds", request.rounds if request.unbounded else 0, "a number, or ranks by number"),
        ("--experts", request.experts, "one expert per rank"),
        ("--topk", request.topk, "every expert for every token"),
        ("--routing", request.routing not in ("", *ROUTINGS) and request.routing, "all, balanced"),
    ):
        if value:
            raise UserError(f"{option} {value} with --ranks any", where=option, expected=expected)
    return dict.fromkeys(("ranks", "experts", "topk"), ANY)


def resolve_instance(
    subject: Subject,
    instance: Instance,
    dropped: tuple[str, ...],
    mutant: str,
    properties: tuple[str, ...],
) -> Asked:
    """The question about ``instance``, with the mutant that is asked for applied to it."""
    with blaming(subject):
        cores = _cores(instance)
        question = question_of(instance, subject.spec, dropped, mutant, properties)
    known = subject.kind.parameters()
    question = replace(
        question,
        bounds={**question.bounds, "cores": cores},
        settings={
            name: value
            for name, value in question.settings.items()
            if not isinstance(known[name], Assumption)
        },
    )
    if mutant:
        instance = mutant_named(mutant, find_mutants(instance)).applied(instance)
    return Asked(subject, instance, question)


def _cores(instance: Instance) -> int:
    """The processes of the rank that has most; each is a core of its own."""
    on_rank: dict[int, int] = {}
    for process in instance.processes(instance.protocol()):
        on_rank[process.rank] = on_rank.get(process.rank, 0) + 1
    return max(on_rank.values())


def asked_again(question: Question, subject: Subject) -> Asked:
    """The instance of a recorded question."""
    given = question.bounds
    where = "the trace's question"
    try:
        numbers = {k: int(given[k]) for k in ("ranks", "tokens", "rounds", "experts", "topk")}
        routing = given["routing"]
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"bounds without {error}", where=where) from None
    table = routing if isinstance(routing, str) else routing_table(routing, where)
    bounds = Bounds(**numbers, routing=table)
    profile = Profile(**_profile_keys(question.fabric, where))
    known = subject.kind.parameters()
    settings = {**question.settings, **dict.fromkeys(question.dropped, False)}
    for name in settings:
        if name not in known:
            raise UserError(f"the protocol has no parameter {name!r} any more", where=where)
    instance = Instance(subject.kind, bounds, profile, settings)
    return resolve_instance(
        subject, instance, question.dropped, question.mutant, question.properties
    )


def _profile_keys(fabric: Mapping[str, Any], where: str) -> dict[str, Any]:
    unknown = sorted(set(fabric) - set(Profile("").as_data()))
    if unknown or "name" not in fabric:
        raise UserError(f"unknown fabric key {', '.join(unknown) or 'without a name'}", where=where)
    return dict(fabric)


def properties_of(names: Sequence[str]) -> tuple[str, ...]:
    """The properties asked for, in their usual order; all if none is named."""
    for name in names:
        if name not in PROPERTIES:
            near = difflib.get_close_matches(name, PROPERTIES, n=2) or PROPERTIES
            raise UserError(f"no property {name!r}", where="--property", expected=_either(near))
    return tuple(each for each in PROPERTIES if each in names) if names else PROPERTIES


def settings_of(
    kind: type[Protocol], given: Sequence[str], dropped: Sequence[str]
) -> dict[str, Setting]:
    """Parameters from ``NAME=VALUE`` and the assumptions that are dropped."""
    known = kind.parameters()
    assumptions = {n: p for n, p in known.items() if isinstance(p, Assumption)}
    parameters = {n: p for n, p in known.items() if n not in assumptions}
    settings: dict[str, Setting] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if name in assumptions:
            raise UserError(f"{name} is an assumption", where="--set", expected=f"--drop {name}")
        if not equals:
            raise UserError(f"{text!r} has no value", where="--set", expected="NAME=VALUE")
        settings[name] = _known(kind, name, parameters, "--set", "parameter").parse(value)
    for name in dropped:
        settings[_known(kind, name, assumptions, "--drop", "assumption").name] = False
    return settings


def _known(
    kind: type[Protocol], name: str, known: Mapping[str, Parameter], option: str, word: str
) -> Parameter:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=2) or list(known)
        expected = _either(near) if near else f"it has no {word}s"
        protocol = kind.name or kind.__name__
        raise UserError(f"{protocol} has no {word} {name!r}", where=option, expected=expected)
    return known[name]


def _either(names: Sequence[str]) -> str:
    return " or ".join(names)


def _routing(text: str) -> str | RoutingTable:
    if text in ROUTINGS:
        return text
    path = Path(text)
    if path.suffix not in (".yaml", ".yml"):
        raise UserError(
            f"routing {text!r}", where="--routing", expected="all, balanced or FILE.yaml"
        )
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=text) from None
    except UnicodeDecodeError:
        raise UserError("is no text", where=text, expected="YAML in UTF-8") from None
    return routing_table(parsed_yaml(content, text), text)


def routing_table(data: object, where: str) -> RoutingTable:
    """The table that nested lists hold: ``[round][source][expert]``, a number of tokens each."""
    expected = "a list of rounds, each a list of sources, each a list of tokens per expert"
    return tuple(
        tuple(tuple(_count(n, where) for n in _list(row, where, expected)) for row in sources)
        for sources in (_list(each, where, expected) for each in _list(data, where, expected))
    )


def _list(data: object, where: str, expected: str) -> list[Any]:
    if not isinstance(data, list):
        raise UserError(f"{str(data)[:40]!r} is no list", where=where, expected=expected)
    return data


def _count(data: object, where: str) -> int:
    if not isinstance(data, int) or isinstance(data, bool):
        raise UserError(f"{data!r} tokens", where=where, expected="a whole number")
    return data
