"""Plans that single out one condition of the reduction, where random ones rarely do."""

from __future__ import annotations

from syncproof.models.fabric import Profile
from tests.random_protocols import Condition, Instruction, Plan, Program, Spot

UNORDERED = Profile("unordered", same_address_order=False, in_flight=4)
SPLIT = Profile("split", atomics="nic_only")
ANY = Condition(">=", 0)


def at(rank: int, place: int) -> Spot:
    """A flag."""
    return Spot("flag", rank, place)


def put(spot: Spot, value: int = 1) -> Instruction:
    return Instruction("put", spot, value=value)


def add(spot: Spot) -> Instruction:
    return Instruction("add", spot, value=1)


ONE_OR_MORE = Condition(">=", 1)


def wait(spot: Spot, condition: Condition = ONE_OR_MORE) -> Instruction:
    return Instruction("wait_until", spot, condition=condition)


def load(spot: Spot) -> Program:
    """A load whose value some run has to reach."""
    return Instruction("load", spot, keep=True), Instruction("reach")


X, F, G = at(1, 0), at(0, 0), at(0, 1)
QUIET = Instruction("quiet")
SECOND_PUT_OF_G = (put(G, 1), put(G, 2))
"""Two puts that nothing orders, so that no single landing is persistent."""

CRAFTED: dict[str, Plan] = {
    # A put that is issued behind another may land before it, and let its reader go on
    "later_puts_wait": Plan(
        3, 1, UNORDERED,
        ((put(X), wait(G), put(F), QUIET), (wait(F), *load(X)), SECOND_PUT_OF_G),
    ),
    # A fence towards rank 0 does not hold back what goes there behind a put to rank 1
    "every_fence_is_for_all": Plan(
        3, 1, UNORDERED,
        (
            (put(X), wait(G), Instruction("fence", target=0), put(F), QUIET),
            (wait(F), *load(X)),
            SECOND_PUT_OF_G,
        ),
    ),
    # The put comes behind the second kernel end
    "syncs_pass_once": Plan(
        2, 2, UNORDERED,
        (
            load(X),
            (),
            (Instruction("kernel_end"), Instruction("kernel_end"), put(X)),
            (wait(F, ANY), Instruction("kernel_end"), Instruction("kernel_end")),
        ),
    ),
    # Only both adds together let the second process put
    "adds_come_once_in_all": Plan(
        3, 1, UNORDERED,
        (load(X), (wait(F, Condition(">=", 2)), put(X)), (add(F), add(F))),
    ),
    # The loop adds until it has read 2
    "what_is_counted_may_repeat": Plan(
        3, 1, UNORDERED,
        (
            load(X),
            (wait(F, Condition(">=", 2)), put(X)),
            (
                Instruction("fetch_add", F, value=1, keep=True),
                Instruction("jump", condition=Condition("!=", 2), target=0),
            ),
        ),
    ),
    # The first process has read 0 when 5 comes between; it writes 2 and, in the same loop, reads it
    "a_read_of_old_does_not_see_its_write": Plan(
        2, 2, SPLIT,
        (
            (
                Instruction("fetch_add", F, value=2, keep=True),
                Instruction("jump", condition=Condition("==", 0), target=0),
                Instruction("jump", condition=Condition("!=", 2), target=4),
                put(X),
            ),
            (),
            (
                Instruction("swap", F, value=5, keep=True),
                Instruction("jump", condition=Condition("!=", 0), target=4),
                put(at(1, 1), 1),
                Instruction("jump", condition=ANY, target=5),
                put(at(1, 1), 2),
            ),
            (
                Instruction("wait_until", at(1, 1), condition=ONE_OR_MORE, keep=True),
                Instruction("jump", condition=Condition("!=", 1), target=4),
                *load(X),
            ),
        ),
    ),
}  # fmt: skip
