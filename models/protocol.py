"""A protocol: its memory, its roles as coroutines, its parameters and assumptions."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from syncproof.models.bounds import Bounds
from syncproof.models.errors import UserError
from syncproof.models.memory import Ghost, IndexWord, Pool, Region
from syncproof.models.sealed import sealed

Setting = bool | int | str
P = TypeVar("P", bound="Protocol")


class Parameter:
    """A variant of a protocol, set with ``--set NAME=VALUE``; ``values`` lists what it can be."""

    def __init__(self, default: Setting, text: str, values: tuple[Setting, ...] = ()) -> None:
        self.default, self.text, self.values = default, text, values
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Parameter: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Any: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        return instance.__dict__.get(self.name, self.default)

    def parse(self, text: str) -> Setting:
        """The setting that a command line's ``text`` means."""
        value: Setting = text
        if isinstance(self.default, bool):
            known = {"yes": True, "true": True, "no": False, "false": False}
            if text.lower() not in known:
                raise UserError(f"{self.name} is {text!r}", where="--set", expected="yes or no")
            value = known[text.lower()]
        elif isinstance(self.default, int):
            try:
                value = int(text)
            except ValueError:
                raise UserError(
                    f"{self.name} is {text!r}", where="--set", expected="a whole number"
                ) from None
        self.check(value)
        return value

    def check(self, value: Setting) -> None:
        """Refuse a value that the parameter cannot have."""
        kind = type(self.default)
        if type(value) is not kind:
            expected = {bool: "yes or no", int: "a whole number"}.get(kind, "a text")
            raise UserError(f"{self.name} is {value!r:.60}", where="--set", expected=expected)
        if self.values and value not in self.values:
            expected = " or ".join(map(str, self.values))
            raise UserError(f"{self.name} is {value!r}", where="--set", expected=expected)
        counts = isinstance(self.default, int) and not isinstance(self.default, bool)
        if counts and not self.values and isinstance(value, int) and value < 1:
            raise UserError(f"{self.name} is {value}", where="--set", expected="at least 1")


class Assumption(Parameter):
    """A named condition on the world; dropped with ``--drop NAME``, printed with each verdict."""

    def __init__(self, text: str) -> None:
        super().__init__(True, text)


def parameter(default: Setting, text: str, values: tuple[Setting, ...] = ()) -> Any:
    """``windows: int = parameter(2, "receive windows used in turn")``."""
    return Parameter(default, text, values)


def assumption(text: str) -> Any:
    """``reserved_sentinel: bool = assumption("no payload equals the sentinel")``."""
    return Assumption(text)


@dataclass(frozen=True)
class Role:
    """A coroutine function of a protocol and where it runs."""

    name: str
    function: Callable[..., Awaitable[None]]
    instances: int | str | Callable[[Any], int]
    on: Iterable[int] | Callable[[Any], Iterable[int]] | None


class _RoleMark:
    def __init__(
        self,
        function: Callable[..., Awaitable[None]],
        instances: int | str | Callable[[Any], int],
        on: Iterable[int] | Callable[[Any], Iterable[int]] | None,
    ) -> None:
        self.function, self.instances, self.on = function, instances, on
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        if not inspect.iscoroutinefunction(self.function):
            raise UserError(
                f"the role {owner.__name__}.{name} is not a coroutine", expected="async def"
            )
        self.name = name

    def __get__(self, instance: object | None, owner: type) -> Any:
        return self if instance is None else self.function.__get__(instance, owner)


@overload
def role(function: Callable[..., Awaitable[None]]) -> Any: ...
@overload
def role(
    *,
    instances: int | str | Callable[[Any], int] = 1,
    on: Iterable[int] | Callable[[Any], Iterable[int]] | None = None,
) -> Callable[[Callable[..., Awaitable[None]]], Any]: ...
def role(
    function: Callable[..., Awaitable[None]] | None = None,
    *,
    instances: int | str | Callable[[Any], int] = 1,
    on: Iterable[int] | Callable[[Any], Iterable[int]] | None = None,
) -> Any:
    """Mark a method ``async def sender(self, core)`` as a role.

    ``instances`` per rank: a number, the name of a parameter, or a function of the protocol.
    ``on``: the ranks it runs on (all by default), or a function of the protocol that gives them.
    """
    if function is not None:
        return _RoleMark(function, instances, on)
    return lambda f: _RoleMark(f, instances, on)


_OURS = ("regions", "ghosts", "parts")
"""What a protocol keeps of its own, which roles have no use for."""


