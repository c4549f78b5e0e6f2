------------------------------- MODULE Fabric -------------------------------
(***************************************************************************)
(* Memory and the puts in flight: what a kernel may rely on between a put  *)
(* and its effect (specs/fabrics/README.md).                               *)
(*                                                                         *)
(* A block is one atom here, store_atomicity >= 512: it is written and     *)
(* read whole.  A process issues a put at once; it lands later, at any     *)
(* time, unless an earlier put of the same process must land before it.    *)
(*                                                                         *)
(* A value is a sequence of integers, so that values of every kind can be  *)
(* compared: <<n>> is the number n, <<s, d, t, k>> the token t of round k  *)
(* from rank s to rank d, <<>> a mark that equals neither.                 *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

\* @typeAlias: value = Seq(Int);
\* @typeAlias: block = Str -> $value;
\* @typeAlias: slot = <<Str, Int, Seq(Int)>>;
\* @typeAlias: put = { slot: $slot, block: $block, behind: $slot, adds: Bool };
\* @typeAlias: process = <<Str, Int, Int>>;
FabricAliases == TRUE

CONSTANTS
    \* Ranks, each with its own memory.
    \* @type: Int;
    Ranks,
    \* "none", or "per_pair": puts of one process to one rank stay in order.
    \* @type: Str;
    Ordering,
    \* Puts of one process to one field that may be in flight; a run beyond
    \* it is not decided (Within).
    \* @type: Int;
    InFlight

VARIABLES
    \* What each block holds, field by field.
    \* @type: $slot -> $block;
    memory,
    \* The puts that each process has issued and that have not landed, in the
    \* order of issue.  A slot <<region, rank, place>> names a block.  A signal
    \* lands behind the puts to the slot that it tells of (behind, elsewhere
    \* the put's own slot); an atomic add (adds) is in flight like a put.
    \* @type: $process -> Seq($put);
    flight

\* @type: $slot;
fabric == <<memory, flight>>

Rank == 0 .. Ranks - 1
Peers == 1 .. Ranks - 1

(* The order in which a rank turns to the others. *)
\* @type: (Int, Int) => Int;
Destination(r, i) == (r + i) % Ranks
\* @type: (Int, Int) => Int;
Source(r, i) == (r - i + Ranks) % Ranks

\* @type: Int => $value;
Number(n) == <<n>>
\* @type: (Int, Int, Int, Int) => $value;
Token(s, d, t, k) == <<s, d, t, k>>
\* @type: $value;
Mark == <<>>

\* @type: (Set(Str), $value) => $block;
Filled(fields, value) == [f \in fields |-> value]

(* The least of a set of peers, and 0 if it is empty. *)
\* @type: Set(Int) => Int;
Least(S) == IF S = {} THEN 0 ELSE CHOOSE x \in S : \A y \in S : x <= y

(***************************************************************************)
(* Steps of a process.                                                     *)
(***************************************************************************)

\* @type: ($slot, $block) => $put;
Plain(slot, block) == [slot |-> slot, block |-> block, behind |-> slot, adds |-> FALSE]

\* @type: ($process, Seq($put)) => Bool;
Issue(p, puts) == flight' = [flight EXCEPT ![p] = @ \o puts] /\ UNCHANGED memory

(* put: the value is captured now and lands later. *)
\* @type: ($process, $slot, $block) => Bool;
Put(p, slot, block) == Issue(p, <<Plain(slot, block)>>)

(* quiet passes once all that the process has put is visible. *)
\* @type: $process => Bool;
Quieted(p) == flight[p] = <<>>

(***************************************************************************)
(* Steps of the fabric.                                                    *)
(***************************************************************************)

(* Puts to one atom stay in order, signals behind what they tell of, and   *)
(* with Ordering puts to one rank.                                         *)
\* @type: ($put, $put) => Bool;
MustPrecede(early, late) ==
    \/ early.slot = late.slot /\ DOMAIN early.block \cap DOMAIN late.block # {}
    \/ late.behind # late.slot /\ early.slot = late.behind
    \/ Ordering # "none" /\ early.slot[2] = late.slot[2]

\* @type: ($process, Int) => Bool;
CanLand(p, i) ==
    \A j \in 1 .. i - 1 : ~ MustPrecede(flight[p][j], flight[p][i])

(* A block after what a put or an add brings. *)
\* @type: ($block, $put) => $block;
After(old, put) ==
    [f \in DOMAIN old |->
        IF f \notin DOMAIN put.block THEN old[f]
        ELSE IF put.adds THEN Number(old[f][1] + put.block[f][1])
        ELSE put.block[f]]

(* The fabric delivers the i-th of the puts of p that are in flight. *)
\* @type: ($process, Int) => Bool;
Land(p, i) ==
    /\ i \in DOMAIN flight[p]
    /\ CanLand(p, i)
    /\ LET put == flight[p][i]
       IN memory' = [memory EXCEPT ![put.slot] = After(@, put)]
    /\ flight' = [flight EXCEPT ![p] =
                    SubSeq(@, 1, i - 1) \o SubSeq(@, i + 1, Len(@))]

(***************************************************************************)
(* What is asked of every protocol.                                        *)
(***************************************************************************)

(* No run that meets the in-flight bound is left out unseen. *)
Within ==
    \A p \in DOMAIN flight : \A i \in DOMAIN flight[p] :
        LET alike == {j \in 1 .. i :
                        /\ flight[p][j].slot = flight[p][i].slot
                        /\ DOMAIN flight[p][j].block \cap DOMAIN flight[p][i].block # {}}
        IN Cardinality(alike) <= InFlight

(* A put may land on what is being read by a load that waits for nothing.  *)
(* loads: the <<slot, field>> that processes read plainly in this state.   *)
\* @type: Set(<<$slot, Str>>) => Bool;
ReadRace(loads) ==
    \E p \in DOMAIN flight : \E i \in DOMAIN flight[p] :
        /\ \E l \in loads : l[1] = flight[p][i].slot /\ l[2] \in DOMAIN flight[p][i].block
        /\ CanLand(p, i)

(* Two processes' puts may land on one field in either order; polled: the  *)
(* <<region, field>> that somebody waits for, which are exempt.            *)
\* @type: Set(<<Str, Str>>) => Bool;
WriteRace(polled) ==
    \E p, q \in DOMAIN flight : \E i \in DOMAIN flight[p], j \in DOMAIN flight[q] :
        /\ p # q
        /\ flight[p][i].slot = flight[q][j].slot
        /\ \E f \in DOMAIN flight[p][i].block \cap DOMAIN flight[q][j].block :
             <<flight[p][i].slot[1], f>> \notin polled
        /\ CanLand(p, i)
        /\ CanLand(q, j)
=============================================================================
