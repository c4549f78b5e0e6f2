----------------------------- MODULE DataAsFlag -----------------------------
(***************************************************************************)
(* What sw, tff, dc and sp share: routing, the exchange of counts and the  *)
(* end of a kernel (UBEP, sections 3.2 and 3.4).  Each rank has a sender   *)
(* and a receiver, which go round by round.                                *)
(*                                                                         *)
(* The name in quotes above an action is the step of the Python role that  *)
(* it stands for: role, operation and region.  Omitted holds the names of  *)
(* steps that are left out, for mutants; a wait that is left out reads and *)
(* goes on whatever it finds.                                              *)
(***************************************************************************)
EXTENDS Routing

\* @typeAlias: position = { stage: Str, round: Int, peer: Int, token: Int, part: Int };
\* @typeAlias: plan = { send: Str, take: Str, end: Str };
DataAsFlagAliases == TRUE

CONSTANTS
    \* Receive windows used in turn.
    \* @type: Int;
    Windows,
    \* Every rank tells every rank how many tokens come, each round.
    \* @type: Bool;
    Counts,
    \* Assumption: every rank sends every other one a token in every round.
    \* @type: Bool;
    DenseTraffic,
    \* @type: Set(Str);
    Omitted

VARIABLES
    \* Where each process is: what it does next, in which round, for the
    \* peer-th other rank, for which token and part of it.
    \* @type: $process -> $position;
    at,
    \* What each receiver was told in this round, by its i-th source.
    \* @type: Int -> (Int -> Int);
    told,
    \* The tokens that each process has taken, and whether the block read was
    \* that token's.
    \* @type: $process -> Seq({ token: $value, right: Bool });
    consumed

\* @type: $slot;
common == <<memory, flight, at, told, consumed, routing>>

Empty == 0
Arrived == 1
Halves == 2

\* @type: Int => $process;
Sender(r) == <<"sender", r, 0>>
\* @type: Int => $process;
Receiver(r) == <<"receiver", r, 0>>
Process == {Sender(r) : r \in Rank} \cup {Receiver(r) : r \in Rank}

Kept(step) == step \notin Omitted

(***************************************************************************)
(* Memory.                                                                 *)
(***************************************************************************)
\* @type: (Int, Int, Int) => $slot;
Status(owner, source, k) == <<"status", owner, <<source, k % Halves>>>>
StatusFields == {"flag", "count", "unused"}
StatusSlots ==
    IF Counts THEN {Status(r, s, k) : r \in Rank, s \in Rank, k \in 0 .. Halves - 1} ELSE {}
StatusCells == {<<"status", "flag">>, <<"status", "count">>}

\* @type: (Int, Int) => $block;
FlagAndCount(flag, count) ==
    [f \in {"flag", "count"} |-> IF f = "flag" THEN Number(flag) ELSE Number(count)]

\* @type: (Int, Int, Int, Int) => $slot;
WindowSlot(owner, source, t, k) == <<"window", owner, <<source, t, k % Windows>>>>
Turns == 0 .. Windows - 1
WindowSlots == {WindowSlot(r, s, t, k) : r \in Rank, s \in Rank, t \in 0 .. Tokens - 1, k \in Turns}

(***************************************************************************)
(* Where a process goes on.  A plan names the stages that differ: the      *)
(* first of a token at the sender (send) and of a source at the receiver   *)
(* (take), and the end of the kernel.                                      *)
(***************************************************************************)
\* @type: (Str, Int, Int, Int, Int) => $position;
At(stage, k, i, t, part) ==
    [stage |-> stage, round |-> k, peer |-> i, token |-> t, part |-> part]

Done == At("done", Rounds, 0, 0, 0)

(* How many tokens the receiver takes from its i-th source. *)
Told(r, k, counts, i) == IF Counts THEN counts[i] ELSE Routed(r, k, i)

\* @type: (Int, $plan) => $position;
KernelEnd(k, plan) == At(plan.end, k, 0, 0, 0)

\* @type: (Int, Int, Int, $plan) => $position;
NextDestination(r, k, after, plan) ==
    LET more == {i \in Peers : i > after /\ Sent(r, k, i) > 0}
    IN IF more = {} THEN KernelEnd(k, plan) ELSE At(plan.send, k, Least(more), 0, 0)

