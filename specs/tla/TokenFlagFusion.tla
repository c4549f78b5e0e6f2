--------------------------- MODULE TokenFlagFusion ---------------------------
(***************************************************************************)
(* Token-Flag Fusion (UBEP, section 3.4): a flag travels in the block of   *)
(* the token itself (protocols/tff.py).                                    *)
(***************************************************************************)
EXTENDS DataAsFlag

CONSTANTS
    \* Value of a raised flag: "constant" or the "epoch".
    \* @type: Str;
    Flag,
    \* When a flag is reset: "before" or "after" the payload is read, "never".
    \* @type: Str;
    Reset,
    \* What has a flag each: the "block" or each "atom" of 128 B.
    \* @type: Str;
    Flags,
    \* Where the flag is, "head" or "tail": the same to a fabric that stores
    \* a block whole.
    \* @type: Str;
    FlagAt,
    \* What frees a window for the sender: its "turn", or the "reset".
    \* @type: Str;
    Reuse

vars == common

Parts == IF Flags = "atom" THEN 4 ELSE 1
\* @type: Int => Str;
FlagField(n) == IF Flags = "atom" THEN <<"flag0", "flag1", "flag2", "flag3">>[n + 1] ELSE "flag"
FlagFields == {FlagField(n) : n \in 0 .. Parts - 1}
PayloadFields ==
    IF Flags = "atom" THEN {"payload0", "payload1", "payload2", "payload3"} ELSE {"payload"}

(* The value of a flag whose token is there. *)
Raised(k) == Number(IF Flag = "epoch" THEN k + 1 ELSE Arrived)

\* @type: (Int, $value) => $block;
FlagAndPayload(k, token) ==
    [f \in FlagFields \cup PayloadFields |-> IF f \in FlagFields THEN Raised(k) ELSE token]

Plan ==
    [send |-> IF Reuse = "reset" THEN "credit" ELSE "put", take |-> "wait", end |-> End]

InitialBlock(slot) ==
    Filled(IF slot[1] = "status" THEN StatusFields ELSE FlagFields \cup PayloadFields,
           Number(Empty))

Init ==
    /\ CommonInit(Plan)
    /\ memory = [slot \in StatusSlots \cup WindowSlots |-> InitialBlock(slot)]

(* "sender wait_until window": has the receiver put the flag back? *)
WaitCredit(r) ==
    LET p == Sender(r)
        a == at[p]
        found == memory[WindowSlot(Destination(r, a.peer), r, a.token, a.round)]
    IN /\ a.stage = "credit"
       /\ Kept("sender wait_until window") => found[FlagField(a.part)] = Number(Empty)
       /\ Goes(p, IF a.part + 1 < Parts
                  THEN At("credit", a.round, a.peer, a.token, a.part + 1)
                  ELSE At("put", a.round, a.peer, a.token, 0))
       /\ UNCHANGED <<memory, flight, told, consumed, routing>>

(* "sender put window": token and flag are one put. *)
PutToken(r) ==
    LET p == Sender(r)
        a == at[p]
        d == Destination(r, a.peer)
    IN /\ a.stage = "put"
       /\ Put(p, WindowSlot(d, r, a.token, a.round),
              FlagAndPayload(a.round, Token(r, d, a.token, a.round)))
       /\ Goes(p, NextTokenSent(r, a, Plan))
       /\ UNCHANGED <<told, consumed, routing>>

Resets(when) == Reset = when /\ Kept("receiver put window")

(* "receiver wait_until window": check the flag. *)
WaitFlag(r) ==
    LET p == Receiver(r)
        a == at[p]
        found == memory[WindowSlot(r, Source(r, a.peer), a.token, a.round)]
    IN /\ a.stage = "wait"
       /\ Kept("receiver wait_until window") => found[FlagField(a.part)] = Raised(a.round)
       /\ Goes(p, IF a.part + 1 < Parts
                  THEN At("wait", a.round, a.peer, a.token, a.part + 1)
                  ELSE At(IF Resets("before") THEN "reset" ELSE "load",
                          a.round, a.peer, a.token, 0))
       /\ UNCHANGED <<memory, flight, told, consumed, routing>>

