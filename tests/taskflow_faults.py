"""Small schedules with one planted fault each, and the words that a finding about it must have."""

from __future__ import annotations

from syncproof.models.taskflow.builder import Builder
from syncproof.models.taskflow.schedule import CROSS_CORE, FLAG, MBARRIER, Launches, Schedule


def pair(threshold: int = 2, *, quiet: bool = True, triggers: int = 1) -> Schedule:
    """Two producers on rank 0 send a half each to rank 1, whose consumer waits for both."""
    b = Builder(ranks=2, name="pair")
    b.tensor("y", 1, 2)
    b.event("sent", 1)
    for half in range(2):
        b.queue(f"send{half}", 0)
        b.task(
            f"put{half}",
            f"send{half}",
            writes=[("y", half, half + 1)],
            triggers={"sent": triggers},
            quiet=quiet,
            operator="dispatch",
        )
    b.queue("cube", 1, core="aic")
    b.task("gemm", "cube", waits={"sent": threshold}, reads=[("y", 0, 2)])
    return b.build()


def order_reversed() -> Schedule:
    """Each queue waits first for what the other does second."""
    b = Builder(ranks=1, name="reversed")
    b.queue("left", 0)
    b.queue("right", 0)
    b.event("a")
    b.event("b")
    b.task("use b", "left", waits={"b": 1})
    b.task("make a", "left", triggers={"a": 1})
    b.task("use a", "right", waits={"a": 1})
    b.task("make b", "right", triggers={"b": 1})
    return b.build()


def silent_empty_tile() -> Schedule:
    """Three tiles of one operator; the empty one is silent, and the consumer waits for all."""
    b = Builder(ranks=1, name="empty tile")
    b.event("sent")
    for number in range(3):
        b.queue(f"aiv{number}", 0)
        triggers = {"sent": 1} if number < 2 else {}
        b.task(f"tile{number}", f"aiv{number}", triggers=triggers, operator="dispatch")
    b.queue("aic", 0, core="aic")
    b.task("gemm", "aic", waits={"sent": 3})
    return b.build()


def cross_core(sets: int, waits: int, *, credit: bool = False) -> Schedule:
    """An AIV sets a mode-2 flag ``sets`` times, its AIC waits ``waits`` times, at its leisure.

    With ``credit`` the AIV waits for a flag of the AIC after every 15 sets, as catlass does.
    """
    b = Builder(ranks=1, name="cross core")
    b.queue("aiv", 0)
    b.queue("aic", 0, core="aic")
    b.event("done", kind=CROSS_CORE, id=1, mode=2, cores=("aic", "aiv"))
    if credit:
        b.event("back", kind=CROSS_CORE, id=2, mode=2, cores=("aic", "aiv"))
    for number in range(sets):
        turn = number and number % 15 == 0 and credit
        b.task(f"set{number}", "aiv", waits={"back": 1} if turn else {}, triggers={"done": 1})
    for number in range(waits):
        turn = number % 15 == 14 and credit and number + 1 < sets
        b.task(f"wait{number}", "aic", waits={"done": 1}, triggers={"back": 1} if turn else {})
    return b.build()


def id_reused(*, ordered: bool) -> Schedule:
    """One id for two events; ``ordered``: the second begins when the first is consumed."""
    b = Builder(ranks=1, name="reuse")
    b.queue("aiv", 0)
    b.queue("aic", 0, core="aic")
    for name in ("first", "second"):
        b.event(name, kind=CROSS_CORE, id=3, mode=2, cores=("aic", "aiv"))
    b.event("over")
    b.task("set first", "aiv", triggers={"first": 1})
    b.task("set second", "aiv", waits={"over": 1} if ordered else {}, triggers={"second": 1})
    b.task("wait first", "aic", waits={"first": 1}, triggers={"over": 1})
    b.task("wait second", "aic", waits={"second": 1})
    return b.build()


