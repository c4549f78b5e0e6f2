--------------------------- MODULE DataForChecksum ---------------------------
(***************************************************************************)
(* Data for Checksum (UBEP, section 3.4): a checksum over the leads of a   *)
(* batch of blocks says that they are there (protocols/dc.py).             *)
(***************************************************************************)
EXTENDS DataAsFlag

\* @typeAlias: sum = { leads: Seq(Int), total: Int };
DataForChecksumAliases == TRUE

CONSTANTS
    \* How leads are summed up: "ideal", without collisions, or "additive".
    \* @type: Str;
    Checksum,
    \* The checksum covers the number of the round.
    \* @type: Bool;
    RoundInChecksum,
    \* The receiver compares the checksum with the leads.
    \* @type: Bool;
    Compare,
    \* What checksum cells hold at first: "invalid", or "zeroed".
    \* @type: Str;
    Initial,
    \* Assumption: no block has the lead that its slot held before.
    \* @type: Bool;
    DistinctLeads

VARIABLES
    \* The tokens of this run whose lead is that of their slot's last token.
    \* @type: Set($value);
    repeated,
    \* The leads that each process has put, or read, of the present batch.
    \* @type: $process -> $sum;
    batch,
    \* The checksum that each receiver has read in its sweep.
    \* @type: Int -> $value;
    checksum

\* @type: $slot;
own == <<repeated, batch, checksum>>
\* @type: $slot;
vars == <<common, own>>

NoChecksum == Mark
NothingYet == [leads |-> <<>>, total |-> 0]

\* @type: (Int, Int, Int) => $slot;
TotalSlot(owner, source, k) == <<"total", owner, <<source, k % Windows>>>>
TotalSlots == {TotalSlot(r, s, k) : r \in Rank, s \in Rank, k \in Turns}

AtFirst == IF Initial = "zeroed" THEN Number(0) ELSE NoChecksum

(* A number for each token: distinct in each slot, and such that in every   *)
(* full batch of two or more the numbers have the same sum.                 *)
FreshLead(t, k) ==
    LET last == Tokens - 1
    IN IF t < last \/ last = 0
       THEN 1 + t * Rounds + k
       ELSE 1 + last * (Rounds * (last + 1) - k)

(* The lead of a token: its own, or that of the last token of its slot that *)
(* has one of its own, or the zeros that the slot held at first.            *)
Lead(s, d, t, k) ==
    LET origins == {j \in 0 .. k : /\ (k - j) % Windows = 0
                                   /\ Token(s, d, t, j) \notin repeated}
    IN IF origins = {} THEN 0
       ELSE FreshLead(t, CHOOSE j \in origins : \A other \in origins : other <= j)

(* The round, and the sum or the leads; a tuple begins with its length.     *)
\* @type: ($sum, Int) => $value;
ChecksumOf(sum, k) ==
    IF Checksum = "ideal"
    THEN IF RoundInChecksum
         THEN <<2, k, Len(sum.leads)>> \o sum.leads
         ELSE <<Len(sum.leads)>> \o sum.leads
    ELSE IF RoundInChecksum THEN <<2, k, sum.total>> ELSE <<sum.total>>

(* Whether the receiver takes the batch for complete. *)
\* @type: ($value, $sum, Int) => Bool;
Verifies(read, sum, k) ==
    CASE Compare -> read = ChecksumOf(sum, k)
      [] ~ Compare /\ RoundInChecksum -> Len(read) > 1 /\ read[2] = k
      [] ~ Compare /\ ~ RoundInChecksum -> read # AtFirst

\* @type: ($sum, Int) => $sum;
With(sum, lead) == [leads |-> Append(sum.leads, lead), total |-> sum.total + lead]

Plan == [send |-> "put", take |-> "total", end |-> End]

Fields == {"lead", "rest"}
\* @type: (Int, Int, Int, Int) => $block;
Content(s, d, t, k) ==
    [f \in Fields |-> IF f = "lead" THEN Number(Lead(s, d, t, k)) ELSE Token(s, d, t, k)]

InitialBlock(slot) ==
    CASE slot[1] = "status" -> Filled(StatusFields, Number(Empty))
      [] slot[1] = "window" -> Filled(Fields, Number(0))
      [] slot[1] = "total" -> Filled({"checksum"}, AtFirst)

Init ==
    /\ CommonInit(Plan)
    /\ memory = [slot \in StatusSlots \cup WindowSlots \cup TotalSlots |-> InitialBlock(slot)]
    /\ repeated \in IF DistinctLeads THEN {{}}
                    ELSE SUBSET {Token(w[2], w[3], t, w[1]) : w \in Ways, t \in 0 .. Tokens - 1}
    /\ batch = [p \in Process |-> NothingYet]
    /\ checksum = [r \in Rank |-> NoChecksum]

