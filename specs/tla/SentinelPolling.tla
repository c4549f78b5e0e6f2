--------------------------- MODULE SentinelPolling ---------------------------
(***************************************************************************)
(* Sentinel Polling (UBEP, section 3.4): the receiver fills its window     *)
(* with a sentinel and waits until it is overwritten (protocols/sp.py).    *)
(***************************************************************************)
EXTENDS DataAsFlag

CONSTANTS
    \* Bytes that are compared: "lead", "block", or a part of each "atom".
    \* @type: Str;
    Compare,
    \* A kernel ends when its puts have landed.
    \* @type: Bool;
    Quiet,
    \* Assumption: no token's compared bytes equal the sentinel.
    \* @type: Bool;
    ReservedSentinel

VARIABLES
    \* The tokens of this run whose compared bytes equal the sentinel.
    \* @type: Set($value);
    alike

\* @type: $slot;
vars == <<common, alike>>

Sentinel == Mark

Leads == IF Compare = "atom" THEN {"lead0", "lead1", "lead2", "lead3"} ELSE {"lead"}
Rests == IF Compare = "atom" THEN {"rest0", "rest1", "rest2", "rest3"} ELSE {"rest"}
Fields == Leads \cup Rests
Compared == IF Compare = "block" THEN Fields ELSE Leads

(* The block of a token as the sender holds it. *)
Content(s, d, t, k) ==
    [f \in Fields |-> IF f \in Compared /\ Token(s, d, t, k) \in alike
                      THEN Sentinel ELSE Token(s, d, t, k)]

(* Whether a block is held to be overwritten. *)
\* @type: $block => Bool;
HasArrived(block) ==
    IF Compare = "atom"
    THEN \A f \in Compared : block[f] # Sentinel
    ELSE \E f \in Compared : block[f] # Sentinel

Plan == [send |-> "put", take |-> "wait", end |-> IF Quiet THEN End ELSE "sync"]

InitialBlock(slot) ==
    IF slot[1] = "status" THEN Filled(StatusFields, Number(Empty)) ELSE Filled(Fields, Sentinel)

TokensOf(table) == {Token(w[2], w[3], t, w[1]) : w \in Ways, t \in 0 .. Tokens - 1}
SentIn(table) == {x \in TokensOf(table) : x[3] < table[<<x[4], x[1], x[2]>>]}

Init ==
    /\ CommonInit(Plan)
    /\ memory = [slot \in StatusSlots \cup WindowSlots |-> InitialBlock(slot)]
    /\ alike \in IF ReservedSentinel THEN {{}} ELSE SUBSET SentIn(routing)

(* "sender put window": store the raw payload into the peer's window. *)
PutToken(r) ==
    LET p == Sender(r)
        a == at[p]
        d == Destination(r, a.peer)
    IN /\ a.stage = "put"
       /\ Put(p, WindowSlot(d, r, a.token, a.round), Content(r, d, a.token, a.round))
       /\ Goes(p, NextTokenSent(r, a, Plan))
       /\ UNCHANGED <<told, consumed, routing, alike>>

(* "receiver wait_until window": the block that differs from the sentinel   *)
(* is the block that is taken.                                              *)
TakeToken(r) ==
    LET p == Receiver(r)
        a == at[p]
        s == Source(r, a.peer)
        found == memory[WindowSlot(r, s, a.token, a.round)]
    IN /\ a.stage = "wait"
       /\ Kept("receiver wait_until window") => HasArrived(found)
       /\ Consumes(r, a, found = Content(s, r, a.token, a.round))
       /\ Goes(p, IF Kept("receiver put window")
                  THEN At("cover", a.round, a.peer, a.token, 0)
                  ELSE NextTokenTaken(r, a, "wait", Plan))
       /\ UNCHANGED <<memory, flight, told, routing, alike>>

(* "receiver put window": back to the sentinel before the window is used    *)
(* again.                                                                   *)
CoverToken(r) ==
    LET p == Receiver(r)
        a == at[p]
    IN /\ a.stage = "cover"
       /\ Put(p, WindowSlot(r, Source(r, a.peer), a.token, a.round), Filled(Fields, Sentinel))
       /\ Goes(p, NextTokenTaken(r, a, "wait", Plan))
       /\ UNCHANGED <<told, consumed, routing, alike>>

SenderStep(r) == PutToken(r) \/ (SharedSenderStep(r, Plan) /\ UNCHANGED alike)
ReceiverStep(r) ==
    TakeToken(r) \/ CoverToken(r) \/ (SharedReceiverStep(r, Plan) /\ UNCHANGED alike)
RankStep(r) == EndSync(r, Plan) /\ UNCHANGED alike
Landing(p, i) == Land(p, i) /\ UNCHANGED <<at, told, consumed, routing, alike>>
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

Quiescent == QuiescentWith(StatusSlots \cup WindowSlots, InitialBlock)

(* The loads that processes are about to make and that wait for nothing.    *)
Loads ==
    {<<WindowSlot(r, Source(r, at[Receiver(r)].peer), at[Receiver(r)].token,
                  at[Receiver(r)].round), f>> :
       r \in {x \in Rank : /\ ~ Kept("receiver wait_until window")
                           /\ at[Receiver(x)].stage = "wait"}, f \in Fields}
    \cup CountLoads

Polled ==
    (IF Kept("receiver wait_until window") THEN {<<"window", f>> : f \in Fields} ELSE {})
    \cup PolledCounts

RaceFree == ~ ReadRace(Loads) /\ ~ WriteRace(Polled)
=============================================================================
