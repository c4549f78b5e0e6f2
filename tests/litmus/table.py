"""The litmus tests of the literature with their published verdicts, one row a question.

Identifiers are those of the collection that the project started from: R coreRMA (Dan, Lam,
Hoefler, Vechev, OOPSLA 2016, the Alloy text yurime/alloyRDMAgen b46fef2), S OpenSHMEM's draft
memory model (openshmem-org/specification, pull request 570), IB verbs, G signals and fences,
A store atomicity, U Unified Bus, C caches, B barriers, W Weft (lightsighter/Weft d9ee750,
examples/negatives), AMO the undefined scenarios of OpenSHMEM (example_code/amo_scenario_*.c).
Verdicts of IB, G, A, U, C and B follow from the rule that ``source`` quotes.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """Is there a complete run of ``program`` that ends with ``condition``?

    ``fabric`` as ``--fabric`` has it. A row with a ``reading`` is one side of a disagreement.
    """

    id: str
    memory: str
    program: str
    condition: str
    fabric: str
    allowed: bool
    source: str
    reading: str = ""


class Missing(NamedTuple):
    """A published test that the model cannot say, and what it would need."""

    id: str
    program: str
    allowed: bool
    needs: str


ALLOWED, FORBIDDEN = True, False

CORE_RMA = "coreRMA, rules of the Alloy text"
CORE_RMA_FIXED = "coreRMA with NIC-ordered puts in mo, as its comment on order-sw intends"
PR570 = "OpenSHMEM pull request 570"

MP = "T0@0: put x=1; put f=1 | T1@1: wait f=1; ld r=x"
MP_FENCE = "T0@0: put x=1; fence; put f=1 | T1@1: wait f=1; ld r=x"
MP_FENCE_1 = "T0@0: put x=1; fence 1; put f=1 | T1@1: wait f=1; ld r=x"
MP_QUIET = "T0@0: put x=1; quiet; put f=1 | T1@1: wait f=1; ld r=x"
MP_BLOCK = "T0@0: put x=1,f=1 | T1@1: wait f=1; ld r=x"
MP_THIRD = "T0@0: put x=1; quiet; put f=1 | T1@1: wait f=1; get r=x"
MP_QUEUES = "N0: put x=[one] q1; put y=[one] q2 | N1: ld f=y; ld d=x"
TWO_GETS = "N0: get a=[y] q1; get b=[x] q1; quiet; ld a=a; ld b=b | N1: put x=1; put y=1"
TWO_GETS_FENCE = (
    "N0: get a=[y] q1; fence; get b=[x] q1; quiet; ld a=a; ld b=b | N1: put x=1; put y=1"
)
TWO_PUTS = "N0: put x=[s1] q1; put x=[s2] q1 | N1: ld a=x; ld b=x"
GET_PUT = "N0: get d=[x] q1; put x=[one] q1; quiet; ld r=d"
GET_FENCE_PUT = "N0: get d=[x] q1; fence; put x=[one] q1; quiet; ld r=d"
STORE_GET = "N0: put x=1; get a=[y] q1; quiet; ld a=a | N1: put y=1; get b=[x] q2; quiet; ld b=b"
LOST_ADD = "N0: fadd a=x+1 q1 | N1: fadd b=x+1"
DATA_ATOMIC = "N0: put x=[one] q1; add y=1 q1 | N1: ld f=y; ld d=x"
RELAY = "N0: put x=[s] q1; quiet; put f=[s] q2 | N1: ld f=f; put g=[u] q3 | N2: ld g=g; ld r=x"
SB_QUIET = "T0@0: put x=1; quiet; fadd a=y+0 | T1@1: put y=1; quiet; fadd b=x+0"
GETS_IN_TURN = "T0@0: put x=1; fence; put y=1 | T2@2: get a=y; get b=x"
PUT_GET = "T0@0: put x=1; fence; get a=y | T1@1: put y=1; fence; get b=x"

# A poll that says only that the source may be used again.
POLL = "rdma-rc,quiet=local"

R_ROWS = (
    Row("R02", "x@1 y@1 one@0=1/local", MP_QUEUES, "N1.f=1 & N1.d=0", POLL, ALLOWED, CORE_RMA),
    Row(
        "R04",
        "x@1 one@0=1/local d@0=9",
        "N0: put x=[one] q1; get d=[x] q1; quiet; ld r=d",
        "N0.r=0",
        POLL,
        FORBIDDEN,
        CORE_RMA,
    ),
    Row("R06", "x@1 one@0=1/local d@0=9", GET_PUT, "N0.r=1", POLL, ALLOWED, CORE_RMA),
    Row(
        "R08",
        "x@1 one@0=1/local d@0=9",
        GET_FENCE_PUT,
        "N0.r=1",
        f"{POLL},fence=drains",
        FORBIDDEN,
        f"{CORE_RMA}: a NIC fence waits for earlier gets",
    ),
    Row(
        "R10",
        "x@1 s@0=1/local",
        "N0: put x=[s] q1; quiet; put s=2 | N1: ld r=x",
        "N1.r=2",
        POLL,
        FORBIDDEN,
        CORE_RMA,
    ),
    Row("R12", "x@1=1 d@0=9", "N0: get d=[x] q1; ld r=d", "N0.r=9", POLL, ALLOWED, CORE_RMA),
    Row(
        "R14",
        "x@1 f@0 one@0=1/local l@1",
        "N0: put x=[one] q1; quiet; put f=1 | N1: get l=[f] q2; quiet; ld l=l; ld r=x",
        "N1.l=1 & N1.r=0",
        POLL,
        ALLOWED,
        CORE_RMA,
    ),
    Row("R16", "x@1/local y@1/local a@0 b@0", TWO_GETS, "N0.a=1 & N0.b=0", POLL, ALLOWED, CORE_RMA),
    Row(
        "R18",
        "x@1/local y@1/local a@0 b@0",
        TWO_GETS_FENCE,
        "N0.a=1 & N0.b=0",
        f"{POLL},fence=drains",
        FORBIDDEN,
        f"{CORE_RMA}: a NIC fence waits for earlier gets",
    ),
    Row(
        "R20",
        "x@1 s1@0=1/local s2@0=2/local",
        TWO_PUTS,
        "N1.a=2 & N1.b=1",
        POLL,
        FORBIDDEN,
        CORE_RMA_FIXED,
        "corrected",
    ),
    Row(
        "R20",
        "x@1 s1@0=1/local s2@0=2/local",
        TWO_PUTS,
        "N1.a=2 & N1.b=1",
        f"{POLL},ordering=none,same_address_order=false",
        ALLOWED,
        CORE_RMA,
        "as published",
    ),
    Row(
        "R22",
        "x@0 y@1 a@0=9 b@1=9",
        STORE_GET,
        "N0.a=0 & N1.b=0",
        POLL,
        ALLOWED,
        CORE_RMA,
        "a store may still be in flight when the get is served",
    ),
    Row(
        "R22",
        "x@0/local y@1/local a@0=9 b@1=9",
        STORE_GET,
        "N0.a=0 & N1.b=0",
        POLL,
        FORBIDDEN,
        "RDMA on TSO as tabulated with the collection: earlier CPU operations precede a get",
        "posting a get flushes the store buffer",
    ),
    Row(
        "R24",
        "x@1 a@0=9",
        LOST_ADD,
        "N0.a=0 & N1.b=0",
        f"{POLL},atomics=one_domain",
        FORBIDDEN,
        CORE_RMA,
        "coreRMA",
    ),
    Row(
        "R24",
        "x@1 a@0=9",
        LOST_ADD,
        "N0.a=0 & N1.b=0",
        POLL,
        ALLOWED,
        "RDMA on TSO with RMW (arXiv 2601.14642): only against other remote RMWs",
        "rdma-core and RDMA on TSO",
    ),
    Row(
        "R26",
        "x@1 y@1 one@0=1/local",
        DATA_ATOMIC,
        "N1.f=1 & N1.d=0",
        f"{POLL},ordering=none",
        ALLOWED,
        CORE_RMA,
        "coreRMA",
    ),
    Row(
        "R26",
        "x@1 y@1 one@0=1/local",
        DATA_ATOMIC,
        "N1.f=1 & N1.d=0",
        POLL,
        FORBIDDEN,
        "DeepEP issue 83",
        "one path, no relaxed ordering",
    ),
    Row(
        "R28",
        "x@1=1 d@0=9 z@2",
        "N0: get d=[x] q1; put z=[d] q1 | N2: ld r=z",
        "N2.r=9",
        POLL,
        ALLOWED,
        CORE_RMA,
    ),
    Row(
        "R30",
        "x@1 y@1 s@0=1/local",
        "N0: put x=[s] q1; put y=[s] q1; put s=2 | N1: ld a=x; ld b=y",
        "N1.a=2 & N1.b=1",
        POLL,
        FORBIDDEN,
        CORE_RMA,
    ),
    Row(
        "R32",
        "x@2 f@1 g@2 s@0=1/local u@1=1/local",
        RELAY,
        "N1.f=1 & N2.g=1 & N2.r=0",
        POLL,
        ALLOWED,
        CORE_RMA,
    ),
)

IB_ROWS = (
    Row(
        "IB02",
        "x@1 f@1",
        MP,
        "T1.r=0",
        "rdma-unordered",
        ALLOWED,
        "ibv_reg_mr.3: write-after-write message order is no longer guaranteed",
    ),
    Row(
        "IB04",
        "x@1 f@1",
        MP_QUIET,
        "T1.r=0",
        "rdma-unordered",
        FORBIDDEN,
        "ibv_reg_mr.3: a completion still ensures that all data is visible",
        "a completion is in memory",
    ),
    Row(
        "IB06",
        "x:8+f:8@1",
        MP_BLOCK,
        "T1.r=0",
        "rdma-rc",
        ALLOWED,
        "ibv_query_qp_data_in_order.3, capability absent; libfabric issue 9012",
    ),
    Row(
        "IB08",
        "x:64+f:64@1",
        MP_BLOCK,
        "T1.r=0",
        "rdma-rc,store_atomicity=128",
        FORBIDDEN,
        "ibv_query_qp_data_in_order.3: each aligned block of 128 bytes is written in order",
    ),
    Row(
        "IB10",
        "x@1 f@1",
        MP,
        "T1.r=0",
        "rdma-unordered,in_block_order=ascending",
        ALLOWED,
        "ibv_query_qp_data_in_order.3: no order between separate work requests",
    ),
    Row(
        "IB14",
        "x@1",
        "T0@0: fadd a=x+1 | T1@1: fadd b=x+1",
        "T0.a=0 & T1.b=0",
        "rdma-rc",
        ALLOWED,
        "ibv_wr_post.3: not atomic with writes performed by the CPU",
    ),
    Row(
        "IB16",
        "x@1 f@1",
        "T0@0: put x=1; add f=1 | T1@1: wait f=1; ld r=x",
        "T1.r=0",
        "rdma-unordered",
        ALLOWED,
        "torchcomms pull request 840: not safe with adaptive routing",
    ),
    Row(
        "IB18",
        "x@1",
        "T0@0: put x=1; put x=2",
        "x=1",
        "rdma-unordered",
        ALLOWED,
        "ibv_reg_mr.3: back-to-back writes leave the region in an unknown state",
    ),
    Row(
        "IB20",
        "x@1 f@1",
        MP_QUIET,
        "T1.r=0",
        "rdma-unordered,quiet=local",
        ALLOWED,
        "coreRMA's poll of a put, with PCIe A2b: relaxed writes may pass",
        "a completion is local",
    ),
)

S_ROWS = (
    Row("S02", "x@1 f@1", MP, "T1.r=0", "openshmem", ALLOWED, PR570),
    Row(
        "S04",
        "x@1 f@1",
        "T0@0: put x=1 sig f=1 | T1@1: wait f=1; ld r=x",
        "T1.r=0",
        "openshmem",
        FORBIDDEN,
        PR570,
    ),
    Row(
        "S06",
        "x@1 y@1 f@1",
        "T0@0: put y=1; fence; put x=1 sig f=1 | T1@1: wait f=1; ld r=y",
        "T1.r=0",
        "openshmem",
        FORBIDDEN,
        PR570,
    ),
    Row(
        "S08",
        "x@1 y@2",
        "T0@0: put x=1; quiet; put y=1 | T2@2: wait y=1; get r=x",
        "T2.r=0",
        "openshmem",
        FORBIDDEN,
        f"{PR570}, issue 265",
    ),
    Row(
        "S10",
        "x@2 f@1 g@2",
        "T0@0: put x=1; quiet; put f=1 | T1@1: wait f=1; put g=1 | T2@2: wait g=1; ld r=x",
        "T2.r=0",
        "openshmem",
        FORBIDDEN,
        PR570,
    ),
    Row(
        "S12",
        "x@1 f@1 s@0/local",
        "T0@0: put s=1; put x=[s]; put s=2; quiet; put f=1 | T1@1: wait f=1; ld r=x",
        "T1.r=2",
        "openshmem",
        ALLOWED,
        PR570,
    ),
    Row(
        "S14",
        "x@1 f@1 s@0/local",
        "T0@0: put s=1; put x=[s]; quiet; put s=2; put f=1 | T1@1: wait f=1; ld r=x",
        "T1.r=2",
        "openshmem",
        FORBIDDEN,
        PR570,
    ),
    # Printed with x = 0 throughout, where r = 0 says nothing; here only the old d is 0.
    Row(
        "S16",
        "x@1=1 d@0",
        "T0@0: get d=[x]; ld r=d | T1@1: put x=1",
        "T0.r=0",
        "openshmem",
        ALLOWED,
        PR570,
    ),
    Row(
        "S18",
        "x@1 d@0",
        "T0@0: barrier; get d=[x]; fence; ld r=d | T1@1: put x=1; barrier",
        "T0.r=0",
        "openshmem",
        ALLOWED,
        PR570,
    ),
    Row(
        "S20",
        "x@1 y@0",
        SB_QUIET,
        "T0.a=0 & T1.b=0",
        "openshmem,quiet=local",
        ALLOWED,
        f"{PR570}: no axiom of sequential consistency",
        "the draft",
    ),
    Row(
        "S20",
        "x@1 y@0",
        SB_QUIET,
        "T0.a=0 & T1.b=0",
        "openshmem",
        FORBIDDEN,
        "OpenSHMEM: visible to all PEs when quiet returns",
        "the prose",
    ),
    Row(
        "S22",
        "x@1 y@1",
        GETS_IN_TURN,
        "T2.a=1 & T2.b=0",
        "openshmem,load_order=none",
        ALLOWED,
        PR570,
    ),
    Row("S24", "c@0", "T0@0: add c=1 | T1@1: add c=1", "c=1", "openshmem", FORBIDDEN, PR570),
    Row("S26", "x@1", "T0@0: put x=1; put x=2", "x=1", "openshmem", ALLOWED, PR570),
    Row(
        "S30",
        "x@1 f@1 y@2 g@2",
        "T0@0: put x=1 sig f=1 | T1@1: wait f=1; ld v=x; put y=$v; fence; put g=1"
        " | T2@2: wait g=1; ld r=y",
        "T2.r=0",
        "openshmem",
        FORBIDDEN,
        PR570,
    ),
    Row(
        "AMO1",
        "x@0",
        "T0@0: fadd a=x+1 | T1@1: fadd b=x+1",
        "x=1",
        "openshmem",
        ALLOWED,
        "amo_scenario_1.c: two atomicity domains, undefined",
    ),
    Row(
        "AMO3",
        "x@1",
        "T0@0: add x=1 | T1@1: ld r=x",
        "T1.r=0",
        "openshmem",
        ALLOWED,
        "amo_scenario_3.c: an atomic and a collective that reads, undefined",
    ),
    Row(
        "AMO4",
        "x@0",
        "T0@0: ld v=x; put x=$v+1 | T1@1: add x=1",
        "x=1",
        "openshmem",
        ALLOWED,
        "amo_scenario_4.c: an atomic and a local access, undefined",
    ),
    Row(
        "fence-get",
        "x@2 y@2",
        PUT_GET,
        "T0.a=0 & T1.b=0",
        "openshmem",
        ALLOWED,
        "OpenSHMEM shmem_fence: a blocking get is not ordered by it",
    ),
)

G_ROWS = (
    Row(
        "G02",
        "x@1 y@1 f@1",
        "T0@0: put x=1; put y=1 sig f=1 | T1@1: wait f=1; ld r=x",
        "T1.r=0",
        "openshmem,signal=prior",
        FORBIDDEN,
        "NCCL GIN 2.30.5, strong signal",
    ),
    Row(
        "G04",
        "x0:8+x1:8+x2:8+x3:8@1 f@1",
        "T0@0: put x0=1,x1=1,x2=1,x3=1 sig f=1 | T1@1: wait f=1; ld r=x2",
        "T1.r=0",
        "openshmem",
        FORBIDDEN,
        "OpenSHMEM put_signal; UMDK write_with_notify",
    ),
    Row("G06", "x@1 f@1", MP_FENCE_1, "T1.r=0", "openshmem", FORBIDDEN, "OpenSHMEM fence"),
    Row("G08", "x@2 f@1", MP_THIRD, "T1.r=0", "openshmem", FORBIDDEN, "OpenSHMEM quiet; issue 265"),
    Row(
        "G10",
        "x@1 f@1",
        MP_QUIET,
        "T1.r=0",
        "openshmem,quiet=target",
        FORBIDDEN,
        "hicann/shmem, shmem_device_mo.h",
    ),
    Row(
        "G12",
        "x@1 f@1 y@2 g@2",
        "T0@0: put x=7 sig f=1 | T1@1: wait f=1; ld v=x; put y=$v; put g=1"
        " | T2@2: wait g=1; ld r=y",
        "T2.r=0",
        "openshmem",
        ALLOWED,
        "S02",
    ),
    Row(
        "G14",
        "x@1 f@1 c@0",
        "T0@0: put x=1 sig f=1; wait c=1; put x=2 sig f=2 | T1@1: wait f=1; ld r=x; put c=1",
        "T1.r=2",
        "openshmem,ordering=per_pair",
        FORBIDDEN,
        "S29 with loads in order",
    ),
    Row(
        "G16",
        "x@1 f@1 c@0",
        "T0@0: put x=1 sig f=1; wait c=1; put x=2 sig f=2"
        " | T1@1: wait f=1; ld a=x; put c=1; wait f=2; ld r=x",
        "T1.r=1",
        "openshmem,ordering=per_pair",
        FORBIDDEN,
        "S29 with loads in order",
    ),
)

A_ROWS = (
    Row(
        "A02",
        "x:4+f:4+y:4+g:4@1",
        "T0@0: put x=1,f=1,y=1,g=1 | T1@1: wait f=1; ld r=y",
        "T1.r=0",
        "nvlink,store_atomicity=8",
        ALLOWED,
        "PTX 8.2.3: a vector access is scalar accesses in unspecified order",
        "as promised",
    ),
    Row(
        "A02",
        "x:4+f:4+y:4+g:4@1",
        "T0@0: put x=1,f=1,y=1,g=1 | T1@1: wait f=1; ld r=y",
        "T1.r=0",
        "nvlink",
        FORBIDDEN,
        "16-byte stores as they are sold",
        "as sold",
    ),
    Row(
        "A04",
        "x0:8+x1:8+x2:8+x3:8+f:8@1",
        "T0@0: put x0=1,x1=1,x2=1,x3=1,f=1 | T1@1: wait f=1; ld r=x3",
        "T1.r=0",
        "nvlink-ll128,store_atomicity=8",
        FORBIDDEN,
        "NCCL issues 281 and 786",
    ),
    Row(
        "A06",
        "x0:120+x1:120+x2:120+x3:120+f:32@1",
        "T0@0: put x0=1,x1=1,x2=1,x3=1,f=1 | T1@1: wait f=1; ld r=x0",
        "T1.r=0",
        "cm384",
        FORBIDDEN,
        "moe_distribute_dispatch_v2_full_mesh.h",
    ),
    Row(
        "A08",
        "x0:128+x1:128+x2:128+x3:128+y:480+f:32@1",
        "T0@0: put x0=1,x1=1,x2=1,x3=1,y=1,f=1 | T1@1: wait f=1; ld r=x0",
        "T1.r=0",
        "cm384",
        ALLOWED,
        "one flag in each atomic block is needed",
    ),
    Row(
        "A10",
        "w:256+x0:256+x1:224+f:32+z:256@1",
        "T0@0: put x0=1,x1=1,f=1 | T1@1: wait f=1; ld r=x0",
        "T1.r=0",
        "cm384",
        ALLOWED,
        "UALink: single-copy atomicity is harder across memory channels",
    ),
    Row(
        "A12",
        "x:8+y:8@1",
        "T0@0: put x=1,y=1; put x=2,y=2",
        "x=1 & y=2",
        "nvlink,same_address_order=false",
        FORBIDDEN,
        "one atom holds both words",
    ),
)

U_ROWS = (
    Row(
        "U02",
        "x@1 f@1",
        MP_FENCE,
        "T1.r=0",
        "rdma-unordered",
        FORBIDDEN,
        "UMDK API Guide 11625: strong waits for earlier relax and strong requests",
    ),
    Row(
        "U02",
        "x@1 f@1",
        MP_FENCE,
        "T1.r=0",
        "rdma-unordered,fence=none",
        ALLOWED,
        "UMDK API Guide 11621: the fence flag waits for earlier reads and atomics only",
        "the fence flag in place of strong order, by the API Guide",
    ),
    Row(
        "U06",
        "x@1 y@1 f@1",
        "T0@0: put x=1; put y=1; fence; put f=1 | T1@1: wait f=1; ld r=x; ld s=y",
        "T1.r=1 & T1.s=0",
        "rdma-unordered",
        FORBIDDEN,
        "UMDK API Guide 11625",
    ),
    Row(
        "U08",
        "x@1 f@1",
        MP,
        "T1.r=0",
        "rdma-rc",
        FORBIDDEN,
        "UMDK User Guide 861: executed in order at the destination",
    ),
)

FIFO = "cm384,ordering=per_queue"
DCCI = "CANN 8.5, DataCacheCleanAndInvalid"

C_ROWS = (
    Row(
        "C02",
        "x@1/line f@1/line",
        "T0@0: put x=1; put f=1 | T1@1: cld z=x; wait f=1; dcci x; cld r=x",
        "T1.r=0",
        FIFO,
        FORBIDDEN,
        f"{DCCI}: call it before reading what others changed",
    ),
    Row(
        "C04",
        "x@1/line f@1/line",
        "T0@0: put x=1; put f=1 | T1@1: cld z=x; wait f=1; ld r=x",
        "T1.r=0",
        FIFO,
        FORBIDDEN,
        f"{DCCI}: DMA has no consistency problem",
    ),
    Row(
        "C06",
        "x@0/line f@0/line",
        "T0@0: cst x=1; put f=1 | T1@0: wait f=1; ld r=x",
        "T1.r=0",
        FIFO,
        ALLOWED,
        f"{DCCI}: call it after scalar writes to publish them",
    ),
    Row(
        "C08",
        "f0,f1@0/line",
        "T0@0: cst f0=1; dcci f0 | T1@0: cst f1=1; dcci f1",
        "f0=0 & f1=1",
        FIFO,
        ALLOWED,
        "hicann/shmem, shmemi_device_cc.h: the lost signal",
    ),
    Row(
        "C10",
        "f0,f1@1/line",
        "T0@0: put f1=1 | T1@1: cst f0=1; dcci f0",
        "f1=0 & f0=1",
        FIFO,
        ALLOWED,
        "a line is written back whole",
    ),
    Row(
        "C12",
        "x@1 f@1",
        "T0@0: put x=1 q1; quiet; put f=1 q2 | T1@1: wait f=1; ld r=x",
        "T1.r=0",
        FIFO,
        FORBIDDEN,
        "hicann/shmem: sdma_quiet before the status word",
    ),
)

B_ROWS = (
    Row(
        "B02",
        "x@1",
        "T0@0: put x=1; meet b1 | T1@1: meet b1; ld r=x",
        "T1.r=0",
        "openshmem",
        ALLOWED,
        "OpenSHMEM shmem_sync does not ensure completion",
    ),
    Row(
        "B04",
        "",
        "T0@0: meet b1; meet b2 | T1@1: meet b2; meet b1",
        "finish",
        "sc",
        FORBIDDEN,
        "Dat3M, PC-bar-sync-sync-3; Weft, deadlock.cu",
    ),
    Row(
        "W2",
        "",
        "T0@0: sync b0 64; arrive b1 64 | T1@0: sync b1 64; arrive b0 64",
        "finish",
        "sc",
        FORBIDDEN,
        "Weft, deadlock.cu",
    ),
    Row(
        "W3",
        "",
        "T0@0: sync b0 96 | T1@0: sync b0 128",
        "finish",
        "sc",
        FORBIDDEN,
        "Weft, different.cu: inconsistent counts",
    ),
    Row(
        "W4",
        "",
        "T0@0: sync b0 64 | T1@0: arrive b0 64 | T2@0: sync b0 64",
        "hang",
        "sc",
        ALLOWED,
        "Weft, over.cu: the third arrival opens a generation that never fills",
    ),
)

# No published test asks these; the meaning of the keys (design of the fabric) answers them.
KEY_ROWS = (
    Row(
        "third-by-copy",
        "x@2 f@1 d@1/local",
        "T0@0: put x=1; quiet; put f=1 | T1@1: wait f=1; get d=[x]; quiet; ld r=d",
        "T1.r=0",
        "openshmem,quiet=target",
        ALLOWED,
        "G09 with a copy in place of the get",
    ),
    Row(
        "third-in-order",
        "x@1 y@2",
        "T0@0: put x=1; quiet; put y=1 | T3@3: get a=y; get b=x",
        "T3.a=1 & T3.b=0",
        "openshmem,quiet=target,ordering=per_pair",
        ALLOWED,
        "quiet=target says nothing to third parties, per_pair nothing about two targets",
    ),
    Row(
        "third-coherent",
        "x@1",
        "T0@0: put x=1; quiet; put x=2; quiet | T2@2: get a=x; get b=x",
        "T2.a=2 & T2.b=1",
        "openshmem,quiet=target",
        FORBIDDEN,
        "coherence: the values of one word have one order, for third parties too",
    ),
    Row(
        "local-atomics",
        "x@0",
        "T0@0: fadd a=x+1 | T1@0: fadd b=x+1",
        "x=1",
        "rdma-rc,quiet=target",
        FORBIDDEN,
        "local atomics exclude each other under nic_only",
    ),
    Row(
        "local-atomics-end",
        "x@0",
        "T0@0: fadd a=x+1 | T1@0: fadd b=x+1",
        "hang",
        "rdma-rc,quiet=target",
        FORBIDDEN,
        "local atomics exclude each other under nic_only",
    ),
    Row(
        "copied-in-any-order",
        "x:8+y:8@1 s:8+t:8@0/local",
        "T0@0: put x,y=[s,t]; put s=1,t=1",
        "x=1 & y=0",
        "rdma-rc",
        ALLOWED,
        "in_block_order=any says so of reading a block too",
    ),
    Row(
        "copied-in-order",
        "x:8+y:8@1 s:8+t:8@0/local",
        "T0@0: put x,y=[s,t]; put s=1,t=1",
        "x=1 & y=0",
        "rdma-rc,in_block_order=ascending",
        FORBIDDEN,
        "in_block_order=ascending says so of reading a block too",
    ),
    Row(
        "fence-one-target",
        "x@1 f@2 c@0",
        "T0@0: put x=1; wait c=1; fence 1; put f=1; quiet | T1@1: put c=1"
        " | T2@2: wait f=1; get r=x | T3@1: wait x=1",
        "T2.r=0",
        "nvlink",
        ALLOWED,
        "a fence for one target does not order puts to two",
    ),
    Row(
        "prior-other-queue",
        "x@1 y@2 f@1",
        "T0@0: put x=1 q1; put y=1 sig f=1 q2 | T1@1: wait f=1; ld r=x",
        "T1.r=0",
        "openshmem,ordering=per_pair,signal=prior",
        FORBIDDEN,
        "a strong signal takes nothing from the order of a pair",
    ),
)

# How many states the collection's own explorer has, where its steps are ours.
STATES = {
    "IB02": 12, "IB04": 8, "IB06": 10, "IB08": 5, "IB10": 12, "IB14": 9, "IB16": 12, "IB18": 8,
    "G02": 10, "G04": 20, "G06": 10, "G08": 8, "G10": 20, "G12": 17, "G14": 12, "G16": 14,
    "A02": 10, "A04": 9, "A06": 5, "A08": 10, "A12": 8, "U08": 8,
    "C02": 34, "C04": 32, "C08": 28, "C10": 15, "C12": 8,
}  # fmt: skip

# Which programs the draft (S) and the specification (AMO) call undefined, for a race. S22 is left
# out: its atomic fetches are gets here, so that load_order applies.
RACY = {
    "S02": True, "S04": False, "S06": False, "S08": False, "S10": False, "S12": True, "S14": False,
    "S16": True, "S18": True, "S20": False, "S24": False, "S26": True, "S30": False,
    "AMO3": True, "AMO4": True,
}  # fmt: skip

ROWS = R_ROWS + IB_ROWS + S_ROWS + G_ROWS + A_ROWS + U_ROWS + C_ROWS + B_ROWS + KEY_ROWS

MISSING = (
    Missing(
        "IB12",
        "T0@0: put x=1; poll; put f=1 q9 | T1@1: wait f=1; ld r=x, T1.r=0",
        FORBIDDEN,
        "a receive buffer: accepted puts that reach memory in the order of arrival",
    ),
    Missing(
        "S28",
        "T0@0: put x=1; fence; put f=1; wait c=1; put x=2"
        " | T1@1: wait f=1; ld r=x; put c=1, T1.r=2",
        ALLOWED,
        "load_order: a load that is served after a later put is issued",
    ),
    Missing(
        "AMO2",
        "T0@0: or64 x | T1@1: or32 of the low half of x",
        ALLOWED,
        "atomics of different widths on one word",
    ),
    Missing(
        "U04",
        "T0@0: put x=1 (no order); put f=1 (strong) | T1@1: wait f=1; ld r=x, T1.r=0",
        ALLOWED,
        "place order of a single put: one that a fence does not cover",
    ),
    Missing(
        "W1",
        "T0@0: arrive b1 64 | T1@0: arrive b1 64, flagged",
        FORBIDDEN,
        "a rule about named barriers: one that completes has a sync among its arrivals",
    ),
)