(* "receiver load window": a second load reads the payload. *)
LoadToken(r) ==
    LET p == Receiver(r)
        a == at[p]
        s == Source(r, a.peer)
        found == memory[WindowSlot(r, s, a.token, a.round)]
    IN /\ a.stage = "load"
       /\ Consumes(r, a, \A f \in PayloadFields : found[f] = Token(s, r, a.token, a.round))
       /\ Goes(p, IF Resets("after")
                  THEN At("reset", a.round, a.peer, a.token, 0)
                  ELSE NextTokenTaken(r, a, "wait", Plan))
       /\ UNCHANGED <<memory, flight, told, routing>>

(* "receiver put window": put the flag back, so that the block is not taken *)
(* again.                                                                   *)
PutBack(r) ==
    LET p == Receiver(r)
        a == at[p]
    IN /\ a.stage = "reset"
       /\ Put(p, WindowSlot(r, Source(r, a.peer), a.token, a.round),
              Filled(FlagFields, Number(Empty)))
       /\ Goes(p, IF Reset = "before"
                  THEN At("load", a.round, a.peer, a.token, 0)
                  ELSE NextTokenTaken(r, a, "wait", Plan))
       /\ UNCHANGED <<told, consumed, routing>>

SenderStep(r) == WaitCredit(r) \/ PutToken(r) \/ SharedSenderStep(r, Plan)
ReceiverStep(r) == WaitFlag(r) \/ LoadToken(r) \/ PutBack(r) \/ SharedReceiverStep(r, Plan)
RankStep(r) == EndSync(r, Plan)
Landing(p, i) == Land(p, i) /\ UNCHANGED <<at, told, consumed, routing>>
Terminated == Ended /\ UNCHANGED vars

Next ==
    \/ \E r \in Rank : SenderStep(r) \/ ReceiverStep(r) \/ RankStep(r)
    \/ \E p \in Process : \E i \in DOMAIN flight[p] : Landing(p, i)
    \/ Terminated

(* Every process that can go on does, and the fabric delivers every put.    *)
Fairness ==
    /\ \A r \in Rank : WF_vars(SenderStep(r)) /\ WF_vars(ReceiverStep(r)) /\ WF_vars(RankStep(r))
    /\ \A p \in Process : WF_vars(Landing(p, 1))

Spec == Init /\ [][Next]_vars /\ Fairness

Termination == <>AllDone

Quiescent == QuiescentWith(StatusSlots, InitialBlock)

(* The loads that processes are about to make and that wait for nothing.    *)
PlainLoads(p, owner, source, stages, fields) ==
    IF at[p].stage \in stages
    THEN {<<WindowSlot(owner, source, at[p].token, at[p].round), f>> : f \in fields}
    ELSE {}
Loads ==
    UNION {
      LET p == Receiver(r)
          s == Source(r, at[p].peer)
          q == Sender(r)
      IN PlainLoads(p, r, s, {"load"}, PayloadFields)
         \cup PlainLoads(p, r, s, IF Kept("receiver wait_until window") THEN {} ELSE {"wait"},
                         {FlagField(at[p].part)})
         \cup PlainLoads(q, Destination(r, at[q].peer), r,
                         IF Kept("sender wait_until window") THEN {} ELSE {"credit"},
                         {FlagField(at[q].part)}) : r \in Rank}
    \cup CountLoads

Polled ==
    (IF \/ Kept("receiver wait_until window")
        \/ Reuse = "reset" /\ Kept("sender wait_until window")
     THEN {<<"window", f>> : f \in FlagFields} ELSE {})
    \cup PolledCounts

RaceFree == ~ ReadRace(Loads) /\ ~ WriteRace(Polled)
=============================================================================
