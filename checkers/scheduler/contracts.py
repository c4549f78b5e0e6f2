"""The scheduler's contracts on one routing, said from the outside: by walking over the tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from syncproof.checkers.scheduler.question import RoutingLike, Scheduler

Contract = Callable[[Scheduler, RoutingLike], str]
"""Returns what is wrong, or the empty text."""


def all_tokens(order: tuple[int, ...], routing: RoutingLike) -> list[tuple[int, int]]:
    """Every token as (expert, offset), in the order in which the experts are sent."""
    return [(expert, offset) for expert in order for offset in range(routing.counts[expert])]


def difference(target: int, found: tuple[int, int] | None, token: tuple[int, int]) -> str:
    """What a search returned, and what it should have."""
    if found is None:
        return f"target {target}: the search never ends"
    return (
        f"target {target}: finds expert {found[0]} offset {found[1]}, "
        f"but the token is expert {token[0]} offset {token[1]}"
    )


def _targets(scheduler: Scheduler, core: int, routing: RoutingLike) -> list[int]:
    return [target for piece in scheduler.view(core, routing).slices for target in piece]


def orders_all_experts(scheduler: Scheduler, routing: RoutingLike) -> str:
    """The remapping is a permutation of the experts."""
    for core in range(routing.cores):
        order = scheduler.view(core, routing).order
        if sorted(order) != list(range(len(routing.counts))):
            return f"core {core} orders the experts as {order}"
    return ""


def terminates(scheduler: Scheduler, routing: RoutingLike) -> str:
    """Every core's searches end."""
    for core in range(routing.cores):
        sends = scheduler.sends(core, routing)
        if None in sends:
            target = _targets(scheduler, core, routing)[sends.index(None)]
            return f"core {core}, target {target}: the search never ends"
    return ""


def finds_expert_and_offset(scheduler: Scheduler, routing: RoutingLike) -> str:
    """Each search returns the expert and the offset that the prefix sums define."""
    for core in range(routing.cores):
        tokens = all_tokens(scheduler.view(core, routing).order, routing)
        targets = _targets(scheduler, core, routing)
        for target, found in zip(targets, scheduler.sends(core, routing), strict=True):
            if found is None or tokens[target] != tuple(found):
                return f"core {core}, {difference(target, found, tokens[target])}"
    return ""


def slices_partition_the_tokens(scheduler: Scheduler, routing: RoutingLike) -> str:
    """Each position in the sequence of tokens is in exactly one core's slices."""
    owners = Counter(
        target
        for core in range(routing.cores)
        for piece in scheduler.view(core, routing).slices
        for target in piece
    )
    for target in sorted(set(range(sum(routing.counts))) | set(owners)):
        if owners[target] != 1 or target >= sum(routing.counts):
            return f"position {target} is in the slices of {owners[target]} cores"
    return ""


def loads_differ_by_at_most_one(scheduler: Scheduler, routing: RoutingLike) -> str:
    """No core has two tokens more than another."""
    loads = [
        sum(len(piece) for piece in scheduler.view(core, routing).slices)
        for core in range(routing.cores)
    ]
    return f"loads {loads}" if max(loads) - min(loads) > 1 else ""


def keeps_the_hop_bound(scheduler: Scheduler, routing: RoutingLike) -> str:
    """Each core has at most ceil(V_h / n) tokens of each hop class h."""
    totals: Counter[object] = Counter()
    for hop, count in zip(routing.hops, routing.counts, strict=True):
        totals[hop] += count
    for core in range(routing.cores):
        view = scheduler.view(core, routing)
        tokens = all_tokens(view.order, routing)
        mine = Counter(routing.hops[tokens[target][0]] for piece in view.slices for target in piece)
        for hop, count in mine.items():
            bound = -(-totals[hop] // routing.cores)
            if count > bound:
                return f"core {core} has {count} tokens of class {hop!r}, more than {bound}"
    return ""


def same_on_every_core(scheduler: Scheduler, routing: RoutingLike) -> str:
    """The cores, each on its own, agree on the order, and each slice starts where one ended."""
    views = [scheduler.view(core, routing) for core in range(routing.cores)]
    for core, view in enumerate(views):
        if view.order != views[0].order:
            return f"core {core} orders the experts as {view.order}, core 0 as {views[0].order}"
    for core in range(routing.cores - 1):
        for mine, after in zip(views[core].slices, views[core + 1].slices, strict=True):
            if mine.stop != after.start:
                return f"core {core} ends at {mine.stop}, core {core + 1} starts at {after.start}"
    return ""


def sends_each_token_once(scheduler: Scheduler, routing: RoutingLike) -> str:
    """Together the cores send each (expert, offset) exactly once."""
    sent = Counter(
        tuple(place)
        for core in range(routing.cores)
        for place in scheduler.sends(core, routing)
        if place is not None
    )
    wanted = all_tokens(tuple(range(len(routing.counts))), routing)
    for place in sorted(set(wanted) | set(sent)):
        if sent[place] != 1 or place not in wanted:
            return f"expert {place[0]} offset {place[1]} is sent {sent[place]} times"
    return ""


CONTRACTS: dict[str, Contract] = {
    "orders-all-experts": orders_all_experts,
    "terminates": terminates,
    "finds-expert-and-offset": finds_expert_and_offset,
    "slices-partition": slices_partition_the_tokens,
    "loads-differ-by-at-most-one": loads_differ_by_at_most_one,
    "per-hop-bound": keeps_the_hop_bound,
    "same-on-every-core": same_on_every_core,
    "exactly-once": sends_each_token_once,
}
