"""The model that a tool is run on: a module of ``specs/tla`` with the constants of an instance."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import product
from pathlib import Path

from syncproof.checkers.explicit.check import assignments
from syncproof.checkers.explicit.persistent import PersistentSets
from syncproof.checkers.explicit.search import Budget, Meter, explore
from syncproof.checkers.tla.schedules import refuse_other_schedules, schedule_of
from syncproof.models.bounds import Bounds
from syncproof.models.core import Unresolved
from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile
from syncproof.models.instance import Instance
from syncproof.models.operations import Kind, Operation
from syncproof.models.protocol import Protocol
from syncproof.models.system import System

RUN = "Run"
"""The module that is written for a run: it extends the protocol's and names its routings."""

INVARIANTS = {
    "happens-before": "HappensBefore",
    "exactly-once": "ExactlyOnce",
    "quiescent": "Quiescent",
    "checks": "Checks",
    "race-free": "RaceFree",
}
"""The invariant that states each property; ``deadlock-free`` is TLC's own and `TERMINATION`."""

OF_TOKENS = ("happens-before", "exactly-once")
"""The properties of tokens that are consumed."""

TERMINATION = "Termination"
WITHIN = "Within"
"""The invariant that no run meets the in-flight bound."""

SHIPPED = "syncproof.protocols."
"""Where the protocols are that the modules state."""

LARGEST_BLOCK = 512
TOLD_APART = (Kind.PUT, Kind.QUIET, Kind.SYNC)
"""Steps that a module can leave out one by one, where a role has several that look alike."""

MOST_STATES = 20_000


def specs_folder() -> Path:
    """The folder of the modules."""
    return Path(str(resources.files("syncproof.specs").joinpath("tla")))


def module_of(kind: type[Protocol]) -> str:
    """The module that states the protocol, named as its class; a `UserError` if there is none.

    A class of somebody else may have the name of one of ours and do other things.
    """
    name = kind.__name__
    if not kind.__module__.startswith(SHIPPED):
        raise UserError(
            f"the TLA+ modules state the protocols that ship, not your {name}",
            where="--engine tla",
            expected="another engine",
        )
    if not (specs_folder() / f"{name}.tla").is_file():
        modules = sorted(f.stem for f in specs_folder().glob("*.tla"))
        raise UserError(
            f"there is no TLA+ module {name}",
            where="--engine tla",
            expected=f"one of {', '.join(modules)}",
        )
    return name


def constant_name(parameter: str) -> str:
    """The CONSTANT of a parameter: ``dense_traffic`` is ``DenseTraffic``."""
    return "".join(word.capitalize() for word in parameter.split("_"))


@dataclass(frozen=True)
class Model:
    """What is written for a run: the module ``Run`` and the value of each constant."""

    module: str
    text: str
    constants: tuple[tuple[str, str], ...]

    def configuration(self, invariants: Sequence[str], temporal: Sequence[str]) -> str:
        """The cfg file that asks for these formulas."""
        lines = ["SPECIFICATION Spec", "CONSTANTS"]
        lines += [f"    {name} {value}" for name, value in self.constants]
        lines += [f"INVARIANT {name}" for name in invariants]
        lines += [f"PROPERTY {name}" for name in temporal]
        return "\n".join(lines) + "\n"


def model_of(instance: Instance) -> Model:
    """The model of an instance; a `UserError` for what the modules do not state."""
    module = module_of(instance.kind)
    _refuse_uncovered(instance)
    refuse_other_schedules(instance)
    settings = instance.protocol().settings()
    bounds, profile = instance.bounds, instance.profile
    declared = declared_constants(module)
    sizes = {
        "Ranks": str(bounds.ranks),
        "Tokens": str(bounds.tokens_per_pair),
        "Rounds": str(bounds.rounds),
    }
    constants = {
        **{name: value for name, value in sizes.items() if name in declared},
        "Ordering": spelled("none" if profile.ordering == "none" else "per_pair"),
        "InFlight": str(profile.in_flight),
        "Omitted": "{" + ", ".join(spelled(step) for step in omitted_steps(instance)) + "}",
        **{constant_name(name): spelled(value) for name, value in settings.items()},
    }
    values = [(name, f"= {value}") for name, value in sorted(constants.items())]
    said = ""
    if "Routings" in declared:
        values.append(("Routings", "<- RunRoutings"))
        said = routings(instance)
    if "Schedule" in declared:
        values.append(("Schedule", "<- Layer"))
    text = f"---- MODULE {RUN} ----\nEXTENDS {module}\n{said}\n====\n"
    return Model(module, text, tuple(values))