\* @type: (Int, Int, Int -> Int, Int, $plan) => $position;
NextSource(r, k, counts, after, plan) ==
    LET more == {i \in Peers : i > after /\ Told(r, k, counts, i) > 0}
    IN IF more = {} THEN KernelEnd(k, plan) ELSE At(plan.take, k, Least(more), 0, 0)

\* @type: (Int, $position, $plan) => $position;
NextTokenSent(r, a, plan) ==
    IF a.token + 1 < Sent(r, a.round, a.peer)
    THEN At(plan.send, a.round, a.peer, a.token + 1, 0)
    ELSE NextDestination(r, a.round, a.peer, plan)

\* @type: (Int, $position, Str, $plan) => $position;
NextTokenTaken(r, a, stage, plan) ==
    IF a.token + 1 < Told(r, a.round, told[r], a.peer)
    THEN At(stage, a.round, a.peer, a.token + 1, 0)
    ELSE NextSource(r, a.round, told[r], a.peer, plan)

SenderBegins(r, k, plan) ==
    IF Counts /\ Kept("sender put status")
    THEN At("count", k, 1, 0, 0)
    ELSE NextDestination(r, k, 0, plan)

ReceiverBegins(r, k, plan) ==
    IF Counts THEN At("told", k, 1, 0, 0) ELSE NextSource(r, k, told[r], 0, plan)

\* @type: ($process, Int, $plan) => $position;
NextRound(p, k, plan) ==
    IF k + 1 = Rounds THEN Done
    ELSE IF p[1] = "sender" THEN SenderBegins(p[2], k + 1, plan)
    ELSE ReceiverBegins(p[2], k + 1, plan)

Untold == [i \in Peers |-> 0]

CommonInit(plan) ==
    /\ Ranks > 1
    /\ routing \in {table \in Routings : DenseTraffic /\ ~ Counts => IsDense(table)}
    /\ flight = [p \in Process |-> <<>>]
    /\ told = [r \in Rank |-> Untold]
    /\ consumed = [p \in Process |-> <<>>]
    /\ at = [p \in Process |->
                IF p[1] = "sender"
                THEN SenderBegins(p[2], 0, plan) ELSE ReceiverBegins(p[2], 0, plan)]

(* A kernel ends with a quiet and a sync, of both roles or of none. *)
HasQuiet == Kept("sender quiet kernel_end") /\ Kept("receiver quiet kernel_end")
HasSync == Kept("sender sync") /\ Kept("receiver sync")
End == IF HasQuiet THEN "quiet" ELSE "sync"

\* @type: ($process, $position) => Bool;
Goes(p, position) == at' = [at EXCEPT ![p] = position]

\* @type: (Int, $position, Bool) => Bool;
Consumes(r, a, right) ==
    LET token == Token(Source(r, a.peer), r, a.token, a.round)
    IN consumed' = [consumed EXCEPT ![Receiver(r)] =
                      Append(@, [token |-> token, right |-> right])]

(***************************************************************************)
(* Steps that all four have.                                               *)
(***************************************************************************)

(* "sender put status": tell the next rank how many tokens come. *)
SendCount(r, plan) ==
    LET p == Sender(r)
        a == at[p]
    IN /\ a.stage = "count"
       /\ Put(p, Status(Destination(r, a.peer), r, a.round),
              FlagAndCount(Arrived, Sent(r, a.round, a.peer)))
       /\ Goes(p, IF a.peer + 1 \in Peers
                  THEN At("count", a.round, a.peer + 1, 0, 0)
                  ELSE NextDestination(r, a.round, 0, plan))
       /\ UNCHANGED <<told, consumed, routing>>

(* "receiver wait_until status": wait for the flag, read the count with it. *)
WaitCount(r, plan) ==
    LET p == Receiver(r)
        a == at[p]
        found == memory[Status(r, Source(r, a.peer), a.round)]
        now == [told[r] EXCEPT ![a.peer] = found["count"][1]]
    IN /\ a.stage = "told"
       /\ Kept("receiver wait_until status") => found["flag"] = Number(Arrived)
       /\ told' = [told EXCEPT ![r] = now]
       /\ Goes(p, IF a.peer + 1 \in Peers THEN At("told", a.round, a.peer + 1, 0, 0)
                  ELSE IF Kept("receiver put status") THEN At("empty", a.round, 1, 0, 0)
                  ELSE NextSource(r, a.round, now, 0, plan))
       /\ UNCHANGED <<memory, flight, consumed, routing>>

