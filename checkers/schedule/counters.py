"""Thresholds, pending sets, ids in use twice, and what is left over at the end."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np

from syncproof.checkers.schedule.clocks import Clocks
from syncproof.checkers.schedule.collected import Collected
from syncproof.checkers.schedule.program import Program, Receiver
from syncproof.models.taskflow.findings import PENDING, QUIESCENT, THRESHOLDS
from syncproof.models.taskflow.schedule import COUNTER, CROSS_CORE, FLAG, LARGEST_COUNT


class Counters:
    """Asks of each event of a program that ran to its end."""

    def __init__(self, program: Program, clocks: Clocks, collected: Collected) -> None:
        self.program, self.clocks, self.collected = program, clocks, collected

    def check(self) -> None:
        """Report every fault of thresholds, ids and balance."""
        for node in self.clocks.spare:
            for group, threshold in self.program.waits.of(node):
                if self.clocks.needed(group, threshold) is None:
                    self._check_threshold(node, group, threshold)
        for receiver in self.program.receivers:
            self._check_pending(receiver)
        check_balances(self.program, self.collected)
        self._check_reuse()
        for number in np.flatnonzero(self.program.totals > LARGEST_COUNT).tolist():
            found = self.program.group(number)
            self.collected.add(
                PENDING,
                f"event {found.event} counts to {found.total}: more than an int32 "
                "holds; the last to add is {0}",
                found.nodes[-1],
            )

    # Thresholds

    def _check_threshold(self, node: int, group: int, threshold: int) -> None:
        """The triggers that precede a wait in every run must reach its threshold by themselves.

        What the waiting task itself triggers comes after its wait, so it does not count.
        """
        found = self.program.group(group)
        sure = sum(
            amount
            for trigger, amount in zip(found.nodes, found.amounts, strict=True)
            if trigger != node and self.clocks.precedes(trigger, node)
        )
        if sure >= threshold:
            return
        loose = [
            each
            for each in found.nodes
            if not self.clocks.precedes(each, node) and not self.clocks.precedes(node, each)
        ]
        shown = loose[:4]
        some = ", ".join(f"{{{i + 1}}}" for i in range(len(shown)))
        more = f" and {len(loose) - 4} more" if len(loose) > 4 else ""
        self.collected.add(
            THRESHOLDS,
            f"{{0}} waits for {found.event} to reach {threshold}, but {found.total} are triggered "
            f"in all: which of {some}{more} let it pass depends on the run",
            node,
            *shown,
            edges=tuple((each, node) for each in loose[:8]),
        )

    # How many are pending

    def _check_pending(self, receiver: Receiver) -> None:
        """While wait j has not been, no run may have made j + ``pending`` increments."""
        waits = receiver.waits
        for number in range(1, len(waits) + 2):
            wait = waits[number - 1] if number <= len(waits) else None
            most = number + receiver.pending
            culprits = [
                self._reached(group, most * receiver.unit, wait) for group in receiver.groups
            ]
            if culprits and all(each is not None for each in culprits):
                self._report_pending(receiver, wait, culprits[-1] or 0)
                return

    def _reached(self, group: int, target: int, wait: int | None) -> int | None:
        """The trigger that can bring a group to ``target`` while ``wait`` has not been, if any."""
        found = self.program.group(group)
        if found.total < target:
            return None
        needed = self.clocks.needed(group, target)
        if wait is None or (needed is not None and len(needed) == 1):
            last = needed[-1] if needed else found.nodes[-1]
            return last if wait is None or not self.clocks.precedes(wait, last) else None
        free = [
            (trigger, amount)
            for trigger, amount in zip(found.nodes, found.amounts, strict=True)
            if not self.clocks.precedes(wait, trigger)
        ]
        for (trigger, _), total in zip(free, accumulate(a for _, a in free), strict=True):
            if total >= target:
                return trigger
        return None

    def _report_pending(self, receiver: Receiver, wait: int | None, trigger: int) -> None:
        event = receiver.event
        limit = {
            CROSS_CORE: f"more than {receiver.pending} sets are pending: the counter overflows",
            FLAG: "it is set again while it is pending, which is undefined",
        }.get(event.kind, "a phase is completed before the one before it was waited for")
        before = "it is never waited for again" if wait is None else "before the wait of {1}"
        nodes = [trigger] if wait is None else [trigger, wait]
        self.collected.add(
            PENDING,
            f"event {event.name} at {receiver.waiter}: {{0}} can trigger it when "
            f"{limit} ({before})",
            *nodes,
            edges=() if wait is None else ((wait, trigger),),
        )

    # What is left

    def persists(self, sums: list[int]) -> dict[str, int]:
        """Counters that do not end as they began, with their values after the last launch."""
        schedule = self.program.schedule
        begins_anew = set(schedule.launches.zero)
        begins_anew.update(e.name for e in schedule.events.values() if e.kind != COUNTER)
        return {
            name: total
            for name, total in zip(self.program.event_of, sums, strict=True)
            if total and name not in begins_anew
        }

    # Ids that mean two events

    def _check_reuse(self) -> None:
        """Events with one id at one core must be over before the next one begins."""
        shared: dict[tuple[str, str, int], list[Receiver]] = {}
        for receiver in self.program.receivers:
            event = receiver.event
            if event.kind in (CROSS_CORE, FLAG) and event.id is not None:
                source = event.cores[0] if event.kind == FLAG else ""
                key = (receiver.waiter, f"{event.kind} {source}", event.id)
                shared.setdefault(key, []).append(receiver)
        for receivers in shared.values():
            if len(receivers) > 1:
                self._check_turns(receivers)

    def _check_turns(self, receivers: list[Receiver]) -> None:
        """Waits in queue order; where the event changes, all before it precede all sets after."""
        waits = sorted(
            (self.program.position[node], number, node, which)
            for which, receiver in enumerate(receivers)
            for number, node in enumerate(receiver.waits)
        )
        for (_, _, last, one), (_, number, _, two) in pairwise(waits):
            if one == two:
                continue
            for group in receivers[two].groups:
                needed = self.clocks.needed(group, number + 1)
                for trigger in needed[-1:] if needed else []:
                    if not self.clocks.precedes(last, trigger):
                        event, other = receivers[two].event, receivers[one].event
                        self.collected.add(
                            PENDING,
                            f"id {event.id} at {receivers[two].waiter} is used for {event.name} by "
                            f"{{0}} while {other.name} may be pending: {{1}} has not waited for it",
                            trigger,
                            last,
                            edges=((last, trigger),),
                        )
        for which, receiver in enumerate(receivers):
            if not receiver.waits and any(self.program.group(g).nodes for g in receiver.groups):
                node = next(n for g in receiver.groups for n in self.program.group(g).nodes)
                others = ", ".join(r.event.name for i, r in enumerate(receivers) if i != which)
                self.collected.add(
                    PENDING,
                    f"id {receiver.event.id} at {receiver.waiter} means both "
                    f"{receiver.event.name}, triggered by {{0}}, and {others}",
                    node,
                )


def check_balances(program: Program, collected: Collected) -> None:
    """Report consumed events that are triggered more often than they are waited for."""
    for receiver in program.receivers:
        waited = len(receiver.waits) * receiver.unit
        for group in (program.group(number) for number in receiver.groups):
            if group.total <= waited:
                continue
            last = group.nodes[-1]
            setter = program.schedule.tasks[program.task_of(last)].queue
            collected.add(
                QUIESCENT,
                f"event {group.event} is left pending at {receiver.waiter}: {setter} triggers it "
                f"{group.total} times, {receiver.waiter} waits for {waited}; the last trigger "
                "is that of {0}",
                last,
            )
