-------------------------------- MODULE Ubep --------------------------------
(***************************************************************************)
(* UBEP (sections 3.2 and 3.4): the dispatch and the combine of each MoE   *)
(* layer, without SyncAll (protocols/ubep.py).  Layer l is two calls,      *)
(* dispatch 2l and combine 2l+1, which use the windows in turn; each ends  *)
(* with its kernel.  Tokens say by Sentinel Polling that they are there.   *)
(***************************************************************************)
EXTENDS PrefixSum

CONSTANTS
    \* Windows used in turn by the calls.
    \* @type: Int;
    Windows,
    \* How a token says that it is there; only "sp" is stated here.
    \* @type: Str;
    Data

ASSUME Data = "sp"

Counting == "counting."
CountHalves == 2
Sentinel == Mark
Dispatch(l) == 2 * l
Combine(l) == 2 * l + 1

\* @type: (Int, Int, Int, Int) => $slot;
Window(owner, source, t, call) == <<"scheme.window", owner, <<source, t, call % Windows>>>>
WindowSlots ==
    {Window(r, s, t, h) : r \in Rank, s \in Rank, t \in 0 .. Tokens - 1, h \in 0 .. Windows - 1}
TokenFields == {"lead", "rest"}

InitialBlock(slot) ==
    CASE slot[1] = "scheme.window" -> Filled(TokenFields, Sentinel)
      [] slot[1] = "output.tokens" -> Filled(TokenFields, Number(0))
      [] OTHER -> Filled(CountFields(Counting, slot), Number(0))