(* "receiver put status": empty the flag, so that it can be raised again. *)
EmptyCount(r, plan) ==
    LET p == Receiver(r)
        a == at[p]
    IN /\ a.stage = "empty"
       /\ Put(p, Status(r, Source(r, a.peer), a.round), FlagAndCount(Empty, 0))
       /\ Goes(p, IF a.peer + 1 \in Peers
                  THEN At("empty", a.round, a.peer + 1, 0, 0)
                  ELSE NextSource(r, a.round, told[r], 0, plan))
       /\ UNCHANGED <<told, consumed, routing>>

(* "sender quiet kernel_end", "receiver quiet kernel_end": what the process *)
(* has put is complete.                                                     *)
EndQuiet(p, plan) ==
    LET a == at[p]
    IN /\ a.stage = "quiet"
       /\ Quieted(p)
       /\ Goes(p, IF HasSync THEN At("sync", a.round, 0, 0, 0)
                  ELSE NextRound(p, a.round, plan))
       /\ UNCHANGED <<memory, flight, told, consumed, routing>>

(* "sender sync", "receiver sync": both processes of the rank are here, and *)
(* the next kernel begins.                                                  *)
EndSync(r, plan) ==
    LET p == Sender(r)
        q == Receiver(r)
    IN /\ at[p].stage = "sync"
       /\ at[q].stage = "sync"
       /\ at' = [at EXCEPT ![p] = NextRound(p, @.round, plan),
                           ![q] = NextRound(q, @.round, plan)]
       /\ told' = [told EXCEPT ![r] = Untold]
       /\ UNCHANGED <<memory, flight, consumed, routing>>

SharedSenderStep(r, plan) == SendCount(r, plan) \/ EndQuiet(Sender(r), plan)
SharedReceiverStep(r, plan) ==
    WaitCount(r, plan) \/ EmptyCount(r, plan) \/ EndQuiet(Receiver(r), plan)

(***************************************************************************)
(* Properties.                                                             *)
(***************************************************************************)
AllDone == \A p \in Process : at[p].stage = "done"

(* A run ends when all processes have returned and every put has landed.   *)
Ended == AllDone /\ (\A p \in Process : flight[p] = <<>>)

(* Whatever is taken is the block that its source put for it. *)
HappensBefore ==
    \A p \in Process : \A i \in DOMAIN consumed[p] : consumed[p][i].right

(* At the end each token that was sent has been taken once, and no other.  *)
ExactlyOnce ==
    Ended =>
      \A k \in Round : \A s, d \in Rank : \A t \in 0 .. Tokens - 1 :
        LET taken == {i \in DOMAIN consumed[Receiver(d)] :
                        consumed[Receiver(d)][i].token = Token(s, d, t, k)}
            sent == IF s # d /\ t < routing[<<k, s, d>>] THEN 1 ELSE 0
        IN Cardinality(taken) = sent

(* None of the four roles states a condition of its own. *)
Checks == TRUE

(* Loads of counts that wait for nothing: only in a mutant. *)
CountLoads ==
    {<<Status(r, Source(r, at[Receiver(r)].peer), at[Receiver(r)].round), f>> :
       r \in {x \in Rank : /\ ~ Kept("receiver wait_until status")
                           /\ at[Receiver(x)].stage = "told"}, f \in {"flag", "count"}}

(* The fields of counts that somebody waits for. *)
PolledCounts == IF Kept("receiver wait_until status") THEN StatusCells ELSE {}

(* Nobody returns with puts in flight, and clean regions end as they began. *)
\* @type: Set($slot) => Bool;
QuiescentWith(clean, initial(_)) ==
    /\ \A p \in Process : at[p].stage = "done" => flight[p] = <<>>
    /\ Ended => \A slot \in clean : memory[slot] = initial(slot)
=============================================================================