def check_constants(model: Model) -> None:
    """Refuse constants that the module does not declare: TLC 2.15 passes over them in silence."""
    declared = declared_constants(model.module)
    for name, _ in model.constants:
        if name not in declared:
            raise UserError(
                f"the module {model.module} declares no constant {name}",
                where=f"{RUN}.cfg",
                expected=f"one of {', '.join(sorted(declared))}",
            )


def declared_constants(module: str) -> set[str]:
    """The CONSTANTS of a module and of those that it extends."""
    return {
        name
        for text in texts_of(module)
        for block in re.findall(r"^CONSTANTS\n((?: .*\n)+)", text, re.MULTILINE)
        for name in re.findall(r"^ +(\w+),?$", block, re.MULTILINE)
    }


def invariants_for(module: str, properties: Collection[str]) -> list[str]:
    """The invariants that state these properties, and `WITHIN`."""
    unasked = () if takes_tokens(module) else OF_TOKENS
    asked = [name for name in INVARIANTS if name in properties and name not in unasked]
    return [WITHIN, *(INVARIANTS[name] for name in asked)]


def takes_tokens(module: str) -> bool:
    """Whether processes of a module take tokens; if not, there is nothing to ask of them."""
    return any(re.search(r"^    consumed\b", text, re.MULTILINE) for text in texts_of(module))


def spelled(value: bool | int | str) -> str:
    """A constant's value as a cfg file has it."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return f'"{value}"' if isinstance(value, str) else str(value)


def routings(instance: Instance) -> str:
    """The definition of the routings that the instance ranges over."""
    bounds = instance.bounds
    if bounds.routing == "all":
        return "RunRoutings == AnyRouting"
    settings = instance.protocol().settings()
    dense = bool(settings.get("dense_traffic", False)) and not settings.get("counts", True)
    cases = [
        f"w = <<{k}, {s}, {d}>> -> "
        f"{sum(bounds.routed(s, e, k, _unasked, dense) for e in bounds.experts_of(d))}"
        for k, s, d in product(range(bounds.rounds), range(bounds.ranks), range(bounds.ranks))
        if s != d
    ]
    return "RunRoutings == {[w \\in Ways |-> CASE " + "\n  [] ".join(cases) + "]}"


def _unasked(name: Hashable, values: Sequence[int]) -> int:
    raise AssertionError(f"a routing that is given asks for {name}")


def _refuse_uncovered(instance: Instance) -> None:
    """Refuse what the modules say nothing about: a verdict on less would be a wrong one."""
    profile, bounds = instance.profile, instance.bounds
    where = f"fabric {profile.name}"
    uncovered = (
        (profile.finest_atomicity < LARGEST_BLOCK, "atoms smaller than a block of 512 B"),
        (profile.immediate, "puts that land at once (immediate)"),
        (not profile.same_address_order, "puts to one address out of order"),
        (profile.load_order != "program", "loads out of order"),
        (profile.quiet != "all", f"quiet: {profile.quiet}"),
        (bool(profile.hops), "keys that differ between hop classes"),
    )
    for is_so, what in uncovered:
        if is_so:
            raise UserError(
                f"the TLA+ modules do not have {what}",
                where=where,
                expected="a fabric with whole blocks such as cm384, or another engine",
            )
    if bounds.routing == "all" and (
        bounds.experts_in_all != bounds.ranks or bounds.topk not in (0, bounds.experts_in_all)
    ):
        raise UserError(
            "the TLA+ modules have one expert for each rank when every routing is tried",
            where="--routing all",
            expected="no --experts and --topk, or --routing balanced or FILE",
        )
    if bounds.ranks < 2:
        raise UserError("the TLA+ modules have two ranks at least", where="--ranks", expected="2")


# Steps left out


@dataclass(frozen=True)
class RoleStep:
    """An operation at a line of a role, with the name that a module gives to it.

    ``receiver put status``, ``sender quiet kernel_end``; where a role does the like at several
    lines, the function is named too: ``count_core put status in send_counts``.
    """

    name: str
    operation: Operation
    file: str
    line: int


def _step_name(role: str, operation: Operation, text: str) -> str:
    """The name without a function; ``text`` is the source line."""
    kind = operation.kind.value
    if operation.slot is not None:
        # Of a schedule's "tensor hidden@0" it is enough that it is a tensor
        return f"{role} {kind} {operation.slot.region.name.partition(' ')[0]}"
    is_end = operation.kind is Kind.QUIET and "kernel_end" in text
    return f"{role} {kind} kernel_end" if is_end else f"{role} {kind}"


@cache
def _function_at(file: str, line: int) -> str:
    """The name of the innermost function around a line of a source file."""
    tree = ast.parse("".join(linecache.getlines(file)))
    around = [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        and each.lineno <= line <= (each.end_lineno or line)
    ]
    return max(around, key=lambda each: each.lineno).name if around else ""


def omitted_steps(instance: Instance) -> list[str]:
    """The steps that the instance's mutation leaves out, or turns from a wait into a load."""
    mutation = instance.mutation
    if mutation is None:
        return []
    found = {
        step.name
        for step in steps_of_roles(instance)
        if mutation(step.operation, step.file, step.line) is not step.operation
    }
    known = omittable(module_of(instance.kind))
    for name in sorted(found - known):
        raise UserError(
            f"the TLA+ module cannot leave out {name!r}",
            where="--mutant",
            expected=f"one of {', '.join(sorted(known))}",
        )
    return sorted(found)


