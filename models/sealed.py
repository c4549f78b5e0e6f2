"""Lists, dicts and sets that a protocol holds, so that no role can change them.

A role is run again and again, each time for one process: what one run left behind in a list would
be there in the next, and no engine would know. Assignment to the protocol is refused as well.
"""

from __future__ import annotations

from typing import Any, Never

from syncproof.models.errors import UserError


def _refused(self: object, *_: object, **__: object) -> Never:
    kind = type(self).__mro__[1].__name__
    raise UserError(
        f"a {kind} of the protocol is changed while a role runs",
        expected="a local variable, memory, or a Ghost",
    )


class SealedList(list[Any]):
    """A list that stays as it is."""

    append = extend = insert = remove = pop = clear = sort = reverse = _refused
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refused


class SealedDict(dict[Any, Any]):
    """A dict that stays as it is."""

    pop = popitem = clear = update = setdefault = _refused
    __setitem__ = __delitem__ = __ior__ = _refused


class SealedSet(set[Any]):
    """A set that stays as it is."""

    add = discard = remove = pop = clear = update = _refused
    difference_update = intersection_update = symmetric_difference_update = _refused
    __ior__ = __iand__ = __isub__ = __ixor__ = _refused


def sealed(value: Any) -> Any:
    """``value`` with every plain list, dict and set in it sealed; anything else as it is."""
    if type(value) is list:
        return SealedList(sealed(each) for each in value)
    if type(value) is dict:
        return SealedDict({name: sealed(each) for name, each in value.items()})
    if type(value) is set:
        return SealedSet(value)
    if type(value) is tuple:
        items = tuple(sealed(each) for each in value)
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else items
    return value
