"""Which test tells two values of a fabric key, or two ways to write a program, apart.

The pairs and their verdicts are those of the collection (its section 10): the first side forbids
what the second allows.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.litmus import table


class KeyFlip(NamedTuple):
    """One program whose ``condition`` is forbidden on one fabric and allowed on the other."""

    key: str
    pair: str
    memory: str
    program: str
    condition: str
    forbids: str
    allows: str


class ProgramFlip(NamedTuple):
    """Two (memory, program): the first forbids ``condition``, the second allows it."""

    what: str
    pair: str
    forbids: tuple[str, str]
    allows: tuple[str, str]
    condition: str
    fabric: str


GETS_DATA = "T0@0: put x=1; fence; put f=1 | T1@1: wait f=1; get r=x"
ONE_SIGNAL = "T0@0: put x=1; put y=1 sig f=1 | T1@1: wait f=1; ld r=x"
FLAG_LAST = "T0@0: put x0=1,x1=1,x2=1,x3=1,f=1 | T1@1: wait f=1; ld r=x0"
TWO_STORES = "T0@0: put x=1,y=1; put x=2,y=2"
ONE_LOAD = "T0@0: put x=1,f=1 | T1@1: ld r,s=x,f"
WORDS = "x0:64+x1:64+x2:64+x3:64+f:64@1"

KEYS = (
    KeyFlip(
        "ordering", "IB01-IB02", "x@1 f@1", table.MP, "T1.r=0", "rdma-rc", "rdma-rc,ordering=none"
    ),
    KeyFlip(
        "ordering",
        "IB01-IB03",
        "x@1 y@1 one@0=1/local",
        table.MP_QUEUES,
        "N1.f=1 & N1.d=0",
        "rdma-rc,ordering=per_pair",
        "rdma-rc",
    ),
    KeyFlip(
        "store_atomicity",
        "A06-A07",
        WORDS,
        FLAG_LAST,
        "T1.r=0",
        "cm384",
        "cm384,store_atomicity=64",
    ),
    KeyFlip(
        "store_atomicity",
        "A12-A11",
        "x:8+y:8@1",
        TWO_STORES,
        "x=1 & y=2",
        "nvlink,same_address_order=false",
        "nvlink,same_address_order=false,store_atomicity=8",
    ),
    KeyFlip(
        "load_atomicity",
        "soundness rule C18",
        "x:64+f:64@1",
        ONE_LOAD,
        "T1.r=0 & T1.s=1",
        "cm384",
        "cm384,load_atomicity=64",
    ),
    KeyFlip(
        "in_block_order",
        "IB07-IB06",
        "x:8+f:8@1",
        table.MP_BLOCK,
        "T1.r=0",
        "rdma-rc,in_block_order=ascending",
        "rdma-rc",
    ),
    KeyFlip(
        "same_address_order",
        "IB19-IB18",
        "x@1",
        "T0@0: put x=1; put x=2",
        "x=1",
        "rdma-unordered,same_address_order=true",
        "rdma-unordered",
    ),
    KeyFlip(
        "fence",
        "R08-R06, S17-S18",
        "x@1 one@0=1/local d@0=9",
        table.GET_FENCE_PUT,
        "N0.r=1",
        "rdma-rc,fence=drains",
        "rdma-rc",
    ),
    KeyFlip(
        "fence",
        "R18-R16",
        "x@1/local y@1/local a@0 b@0",
        table.TWO_GETS_FENCE,
        "N0.a=1 & N0.b=0",
        "rdma-rc,fence=drains",
        "rdma-rc",
    ),
    KeyFlip(
        "fence",
        "0.1, item 9",
        "x@1 f@1",
        table.MP_FENCE,
        "T1.r=0",
        "rdma-unordered",
        "rdma-unordered,fence=none",
    ),
    KeyFlip(
        "fence_scope",
        "G08-G07",
        "x@2 f@1",
        GETS_DATA,
        "T1.r=0",
        "openshmem,fence_scope=all",
        "openshmem",
    ),
    KeyFlip(
        "load_order",
        "S23-S22",
        "x@1 y@1",
        table.GETS_IN_TURN,
        "T2.a=1 & T2.b=0",
        "openshmem",
        "openshmem,load_order=none",
    ),
    KeyFlip(
        "load_order",
        "soundness rule C18",
        "x@1 f@1",
        table.MP_FENCE,
        "T1.r=0",
        "openshmem",
        "openshmem,load_order=none",
    ),
    KeyFlip(
        "quiet",
        "G08-G09",
        "x@2 f@1",
        table.MP_THIRD,
        "T1.r=0",
        "openshmem",
        "openshmem,quiet=target",
    ),
    KeyFlip(
        "quiet",
        "IB04-IB20",
        "x@1 f@1",
        table.MP_QUIET,
        "T1.r=0",
        "rdma-unordered",
        "rdma-unordered,quiet=local",
    ),
    KeyFlip(
        "signal",
        "G02-G01",
        "x@1 y@1 f@1",
        ONE_SIGNAL,
        "T1.r=0",
        "openshmem,signal=prior",
        "openshmem",
    ),
    KeyFlip(
        "atomics",
        "IB15-IB14, R25-R24",
        "x@1",
        table.LOST_ADD,
        "N0.a=0 & N1.b=0",
        "rdma-rc,atomics=one_domain",
        "rdma-rc",
    ),
    KeyFlip(
        "immediate",
        "S02 under sequential consistency",
        "x@1 f@1",
        table.MP,
        "T1.r=0",
        "openshmem,immediate=true",
        "openshmem",
    ),
)

LINE = "x@1/line f@1/line"
CACHED = "T0@0: put x=1; put f=1 | T1@1: cld z=x; wait f=1; dcci x; cld r=x"
CACHED_EARLY = "T0@0: put x=1; put f=1 | T1@1: cld z=x; dcci x; cld z=x; wait f=1; cld r=x"
CACHED_NEVER = "T0@0: put x=1; put f=1 | T1@1: cld z=x; wait f=1; cld r=x"
PUBLISHED = "T0@0: cst x=1; dcci x; put f=1 | T1@0: wait f=1; ld r=x"
UNPUBLISHED = "T0@0: cst x=1; put f=1 | T1@0: wait f=1; ld r=x"
TWO_FLAGS = "T0@0: cst f0=1; dcci f0 | T1@0: cst f1=1; dcci f1"
PAIR = "x@1 f@1 c@0"
CREDIT = "T0@0: put x=1 sig f=1; wait c=1; put x=2 sig f=2 | T1@1: wait f=1; ld r=x; put c=1"
NO_CREDIT = "T0@0: put x=1 sig f=1; put x=2 sig f=2 | T1@1: wait f=1; ld r=x"
NO_CREDIT_LEAST = "T0@0: put x=1 sig f=1; put x=2 sig f=2 | T1@1: wait f>=1; ld r=x"
FRESH = (
    "T0@0: put x=1 sig f=1; wait c=1; put x=2 sig f=2"
    " | T1@1: wait f=1; ld a=x; put c=1; wait f=2; ld r=x"
)
REUSED = (
    "T0@0: put x=1 sig f=1; wait c=1; put x=2 sig f=1"
    " | T1@1: wait f=1; ld a=x; put c=1; wait f=1; ld r=x"
)
FLUSHED = "T0@0: put x=1 q1; get z=x q1; put f=1 q9 | T1@1: wait f=1; ld r=x"
POLLED = "T0@0: put x=1 q1; quiet; put f=1 q9 | T1@1: wait f=1; ld r=x"

PROGRAMS = (
    ProgramFlip(
        "invalidate after the flag, not at all",
        "C02-C01",
        (LINE, CACHED),
        (LINE, CACHED_NEVER),
        "T1.r=0",
        table.FIFO,
    ),
    ProgramFlip(
        "invalidate after the flag, before it",
        "C02-C03",
        (LINE, CACHED),
        (LINE, CACHED_EARLY),
        "T1.r=0",
        table.FIFO,
    ),
    ProgramFlip(
        "clean after a cached store",
        "C07-C06",
        ("x@0/line f@0/line", PUBLISHED),
        ("x@0/line f@0/line", UNPUBLISHED),
        "T1.r=0",
        table.FIFO,
    ),
    ProgramFlip(
        "flags on lines of their own",
        "C09-C08",
        ("f0@0/line f1@0/line", TWO_FLAGS),
        ("f0,f1@0/line", TWO_FLAGS),
        "f0=0 & f1=1",
        table.FIFO,
    ),
    ProgramFlip(
        "credit before a slot is used again",
        "G14-G13",
        (PAIR, CREDIT),
        (PAIR, NO_CREDIT),
        "T1.r=2",
        "openshmem,ordering=per_pair",
    ),
    ProgramFlip(
        "at least, not equal",
        "remark on G13",
        (PAIR, NO_CREDIT_LEAST),
        (PAIR, NO_CREDIT),
        "hang",
        "openshmem,ordering=per_pair",
    ),
    ProgramFlip(
        "a fresh flag value",
        "G16-G15",
        (PAIR, FRESH),
        (PAIR, REUSED),
        "T1.r=1",
        "openshmem,ordering=per_pair",
    ),
    ProgramFlip(
        "a get flushes what was polled",
        "IB13-IB11",
        ("x@1 f@1", FLUSHED),
        ("x@1 f@1", POLLED),
        "T1.r=0",
        "rdma-rc,quiet=local",
    ),
    ProgramFlip(
        "a barrier completes puts",
        "B01-B02",
        ("x@1", "T0@0: put x=1; barrier | T1@1: barrier; ld r=x"),
        ("x@1", "T0@0: put x=1; meet b1 | T1@1: meet b1; ld r=x"),
        "T1.r=0",
        "openshmem",
    ),
    ProgramFlip(
        "barriers in one order",
        "barrier ids matched-B04",
        ("", "T0@0: meet b1; meet b2 | T1@1: meet b1; meet b2"),
        ("", "T0@0: meet b1; meet b2 | T1@1: meet b2; meet b1"),
        "hang",
        "sc",
    ),
    ProgramFlip(
        "barrier counts that agree",
        "counts matched-W3",
        ("", "T0@0: sync b0 64 | T1@0: sync b0 64"),
        ("", "T0@0: sync b0 96 | T1@0: sync b0 128"),
        "hang",
        "sc",
    ),
)

NOT_FLIPPED = {
    "name": "says which profile it is",
    "in_flight": "bounds the search; a run beyond it is undecided",
    "latency_ns": "the emulator's alone",
    "hops": "gives other keys for one class of hops (test_each_hop_class_has_its_own_keys)",
    "ranks_per_switch": "divides hops into classes (test_each_hop_class_has_its_own_keys)",
}
