----------------------------- MODULE StopAndWait -----------------------------
(***************************************************************************)
(* Stop and wait (UBEP, sections 2.3 and 3.4): each token is followed by a *)
(* flag, with a quiet between the two (protocols/sw.py).                   *)
(***************************************************************************)
EXTENDS DataAsFlag

CONSTANTS
    \* The sender waits until a token is complete before its flag is put.
    \* @type: Bool;
    Quiet

vars == common

\* @type: (Int, Int, Int, Int) => $slot;
FlagSlot(owner, source, t, k) == <<"flag", owner, <<source, t, k % Windows>>>>
FlagSlots == {FlagSlot(r, s, t, k) : r \in Rank, s \in Rank, t \in 0 .. Tokens - 1, k \in Turns}

(* The number that says that a token of round k is there. *)
Epoch(k) == k + 1

Plan == [send |-> "put", take |-> "wait", end |-> End]

FieldsOf(slot) ==
    CASE slot[1] = "status" -> StatusFields
      [] slot[1] = "window" -> {"payload"}
      [] slot[1] = "flag" -> {"flag"}
InitialBlock(slot) == Filled(FieldsOf(slot), Number(Empty))

Init ==
    /\ CommonInit(Plan)
    /\ memory = [slot \in StatusSlots \cup WindowSlots \cup FlagSlots |-> InitialBlock(slot)]

(* Where the sender goes on from a token's stage. *)
AfterStop(r, a) ==
    IF Kept("sender put flag")
    THEN At("flag", a.round, a.peer, a.token, 0)
    ELSE NextTokenSent(r, a, Plan)
AfterPut(r, a) ==
    IF Quiet /\ Kept("sender quiet")
    THEN At("stop", a.round, a.peer, a.token, 0)
    ELSE AfterStop(r, a)

(* "sender put window": store the payload into the peer's window. *)
PutToken(r) ==
    LET p == Sender(r)
        a == at[p]
        d == Destination(r, a.peer)
    IN /\ a.stage = "put"
       /\ Put(p, WindowSlot(d, r, a.token, a.round),
              Filled({"payload"}, Token(r, d, a.token, a.round)))
       /\ Goes(p, AfterPut(r, a))
       /\ UNCHANGED <<told, consumed, routing>>

(* "sender quiet": stop until the token is complete. *)
Stop(r) ==
    LET p == Sender(r)
        a == at[p]
    IN /\ a.stage = "stop"
       /\ Quieted(p)
       /\ Goes(p, AfterStop(r, a))
       /\ UNCHANGED <<memory, flight, told, consumed, routing>>

(* "sender put flag": say that the token is there. *)
PutFlag(r) ==
    LET p == Sender(r)
        a == at[p]
    IN /\ a.stage = "flag"
       /\ Put(p, FlagSlot(Destination(r, a.peer), r, a.token, a.round),
              Filled({"flag"}, Number(Epoch(a.round))))
       /\ Goes(p, NextTokenSent(r, a, Plan))
       /\ UNCHANGED <<told, consumed, routing>>

(* "receiver wait_until flag": wait for this round's number. *)
WaitFlag(r) ==
    LET p == Receiver(r)
        a == at[p]
        found == memory[FlagSlot(r, Source(r, a.peer), a.token, a.round)]
    IN /\ a.stage = "wait"
       /\ Kept("receiver wait_until flag") => found["flag"] = Number(Epoch(a.round))
       /\ Goes(p, At("load", a.round, a.peer, a.token, 0))
       /\ UNCHANGED <<memory, flight, told, consumed, routing>>

(* "receiver load window": read the token out of the window. *)
LoadToken(r) ==
    LET p == Receiver(r)
        a == at[p]
        s == Source(r, a.peer)
        found == memory[WindowSlot(r, s, a.token, a.round)]
    IN /\ a.stage = "load"
       /\ Consumes(r, a, found = Filled({"payload"}, Token(s, r, a.token, a.round)))
       /\ Goes(p, NextTokenTaken(r, a, "wait", Plan))
       /\ UNCHANGED <<memory, flight, told, routing>>

SenderStep(r) == PutToken(r) \/ Stop(r) \/ PutFlag(r) \/ SharedSenderStep(r, Plan)
ReceiverStep(r) == WaitFlag(r) \/ LoadToken(r) \/ SharedReceiverStep(r, Plan)
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
Loads ==
    {<<WindowSlot(r, Source(r, at[Receiver(r)].peer), at[Receiver(r)].token,
                  at[Receiver(r)].round), "payload">> :
       r \in {x \in Rank : at[Receiver(x)].stage = "load"}}
    \cup {<<FlagSlot(r, Source(r, at[Receiver(r)].peer), at[Receiver(r)].token,
                     at[Receiver(r)].round), "flag">> :
            r \in {x \in Rank : /\ ~ Kept("receiver wait_until flag")
                                /\ at[Receiver(x)].stage = "wait"}}
    \cup CountLoads

Polled ==
    (IF Kept("receiver wait_until flag") THEN {<<"flag", "flag">>} ELSE {}) \cup PolledCounts

RaceFree == ~ ReadRace(Loads) /\ ~ WriteRace(Polled)
=============================================================================