class Protocol:
    """Base of all protocols; a subclass defines ``memory`` and its roles.

    ``name`` is what the command line calls it. ``self.bounds`` holds ranks, tokens and rounds.
    """

    name = ""
    not_needed: tuple[tuple[str, str], ...] = ()
    """Operations whose removal is not refuted, as (mutant name, the reason and its bounds)."""

    def __init__(self, bounds: Bounds, **settings: Setting) -> None:
        known = self.parameters()
        # Where roles look: an attribute of the object is found at once, without `Parameter`
        self.__dict__.update((name, each.default) for name, each in known.items())
        for name, value in settings.items():
            if name not in known:
                raise UserError(
                    f"{type(self).__name__} has no parameter {name!r}",
                    where="--set",
                    expected=f"one of {', '.join(known) or 'none'}",
                )
            known[name].check(value)
            self.__dict__[name] = value
        self.bounds = bounds
        self.regions: dict[str, Region] = {}
        self.ghosts: dict[str, Ghost] = {}
        self.parts: dict[str, Protocol] = {}
        self._sealed = False
        self.memory()
        for name, value in vars(self).items():
            self.__dict__[name] = value if name in _OURS else sealed(value)
        self._sealed = True

    def memory(self) -> None:
        """Assign the protocol's regions, pools and ghosts to attributes."""

    def groups(self) -> dict[str, Callable[[Any], bool]]:
        """Named groups for ``core.sync``: which processes (role, rank, instance) belong to each."""
        return {}

    def include(self, kind: type[P], **settings: Setting) -> P:
        """Hold another protocol: its memory and assumptions become this one's."""
        return kind(self.bounds, **settings)

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(getattr(type(self), name, None), Parameter):
            raise UserError(f"the parameter {name} is set while the protocol runs")
        if getattr(self, "_sealed", False):
            raise UserError(
                f"{type(self).__name__}.{name} is assigned while a role runs",
                expected="a local variable, memory, or a Ghost",
            )
        if isinstance(value, Region | Pool | Ghost | Protocol) and hasattr(Protocol, name):
            raise UserError(
                f"{type(self).__name__}.{name} hides a method that every protocol has",
                expected="another name",
            )
        object.__setattr__(self, name, value)
        if isinstance(value, Region):
            self._place(name, value)
        elif isinstance(value, Pool):
            self._place(name, value.region)
        elif isinstance(value, Ghost):
            value.name = name
            self.ghosts[name] = value
        elif isinstance(value, Protocol):
            self.parts[name] = value
            for region_name, region in value.regions.items():
                self._place(f"{name}.{region_name}", region)
            for ghost_name, ghost in value.ghosts.items():
                ghost.name = f"{name}.{ghost_name}"
                self.ghosts[ghost.name] = ghost

    def _place(self, name: str, region: Region) -> None:
        sizes = self.bounds.extents_()
        if any(extent == IndexWord("CORE") for extent in region.index):
            sizes["CORE"] = max((self.count(each) for each in self.roles()), default=1)
        extents = tuple(
            sizes[extent.name] if isinstance(extent, IndexWord) else int(extent)
            for extent in region.index
        )
        region.place(name, sizes["RANK"], extents)
        self.regions[name] = region

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """Parameters and assumptions by name, in the order of their definition."""
        found: dict[str, Parameter] = {}
        for each in reversed(cls.__mro__):
            found |= {n: v for n, v in vars(each).items() if isinstance(v, Parameter)}
        return found

    @classmethod
    def roles(cls) -> list[Role]:
        """The roles in the order of their definition."""
        found: dict[str, Role] = {}
        for each in reversed(cls.__mro__):
            for name, value in vars(each).items():
                if isinstance(value, _RoleMark):
                    found[name] = Role(name, value.function, value.instances, value.on)
        return list(found.values())

    def count(self, role: Role) -> int:
        """How many instances of ``role`` run on each of its ranks."""
        wanted = role.instances
        if isinstance(wanted, str):
            return int(getattr(self, wanted))
        return wanted(self) if callable(wanted) else wanted

    def ranks_of(self, role: Role) -> list[int]:
        """The ranks that ``role`` runs on."""
        if role.on is None:
            return list(range(self.bounds.ranks))
        return list(role.on(self) if callable(role.on) else role.on)

    def settings(self) -> dict[str, Setting]:
        """Every parameter and assumption with its value."""
        return {name: getattr(self, name) for name in self.parameters()}

    def assumptions(self) -> dict[str, str]:
        """The assumptions that hold here, those of the protocols it holds included."""
        found = {
            name: each.text
            for name, each in self.parameters().items()
            if isinstance(each, Assumption) and getattr(self, name)
        }
        for part_name, part in self.parts.items():
            found |= {f"{part_name}.{name}": text for name, text in part.assumptions().items()}
        return found