(* "token_core put scheme.window": store raw tokens in the peer's window. *)
Send(r, d, number, call) ==
    Joined(number, LAMBDA n :
        Puts(Window(d, r, n - 1, call), Filled(TokenFields, Token(r, d, n - 1, call))))

(* "count_core put counting.status in send_counts",                         *)
(* "count_core wait_until counting.status",                                 *)
(* "count_core put counting.status in take_count",                          *)
(* "count_core put_with_signal counting.offset": the exchange of counts and *)
(* the prefix sum.                                                          *)
SumUp(r, l, read) ==
    SendCounts(Counting, r, l, l % CountHalves,
               Kept("count_core put counting.status in send_counts"))
    \o TakeCounts(Counting, r, l, l % CountHalves, read,
                  Kept("count_core wait_until counting.status"),
                  Kept("count_core put counting.status in take_count"))
    \o HandOn(Counting, r, read, Kept("count_core put_with_signal counting.offset"))

(* "token_core wait_until counting.signal",                                 *)
(* "count_core wait_until counting.signal",                                 *)
(* "token_core put counting.signal", "count_core put counting.signal",      *)
(* "token_core load counting.offset", "count_core load counting.offset":    *)
(* the offset of a source.                                                  *)
OffsetOf(r, c, s) ==
    WaitOffset(Counting, r, c, s, TRUE,
               /\ Kept("token_core wait_until counting.signal")
               /\ Kept("count_core wait_until counting.signal"),
               Kept("token_core put counting.signal") /\ Kept("count_core put counting.signal"))

(* "count_core wait_until scheme.window": a block that differs from the     *)
(* sentinel is there.                                                       *)
Take(r, s, t, call) ==
    Waits("differ", Window(r, s, t, call), TokenFields, "lead", Sentinel,
          Kept("count_core wait_until scheme.window"))

(* "count_core put scheme.window": back to the sentinel. *)
Cover(r, s, t, call) ==
    When(Kept("count_core put scheme.window"),
         Puts(Window(r, s, t, call), Filled(TokenFields, Sentinel)))

\* @type: $read => $block;
LastToken(read) ==
    IF read = <<>> \/ "lead" \notin DOMAIN read[Len(read)] THEN Filled(TokenFields, Mark)
    ELSE read[Len(read)]

(* "count_core put output.tokens": each token to its offset. *)
Reorder(r, c, l, read) ==
    Joined(Ranks - 1, LAMBDA i :
        LET s == Source(r, i)
            first == OffsetRead(read, i, "offset")
        IN OffsetOf(r, c, s)
           \o Checked(first = TokensBefore(r, s, l))
           \o Joined(OffsetRead(read, i, "count"), LAMBDA n :
                When((first + n - 1) % Cores = Cores - 1 - c,
                     Take(r, s, n - 1, Dispatch(l))
                     \o When(Kept("count_core put output.tokens"),
                             Puts(Output(r, first + n - 1, l), LastToken(read)))
                     \o Cover(r, s, n - 1, Dispatch(l)))))

(* "token_core quiet kernel_end in reorder",                                *)
(* "count_core quiet kernel_end in reorder", "token_core sync in reorder",  *)
(* "count_core sync in reorder": the dispatch ends.                         *)
EndOfDispatch ==
    When(/\ Kept("token_core quiet kernel_end in reorder")
         /\ Kept("count_core quiet kernel_end in reorder"), Quiets)
    \o When(Kept("token_core sync in reorder") /\ Kept("count_core sync in reorder"),
            Syncs("rank"))

(* "token_core load output.tokens": the experts take their tokens. *)
Experts(r, c, l, read) ==
    Joined(Ranks, LAMBDA n :
        LET s == n - 1
        IN IF s = r THEN <<>>
           ELSE Joined(routing[<<l, s, r>>], LAMBDA m :
                  LET place == TokensBefore(r, s, l) + m - 1
                      token == Token(s, r, m - 1, Dispatch(l))
                  IN When(place % Cores = c,
                          Loads(Output(r, place, l), TokenFields)
                          \o Consumed(token, LastToken(read) = Filled(TokenFields, token)))))

(* Each core sends the results of some sources back, and takes a share of   *)
(* those that are due to its own rank.                                      *)
CombineLayer(r, c, l, read) ==
    Joined(Ranks - 1, LAMBDA i :
        When((i - 1) % Cores = c,
             Send(r, Destination(r, i), routing[<<l, Destination(r, i), r>>], Combine(l))))
    \o Joined(Ranks - 1, LAMBDA i :
        LET e == Source(r, i)
        IN Joined(routing[<<l, r, e>>], LAMBDA n :
             LET token == Token(e, r, n - 1, Combine(l))
             IN When((n - 1) % Cores = Cores - 1 - c,
                     Take(r, e, n - 1, Combine(l))
                     \o Consumed(token, LastToken(read) = Filled(TokenFields, token))
                     \o Cover(r, e, n - 1, Combine(l)))))

(* "token_core quiet kernel_end in combine",                                *)
(* "count_core quiet kernel_end in combine", "token_core sync in combine",  *)
(* "count_core sync in combine": the combine ends.                          *)
EndOfCombine ==
    When(/\ Kept("token_core quiet kernel_end in combine")
         /\ Kept("count_core quiet kernel_end in combine"), Quiets)
    \o When(Kept("token_core sync in combine") /\ Kept("count_core sync in combine"),
            Syncs("rank"))

(* Token cores send while count cores sum up. *)
Sending(r, l) ==
    Joined(Ranks - 1, LAMBDA i : Send(r, Destination(r, i), Sent(r, l, i), Dispatch(l)))

\* @type: ($process, Int, $read) => Seq($instruction);
Program(p, l, read) ==
    LET r == p[2]
        c == CoreNumber(p)
    IN (IF p[1] = "token_core" THEN Sending(r, l) ELSE SumUp(r, l, read))
       \o Reorder(r, c, l, read)
       \o EndOfDispatch
       \o Experts(r, c, l, read)
       \o CombineLayer(r, c, l, read)
       \o EndOfCombine

Init ==
    /\ ProgramsInit(Process, Program)
    /\ memory = [slot \in CountSlots(Counting, CountHalves) \cup WindowSlots \cup OutputSlots |->
                    InitialBlock(slot)]

Next == ProgramsNext(Program)

Spec == Init /\ [][Next]_vars /\ Fairness

HasStepIsEnabled == HasStep <=> ENABLED <<Next>>_vars

Termination == <>AllDone

(* Each token is taken by its expert, and its result where it came from. *)
ExactlyOnce ==
    ExactlyOnceOf({Token(x[1], x[2], x[3], Dispatch(x[4])) : x \in TokensSent}
                  \cup {Token(x[2], x[1], x[3], Combine(x[4])) : x \in TokensSent})

Quiescent ==
    QuiescentWith({slot \in CountSlots(Counting, CountHalves) : slot[1] # "counting.offset"}
                  \cup WindowSlots, InitialBlock)

Polled ==
    (IF Kept("count_core wait_until counting.status")
     THEN {<<"counting.status", "flag">>, <<"counting.status", "count">>} ELSE {})
    \cup (IF Kept("token_core wait_until counting.signal")
          THEN {<<"counting.signal", "lead">>} ELSE {})
    \cup (IF Kept("count_core wait_until scheme.window")
          THEN {<<"scheme.window", f>> : f \in TokenFields} ELSE {})
RaceFree == ~ ReadRace(PlainLoads) /\ ~ WriteRace(Polled)
=============================================================================