def omittable(module: str) -> set[str]:
    """The steps that a module, and those that it extends, can leave out."""
    return {name for text in texts_of(module) for name in re.findall(r'Kept\("([^"]+)"', text)}


def texts_of(module: str) -> list[str]:
    """The text of a module of ours and of those that it extends."""
    text = (specs_folder() / f"{module}.tla").read_text(encoding="utf-8")
    extended = re.search(r"^EXTENDS (.+)$", text, re.MULTILINE)
    found = [text]
    names = extended[1].split(",") if extended else []
    for name in map(str.strip, names):
        if (specs_folder() / f"{name}.tla").is_file():
            found += texts_of(name)
    return found


def steps_of_roles(instance: Instance) -> list[RoleStep]:
    """Every operation of the roles.

    Found by one search of a small instance without the mutation, in which every pair of ranks has
    a token in each round.
    """
    small = replace(
        instance, mutation=None, bounds=Bounds(2, 1, 2), profile=Profile("for the source lines")
    )
    found = [
        (_step_name(automaton.process.role, node.operation, place.text), node.operation, place)
        for automaton in _searched(small).automata
        for node in automaton.nodes
        if node.operation is not None and (place := node.place) is not None
    ]
    lines: dict[str, set[tuple[str, int]]] = {}
    for name, _, place in found:
        lines.setdefault(name, set()).add((place.file, place.line))
    return [
        RoleStep(
            f"{name} in {_function_at(place.file, place.line)}"
            if len(lines[name]) > 1 and operation.kind in TOLD_APART
            else name,
            operation,
            place.file,
            place.line,
        )
        for name, operation, place in found
    ]


def _searched(instance: Instance) -> System:
    """The system under the first value of every choice, its tables filled.

    A queue of a schedule takes the same steps in every run, of which there are many.
    """
    if schedule_of(instance) is not None:
        system = instance.system({})
        ready = [system.initial_transition()]
        while ready:
            ready = system.transitions(ready[0].state)
        return system
    choices = dict(next(iter(assignments(instance))))
    while True:
        system = instance.system(choices)
        try:
            choose = PersistentSets(system).choose if PersistentSets.covers(system) else None
            meter = Meter(Budget(states=MOST_STATES))
            explore(system, choose, frozenset(), meter, stop_at_first=False)
        except Unresolved as choice:
            choices[choice.name] = choice.values[0]
            continue
        return system
