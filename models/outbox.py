"""Puts in flight: what one process has issued and the fabric has not delivered.

An outbox is a tuple of elements in a canonical order; each names the elements before it that the
fabric must deliver first. Elements that nothing holds back may land at any time, in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from syncproof.models.fabric import Profile

SET, ADD = 0, 1
Write = tuple[int, int, int]
"""(cell, value number, SET or ADD)."""


class Packet(NamedTuple):
    """What lands in one step: the cells of one atom, or a fence that later puts wait behind.

    A copy (``put_nbi``, ``get_nbi``) has ``reads``, the source cell of each write, until the
    fabric has read them. ``own_put`` and ``place`` order the packets of one put while it is issued.
    """

    writes: tuple[Write, ...]
    reads: tuple[int, ...]
    target: int
    queue: int
    own_put: bool
    place: int
    is_signal: bool
    is_get: bool
    is_fence: bool


class Element(NamedTuple):
    """A packet, and the positions of those that must land before it does (a get: before its
    source is read), and of those whose source must be read before its own is."""

    packet: Packet
    after: tuple[int, ...]
    read_after: tuple[int, ...]


Outbox = tuple[Element, ...]


def fence(target: int) -> Packet:
    """The mark that a fence leaves; target -1 stands for every rank."""
    return Packet((), (), target, 0, False, 0, False, False, True)


def must_precede(early: Packet, late: Packet, profile: Profile) -> bool:
    """Whether ``late``, issued after ``early`` by the same process, must not overtake it."""
    same_target = early.target == late.target
    if early.is_fence or late.is_fence:
        covers = same_target or -1 in (early.target, late.target)
        return covers and not early.is_get and not late.is_get
    if early.is_get:
        return False
    if profile.same_address_order and shares_a_cell(early, late):
        return True
    if early.own_put and late.own_put:
        follows = late.is_signal and not early.is_signal
        return follows or within_block(early, late, profile)
    if late.is_signal and profile.signal == "prior" and same_target and early.queue == late.queue:
        return True
    if profile.ordering == "per_pair":
        return same_target
    return profile.ordering == "per_queue" and same_target and early.queue == late.queue


def within_block(early: Packet, late: Packet, profile: Profile) -> bool:
    """Whether an atom of a put must come before another atom of the same put: no order between
    puts says anything about the atoms of one."""
    return profile.in_block_order == "ascending" and early.place < late.place


def shares_a_cell(early: Packet, late: Packet) -> bool:
    """Whether both write, or a get reads, one cell."""
    touched = {cell for cell, _, _ in early.writes}
    return any(cell in touched for cell, _, _ in late.writes) or (
        late.is_get and any(cell in touched for cell in late.reads)
    )


def issue(outbox: Outbox, packets: Sequence[Packet], profiles: Sequence[Profile]) -> Outbox | None:
    """The outbox with ``packets`` issued behind it; None when a cell has too many in flight.

    ``profiles[i]`` is the profile on the way to the target of ``packets[i]``.
    """
    elements = list(outbox)
    for packet, profile in zip(packets, profiles, strict=True):
        before = [
            i for i, each in enumerate(elements) if must_precede(each.packet, packet, profile)
        ]
        if packet.is_fence:
            if before:
                elements.append(Element(packet, tuple(before), ()))
            continue
        if overfull(elements, packet, profile.in_flight):
            return None
        elements.append(_element(elements, packet, before, profile))
    return canonical([each._replace(packet=_settled(each.packet)) for each in elements])


def _settled(packet: Packet) -> Packet:
    """A packet without what only orders it against the others of its own put."""
    return packet._replace(own_put=False, place=0, is_signal=False)


def _element(
    elements: Sequence[Element], late: Packet, before: list[int], profile: Profile
) -> Element:
    if not late.reads or late.is_get:
        return Element(late, tuple(before), ())
    earlier = [
        i
        for i, each in enumerate(elements)
        if each.packet.reads and not each.packet.is_get and reads_first(each.packet, late, profile)
    ]
    return Element(late, tuple(before), tuple(earlier))


def reads_first(early: Packet, late: Packet, profile: Profile) -> bool:
    """Whether the source of the copy ``early`` must be read before that of ``late``."""
    if early.own_put:
        return within_block(early, late, profile)
    same_queue = (early.target, early.queue) == (late.target, late.queue)
    return profile.ordering != "none" and same_queue


def overfull(elements: Sequence[Element], late: Packet, most: int) -> bool:
    """Whether ``late`` would be more than ``most`` in flight to one of its cells."""
    for cell, _, _ in late.writes:
        pending = sum(any(c == cell for c, _, _ in each.packet.writes) for each in elements)
        if pending >= most:
            return True
    return False


def canonical(elements: Sequence[Element]) -> Outbox:
    """The same elements in the order in which equal sets of puts in flight are equal tuples."""
    needs = [{*each.after, *each.read_after} for each in elements]
    if not any(needs):
        return tuple(sorted(elements))
    followers: dict[int, list[int]] = {}
    for i, needed in enumerate(needs):
        for j in needed:
            followers.setdefault(j, []).append(i)
    ready = [(each, i) for i, each in enumerate(elements) if not needs[i]]
    heapify(ready)
    placed: dict[int, int] = {}
    result: list[Element] = []
    while ready:
        least, number = heappop(ready)
        placed[number] = len(result)
        result.append(least)
        for i in followers.get(number, ()):
            needs[i].discard(number)
            if not needs[i]:
                heappush(ready, (_renumbered(elements[i], placed), i))
    return tuple(result)


def _renumbered(element: Element, placed: Mapping[int, int]) -> Element:
    return Element(
        element.packet,
        tuple(sorted(placed[j] for j in element.after)),
        tuple(sorted(placed[j] for j in element.read_after)),
    )


def can_land(element: Element) -> bool:
    """Whether the fabric may deliver it now."""
    return not element.after and not element.packet.reads and not element.packet.is_fence


def can_be_read(element: Element) -> bool:
    """Whether the fabric may read the source of a copy now."""
    held_back = element.after if element.packet.is_get else element.read_after
    return bool(element.packet.reads) and not held_back


def landed(outbox: Outbox, position: int) -> Outbox:
    """The outbox without the element at ``position``, and without fences that hold nothing."""
    if not any(each.after or each.read_after or each.packet.is_fence for each in outbox):
        return outbox[:position] + outbox[position + 1 :]
    gone = {position}
    remaining = list(outbox)
    changed = True
    while changed:
        changed = False
        for i, each in enumerate(remaining):
            if i not in gone and each.packet.is_fence and all(j in gone for j in each.after):
                gone.add(i)
                changed = True
    return _without(remaining, gone, frozenset())


def source_read(outbox: Outbox, position: int, values: Sequence[int]) -> Outbox:
    """The outbox after the fabric has read ``values`` from the source of the copy."""
    elements = list(outbox)
    each = elements[position]
    writes = tuple(
        (cell, value, mode)
        for (cell, _, mode), value in zip(each.packet.writes, values, strict=True)
    )
    elements[position] = Element(each.packet._replace(writes=writes, reads=()), each.after, ())
    return _without(elements, set(), frozenset({position}))


def _without(elements: Sequence[Element], gone: set[int], read: frozenset[int]) -> Outbox:
    """Drop the elements ``gone`` and the read dependencies on those that are gone or ``read``."""
    number = {old: new for new, old in enumerate(i for i in range(len(elements)) if i not in gone)}
    kept = [
        Element(
            each.packet,
            tuple(number[j] for j in each.after if j in number),
            tuple(number[j] for j in each.read_after if j in number and j not in read),
        )
        for i, each in enumerate(elements)
        if i not in gone
    ]
    return canonical(kept)