def flag_set_twice(*, ordered: bool) -> Schedule:
    """A pipe flag set twice; ``ordered``: the second time after the wait, told by another flag."""
    b = Builder(ranks=1, name="flag")
    b.queue("MTE2", 0, core="pipe")
    b.queue("V", 0, core="pipe")
    b.event("full", kind=FLAG, id=0, cores=("MTE2", "V"))
    b.event("empty", kind=FLAG, id=1, cores=("V", "MTE2"))
    b.task("load0", "MTE2", triggers={"full": 1})
    b.task("load1", "MTE2", waits={"empty": 1} if ordered else {}, triggers={"full": 1})
    b.task("add0", "V", waits={"full": 1}, triggers={"empty": 1} if ordered else {})
    b.task("add1", "V", waits={"full": 1})
    return b.build()


def mbarrier(*, ordered: bool) -> Schedule:
    """Two producers arrive for two phases; ``ordered``: for the second once the first was used."""
    b = Builder(ranks=1, name="mbarrier")
    b.event("full", kind=MBARRIER, arrivals=2)
    b.event("empty", kind=MBARRIER, arrivals=1)
    for producer in range(2):
        b.queue(f"tma{producer}", 0)
        for phase in range(2):
            waits = {"empty": 1} if ordered and phase else {}
            b.task(f"load{producer}.{phase}", f"tma{producer}", waits=waits, triggers={"full": 1})
    b.queue("mma", 0)
    b.task("mma0", "mma", waits={"full": 1}, triggers={"empty": 1} if ordered else {})
    b.task("mma1", "mma", waits={"full": 1})
    return b.build()


def shared_by_phases(*, ordered: bool) -> Schedule:
    """One counter for two phases: 1 means the first producer, 2 both, if they are ordered."""
    b = Builder(ranks=1, name="phases")
    b.tensor("x", 0, 2)
    b.event("count")
    b.event("go")
    for number in range(2):
        b.queue(f"aiv{number}", 0)
    b.queue("aic", 0, core="aic")
    b.task("one", "aiv0", writes=[("x", 0, 1)], triggers={"count": 1, "go": 1})
    b.task(
        "two",
        "aiv1",
        waits={"go": 1} if ordered else {},
        writes=[("x", 1, 2)],
        triggers={"count": 1},
    )
    b.task("first", "aic", waits={"count": 1}, reads=[("x", 0, 1)])
    b.task("both", "aic", waits={"count": 2}, reads=[("x", 0, 2)])
    return b.build()


def zeroing(barrier: str) -> Schedule:
    """Each rank signals the other; counters are zeroed between two launches."""
    names = ("here0", "here1")
    b = Builder(ranks=2, name="zeroing", launches=Launches(2, names, barrier))
    for rank in range(2):
        b.event(f"here{rank}", rank)
        b.queue(f"aiv{rank}", rank)
    for rank in range(2):
        b.task(f"signal{rank}", f"aiv{rank}", triggers={f"here{1 - rank}": 1})
        b.task(f"wait{rank}", f"aiv{rank}", waits={f"here{rank}": 1})
    return b.build()


def pool(size: int) -> Schedule:
    """A waiter and its notifier share ``size`` cores; the waiter may come first and spin."""
    b = Builder(ranks=1, name="pool")
    b.pool("cores", 0, size)
    b.event("go")
    b.queue("spinner", 0, pool="cores")
    b.queue("notifier", 0, pool="cores")
    b.task("wait", "spinner", waits={"go": 1})
    b.task("notify", "notifier", triggers={"go": 1})
    return b.build()


def pool_of_either() -> Schedule:
    """Three queues on one core: one spins until either of the others has triggered."""
    b = Builder(ranks=1, name="either")
    b.pool("cores", 0, 1)
    b.event("go")
    for name in ("left", "spinner", "right"):
        b.queue(name, 0, pool="cores")
    b.task("wait", "spinner", waits={"go": 1})
    b.task("notify left", "left", triggers={"go": 1})
    b.task("notify right", "right", triggers={"go": 1})
    return b.build()


def counts_itself() -> Schedule:
    """A task that waits for one of two triggers and later triggers the event itself."""
    b = Builder(ranks=1)
    b.event("half", 0)
    b.tensor("x", 0, 2)
    for name in ("one", "two", "join"):
        b.queue(name, 0)
    b.task("first", "one", writes=[("x", 0, 1)], triggers={"half": 1})
    b.task("second", "two", writes=[("x", 1, 2)], triggers={"half": 1})
    b.task("both", "join", waits={"half": 1}, reads=[("x", 0, 2)], triggers={"half": 1})
    return b.build()