(* "sender put window": store the raw token. *)
PutToken(r) ==
    LET p == Sender(r)
        a == at[p]
        d == Destination(r, a.peer)
        isLast == a.token + 1 = Sent(r, a.round, a.peer)
        sum == With(batch[p], Lead(r, d, a.token, a.round))
        goesToChecksum == isLast /\ Kept("sender put total")
    IN /\ a.stage = "put"
       /\ Put(p, WindowSlot(d, r, a.token, a.round), Content(r, d, a.token, a.round))
       /\ Goes(p, IF goesToChecksum
                  THEN At("checksum", a.round, a.peer, 0, 0)
                  ELSE NextTokenSent(r, a, Plan))
       /\ batch' = [batch EXCEPT ![p] = IF isLast /\ ~ goesToChecksum THEN NothingYet ELSE sum]
       /\ UNCHANGED <<told, consumed, routing, repeated, checksum>>

(* "sender put total": the checksum of the batch is a packet of its own. *)
PutChecksum(r) ==
    LET p == Sender(r)
        a == at[p]
    IN /\ a.stage = "checksum"
       /\ Put(p, TotalSlot(Destination(r, a.peer), r, a.round),
              Filled({"checksum"}, ChecksumOf(batch[p], a.round)))
       /\ Goes(p, NextDestination(r, a.round, a.peer, Plan))
       /\ batch' = [batch EXCEPT ![p] = NothingYet]
       /\ UNCHANGED <<told, consumed, routing, repeated, checksum>>

(* A sweep ends: the batch is taken, or the receiver begins again. *)
Judges(r, a, read, sum) ==
    /\ Goes(Receiver(r), At(IF Verifies(read, sum, a.round) THEN "take" ELSE "total",
                            a.round, a.peer, 0, 0))
    /\ batch' = [batch EXCEPT ![Receiver(r)] = NothingYet]
    /\ checksum' = [checksum EXCEPT ![r] = NoChecksum]

(* "receiver load total": read the checksum. *)
LoadChecksum(r) ==
    LET p == Receiver(r)
        a == at[p]
        read == memory[TotalSlot(r, Source(r, a.peer), a.round)]["checksum"]
    IN /\ a.stage = "total"
       /\ IF Compare
          THEN /\ Goes(p, At("lead", a.round, a.peer, 0, 0))
               /\ checksum' = [checksum EXCEPT ![r] = read]
               /\ UNCHANGED batch
          ELSE Judges(r, a, read, NothingYet)
       /\ UNCHANGED <<memory, flight, told, consumed, routing, repeated>>

(* "receiver load window": read a lead; the last one ends the sweep. *)
LoadLead(r) ==
    LET p == Receiver(r)
        a == at[p]
        s == Source(r, a.peer)
        lead == memory[WindowSlot(r, s, a.token, a.round)]["lead"][1]
        sum == With(batch[p], lead)
    IN /\ a.stage = "lead"
       /\ IF a.token + 1 < Told(r, a.round, told[r], a.peer)
          THEN /\ Goes(p, At("lead", a.round, a.peer, a.token + 1, 0))
               /\ batch' = [batch EXCEPT ![p] = sum]
               /\ UNCHANGED checksum
          ELSE Judges(r, a, checksum[r], sum)
       /\ UNCHANGED <<memory, flight, told, consumed, routing, repeated>>

(* "receiver load window": read the token. *)
LoadToken(r) ==
    LET p == Receiver(r)
        a == at[p]
        s == Source(r, a.peer)
        block == memory[WindowSlot(r, s, a.token, a.round)]
    IN /\ a.stage = "take"
       /\ Consumes(r, a, block = Content(s, r, a.token, a.round))
       /\ Goes(p, NextTokenTaken(r, a, "take", Plan))
       /\ UNCHANGED <<memory, flight, told, routing, own>>

SenderStep(r) ==
    PutToken(r) \/ PutChecksum(r) \/ (SharedSenderStep(r, Plan) /\ UNCHANGED own)
ReceiverStep(r) ==
    LoadChecksum(r) \/ LoadLead(r) \/ LoadToken(r)
      \/ (SharedReceiverStep(r, Plan) /\ UNCHANGED own)
RankStep(r) == EndSync(r, Plan) /\ UNCHANGED own
Landing(p, i) == Land(p, i) /\ UNCHANGED <<at, told, consumed, routing, own>>
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

(* The loads that processes are about to make outside a sweep. *)
Loads ==
    {<<WindowSlot(r, Source(r, at[Receiver(r)].peer), at[Receiver(r)].token,
                  at[Receiver(r)].round), f>> :
       r \in {x \in Rank : at[Receiver(x)].stage = "take"}, f \in Fields}
    \cup CountLoads

Polled ==
    {<<"total", "checksum">>} \cup (IF Compare THEN {<<"window", "lead">>} ELSE {})
    \cup PolledCounts

RaceFree == ~ ReadRace(Loads) /\ ~ WriteRace(Polled)
=============================================================================
