"""Tables of a role in which rounds are relative: one node serves all rounds that look alike.

A *home* node is a suspended role as it was first met, with the rounds that it had then. Seen from
a state it stands in a *frame*: all its rounds moved by one number, a multiple of the modulus B.
The argument that this changes nothing is in docs/unbounded.md.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from math import ceil
from types import CoroutineType
from typing import Any

from syncproof.checkers.explicit.contents import GiveUp
from syncproof.checkers.unbounded.channel import (
    Channel,
    Needed,
    NotCovered,
    RoundValues,
    Term,
    settled,
)
from syncproof.checkers.unbounded.liveness import LiveIdentity
from syncproof.models.automaton import Automaton
from syncproof.models.identity import WRITERS, Refusal, Walk, discard
from syncproof.models.lowering import Action
from syncproof.models.nodes import Edge, Ledger, Node, Way
from syncproof.models.operations import (
    Consumed,
    GhostCheck,
    GhostUpdate,
    Operation,
    Sent,
    Statement,
)
from syncproof.models.round_core import RoundIterator
from syncproof.models.rounds import Old, OutsideRounds, Round, Scale, mapped, rounds_in
from syncproof.models.shared import Shared

OLDEST = 12
"""A role may keep rounds up to so many behind its own; a store of older ones is not covered."""

MOST_ROUNDS = 64
"""A role whose local states have not come back after so many rounds does not come back."""


class RoundIdentity(LiveIdentity):
    """Fingerprints in which every round is relative to the role's own, its *base*.

    The base is the number that `core.rounds` would give next, or that it did not give any more.
    """

    def __init__(self, shared: tuple[object, ...], leaf: type, modulus: int) -> None:
        writers = {**WRITERS, Round: self._round, Old: self._round, RoundIterator: self._counts}
        super().__init__(shared, leaf, writers)
        self._modulus = modulus
        self._places: list[tuple[int, Scale]] = []
        self._counting: list[int] = []
        self.before: int | None = None
        self.base: int | None = None
        self.oldest = 0
        self.kept: set[Hashable] = set()

    def _round(self, walk: Walk, each: Any) -> None:
        if each.origin_ is not None:
            self.kept.add(each.origin_)
            each.origin_ = None  # from now on it is the role's own
        walk.tokens += (type(each).__name__, str(each.scale_))
        self._places.append((len(walk.tokens), each.scale_))
        walk.tokens += (each.number_, each.least_)

    def _counts(self, walk: Walk, each: Any) -> None:
        self._counting.append(each.number_)
        walk.tokens += ("rounds", each.begun_)
        self._places.append((len(walk.tokens), 1))
        walk.tokens.append(each.number_)

    def _tokens(self, coroutine: CoroutineType[Any, Any, Any]) -> list[Any]:
        self._places.clear()
        self._counting.clear()
        tokens = super()._tokens(coroutine)
        self.refuse_looking_inside()
        over = not self._counting and self.before is not None
        self.base = max(self._counting) if self._counting else self.before
        base = self.base or 0
        behind = [0]
        for place, scale in self._places:
            relative = tokens[place] - base * scale
            behind.append(ceil(relative / scale))
            tokens[place] = relative if type(relative) is int else str(relative)
        self.oldest = min(behind)
        kind = "over" if over else "before" if self.base is None else "within"
        return [kind, base % self._modulus, *tokens]


@dataclass(frozen=True)
class HomeEdge:
    """A step of a home node: ``delta`` leads from its frame to the target's.

    ``tests`` are the tests on rounds on the way, ``kept`` the rounds read that the role keeps,
    ``used`` the choices that the step depends on, all in the node's frame. Where the step needs
    another choice first, ``asks`` is that and its options.
    """

    edge: Edge | None
    delta: int
    used: tuple[tuple[int, int], ...] = ()
    tests: tuple[tuple[str, Term, Term, Any], ...] = ()
    kept: frozenset[Hashable] = frozenset()
    asks: tuple[int, tuple[Hashable, ...]] | None = None


class _NoLedger(Ledger):
    """Tokens are kept for all processes together, not in the nodes of each."""

    def after(self, number: int, statements: tuple[Statement, ...]) -> int:
        return 0


class HomeAutomaton(Automaton):
    """The home nodes of one process. A step depends on the choices made so far, too."""

    def __init__(
        self, *parts: Any, channel: Channel, identity: RoundIdentity, shared: Shared | None = None
    ) -> None:
        process, start, said, lowering, mutation = parts
        self.channel, self._rounds = channel, identity
        self.bases: dict[int, int | None] = {}
        self._answers: dict[int, dict[Hashable, Hashable]] = {}
        self._again: Iterator[dict[Hashable, Hashable]] | None = None
        self._alternatives: dict[tuple[int, int, tuple[int, ...]], list[HomeEdge]] = {}
        self._from: Node | None = None
        self._delta = 0
        self._last: bytes | Refusal = b""
        super().__init__(process, start, said, lowering, identity, _NoLedger(), mutation, shared)

    def base(self, node: Node) -> int | None:
        """The round of a home node: the number that it would be given next."""
        return self.bases.get((node.base or node).number)

    def home_edge(self, node: Node, action: int, values: tuple[int, ...], shift: int) -> HomeEdge:
        """The step in the frame ``shift``; `Needed` where it needs a choice not yet made."""
        alternatives = self._alternatives.setdefault((node.number, action, values), [])
        channel = self.channel
        for each in alternatives:
            if self._applies(each, shift):
                if each.asks is not None:
                    raise Needed(self._choice(each.asks[0], shift), each.asks[1])
                return each
        channel.shift, channel.base = shift, self.base(node)
        channel.used, channel.named, channel.tests = {}, {}, []
        channel.asker, channel.outside = self.process.number, None
        self._from, self._delta = node, 0
        self._rounds.kept.clear()
        channel.values.note = channel.note
        try:
            made = self._make_edge(node, node.actions[action], values)
        except Needed as choice:
            needed = tuple(channel.used.items())
            assert isinstance(choice.name, int)
            asks = (choice.name, choice.values)
            alternatives.append(HomeEdge(None, 0, needed, asks=asks))
            raise Needed(self._choice(choice.name, shift), choice.values) from None
        finally:
            channel.values.note = None
        if channel.outside is not None and (made is None or made.target.error is None):
            raise _located(channel.outside, node)
        tests = tuple(dict.fromkeys(channel.tests))
        kept = frozenset(self._rounds.kept) if made is not None else frozenset()
        found = HomeEdge(made, self._delta, tuple(channel.used.items()), tests, kept)
        alternatives.append(found)
        return found

    def statements(self) -> Iterator[tuple[tuple[int, ...], tuple[Statement, ...]]]:
        """What is said in a step, with the cells that it reads."""
        for (number, action, _), edges in self._alternatives.items():
            cells = self.nodes[number].actions[action].cells
            for each in edges:
                if each.edge is not None:
                    yield cells, each.edge.statements

    def _applies(self, edge: HomeEdge, shift: int) -> bool:
        """Whether the choices that a step depends on are made, and as it has them."""
        answers, moved = self.channel.answers, self.channel.values.moved
        if any(answers.get(moved(name, shift)) != answer for name, answer in edge.used):
            return False
        return edge.asks is None or moved(edge.asks[0], shift) not in answers

    def _choice(self, name: int, shift: int) -> Hashable:
        return self.channel.values.plain(self.channel.values.moved(name, shift))

    def _replay(self, node: Node) -> Any:
        used, tests, named = self.channel.used, self.channel.tests, self.channel.named
        note, self.channel.values.note = self.channel.values.note, None
        self.channel.used, self.channel.named, self.channel.tests = {}, {}, []
        way = [node]
        while way[-1].before is not None:
            way.append(way[-1].before)
        # Step by step: an outlook may give one choice an answer here and another there.
        self._again = iter([self._answers.get(each.number, {}) for each in reversed(way)])
        try:
            return super()._replay(node)
        finally:
            self.channel.replayed = self._again = None
            self.channel.used, self.channel.tests, self.channel.named = used, tests, named
            self.channel.values.note = note

    def _next_operation(self, live: Any, value: Any) -> Any:
        if self._again is not None:
            self.channel.replayed = next(self._again)
        return super()._next_operation(live, value)

    def _verify_once(self, history: tuple[Any, ...]) -> None:
        """Replays, of which there are many, show whether the role is deterministic."""

    def _suspended(
        self, live: Any, before: Node | None, value: Any, operation: Operation, ledger: int
    ) -> Node:
        if rounds_in((operation.queue, operation.target)):
            raise OutsideRounds(
                "a round is a queue or a target", where=self._where(live), expected="round % n"
            )
        known = len(self.nodes)
        origin = self._from or before
        self._rounds.before = None if origin is None else self.base(origin)
        node = super()._suspended(live, before, value, operation, ledger)
        if isinstance(self._last, Refusal):
            raise NotCovered(f"{self._last.reason} ({self._last.where})")
        base = self._rounds.base
        if node.number >= known:
            self._check_new(node, base)
            self.bases[node.number] = base
            self._answers[node.number] = self.channel.named
        elif self._live.get(node.number) is live and base != self.bases[node.number]:
            discard(self._live.pop(node.number).coroutine)
        self._delta = (base or 0) - (self.bases[node.number] or 0)
        return node

    def _fingerprint(self, live: Any) -> bytes | Refusal:
        self._last = super()._fingerprint(live)
        return self._last

    def _check_new(self, node: Node, base: int | None) -> None:
        where = str(node.place)
        if base is not None and base > MOST_ROUNDS:
            raise NotCovered(
                f"{self.process.role} is never twice in the same local state ({where}): it carries "
                "over something other than a round"
            )
        if base is not None and self._rounds.oldest < -OLDEST:
            raise NotCovered(f"{self.process.role} keeps a round too long ({where})")

    def _new(self, key: Hashable, before: Node | None, **about: Any) -> Node:
        error = about.get("error")
        if isinstance(error, OutsideRounds) and before is not None:
            about["error"] = _located(error, before)
        node = super()._new(key, before, **about)
        if node.state in ("done", "error"):
            self.bases.setdefault(node.number, 0)
            origin = self._from or before
            self._delta = (self.base(origin) or 0) if origin is not None else 0
        return node


@dataclass(eq=False)
class Framed(Node):
    """A home node seen in a frame that is moved by ``shift``; ``round`` is its base there."""

    home: Node | None = None
    shift: int = 0
    round: int | None = None


def _located(error: OutsideRounds, node: Node) -> OutsideRounds:
    """The error with the line of the operation, where its own is not known."""
    if error.where or node.place is None:
        return error
    where = f"{node.place.file}:{node.place.line}"
    return OutsideRounds(error.what, where=where, expected=error.expected)


class FramedAutomaton:
    """What a system sees of a process: its nodes in the frames of states."""

    def __init__(self, home: HomeAutomaton, modulus: int, lookback: int) -> None:
        self.home, self.modulus, self.lookback = home, modulus, lookback
        self.process, self.profile = home.process, home.profile
        self.quiet_is_local, self.profile_to = home.quiet_is_local, home.profile_to
        self.nodes: list[Framed] = []
        self._known: dict[tuple[int, int], Framed] = {}
        self._made: dict[tuple[Hashable, ...], Edge | None] = {}
        self.first = self.framed(home.first, 0)
        self.first_statements: tuple[Statement, ...] = home.first_statements

    @property
    def values(self) -> RoundValues:
        return self.home.channel.values

    def framed(self, node: Node, shift: int) -> Framed:
        """A home node in the frame moved by ``shift``."""
        found = self._known.get((node.number, shift))
        if found is None:
            base = self.home.base(node)
            if base is None and shift:
                raise NotCovered("rounds go on before a process has begun to count its own")
            found = Framed(
                len(self.nodes),
                node.state,
                node.operation,
                node.place,
                tuple(self._action(each, shift) for each in node.actions),
                0,
                progress=node.progress,
                error=node.error,
                in_sweep=node.in_sweep,
                home=node,
                shift=shift,
                round=None if base is None else base + shift,
            )
            self._known[node.number, shift] = found
            self.nodes.append(found)
        return found

    def moved(self, number: int, by: int) -> int:
        """The node of which all rounds are moved."""
        node = self.nodes[number]
        assert node.home is not None
        return self.framed(node.home, node.shift + by).number

    def _action(self, action: Action, shift: int) -> Action:
        if not shift:
            return action
        packets = tuple(
            each._replace(writes=self._writes(each.writes, shift)) for each in action.packets
        )
        return replace(action, packets=packets, writes=self._writes(action.writes, shift))

    def _writes(
        self, writes: tuple[tuple[int, int, int], ...], shift: int
    ) -> tuple[tuple[int, int, int], ...]:
        return tuple(
            (cell, value if value < 0 else self.values.moved(value, shift), mode)
            for cell, value, mode in writes
        )

    def home_edge(self, node: Node, action: int, values: tuple[int, ...]) -> HomeEdge:
        """The step as it is in the home node's own frame."""
        assert isinstance(node, Framed) and node.home is not None
        base = self.home.base(node.home)
        bound = None if base is None else base - 1 - self.lookback
        fed = tuple([self.values.fed(each, -node.shift, bound) for each in values])
        return self.home.home_edge(node.home, action, fed, node.shift)

    def edge(self, node: Node, action: int, values: tuple[int, ...]) -> Edge | None:
        """The step of ``node`` in its frame, as an automaton without frames would give it."""
        key = (action, values)
        if key in node.edges:
            return node.edges[key]
        found = self.home_edge(node, action, values)
        if not found.used:
            made = node.edges[key] = self._in_frame(found, node)
            return made
        which = (node.number, action, values, found.used)
        if which not in self._made:
            self._made[which] = self._in_frame(found, node)
        return self._made[which]

    def ways(self, node: Node, action: int, values: tuple[int, ...]) -> tuple[Way, ...]:
        """The step of ``node`` under each answer to the choices that are not made yet."""
        return tuple(self._ways(node, action, values, ()))

    def _ways(
        self, node: Node, action: int, values: tuple[int, ...], made: tuple[tuple[int, int], ...]
    ) -> list[Way]:
        channel = self.home.channel
        before, channel.answers = channel.answers, {**channel.answers, **dict(made)}
        try:
            found = self.edge(node, action, values)
            if found is not None:
                assert isinstance(found.target, Framed)
                if (found.target.round or 0) > channel.furthest:
                    raise GiveUp
            return [(made, found)]
        except Needed as choice:
            name = self.values.number(choice.name)
            answers = [self.values.number(value) for value in choice.values]
            more = [self._ways(node, action, values, (*made, (name, each))) for each in answers]
            return [way for ways in more for way in ways]
        finally:
            channel.answers = before

    def _in_frame(self, found: HomeEdge, node: Node) -> Edge | None:
        assert isinstance(node, Framed)
        if found.edge is None:
            return None
        shift = node.shift
        return Edge(
            self.framed(found.edge.target, shift + found.delta),
            tuple(moved_statement(each, shift) for each in found.edge.statements),
            tuple((cell, self.values.moved(v, shift)) for cell, v in found.edge.writes),
            found.edge.again,
        )


def moved_statement(said: Statement, shift: int) -> Statement:
    """What a role says, in the frame of the state."""
    if isinstance(said, Sent | Consumed):
        return replace(said, key=mapped(said.key, lambda r: settled(r, shift)))
    if isinstance(said, GhostUpdate | GhostCheck):
        key, arguments = mapped((said.key, said.arguments), lambda r: settled(r, shift))
        return replace(said, key=key, arguments=arguments)
    return said
