------------------------- MODULE KernelDecomposition -------------------------
(***************************************************************************)
(* Kernel decomposition (UBEP, section 3.2): no SyncAll; one core sends    *)
(* tokens while another exchanges counts and sums them up, then both take  *)
(* tokens to their offsets (protocols/cumsum.py).  A token carries the     *)
(* number of its round in its block.                                       *)
(***************************************************************************)
EXTENDS PrefixSum

CONSTANTS
    \* Halves of the window and of the status area, used in turn.
    \* @type: Int;
    Windows,
    \* Flag and count are one put; only that is stated here.
    \* @type: Bool;
    OnePut,
    \* A core waits for the signal of each offset.
    \* @type: Bool;
    WaitForOffset,
    \* A count core empties its column of the matrix; there is none here.
    \* @type: Bool;
    ZeroColumn

ASSUME OnePut

Half(k) == k % Windows
\* @type: (Int, Int, Int, Int) => $slot;
Window(owner, source, t, k) == <<"window", owner, <<source, t, Half(k)>>>>
WindowSlots ==
    {Window(r, s, t, k) : r \in Rank, s \in Rank, t \in 0 .. Tokens - 1, k \in 0 .. Windows - 1}

InitialBlock(slot) ==
    Filled(CASE slot[1] = "window" -> {"flag", "payload"}
             [] slot[1] = "output.tokens" -> {"payload"}
             [] OTHER -> CountFields("", slot), Number(0))

\* @type: (Int, $value) => $block;
EpochAndPayload(k, token) ==
    [f \in {"flag", "payload"} |-> IF f = "flag" THEN Number(k + 1) ELSE token]

(* "token_core put window": store each token with the number of the round. *)
SendTokens(r, k) ==
    Joined(Ranks - 1, LAMBDA i : Joined(Sent(r, k, i), LAMBDA n :
        LET d == Destination(r, i)
        IN Puts(Window(d, r, n - 1, k), EpochAndPayload(k, Token(r, d, n - 1, k)))))

(* "count_core put status in send_counts", "count_core wait_until status",  *)
(* "count_core put status in take_count",                                   *)
(* "count_core put_with_signal offset": the exchange of counts and the      *)
(* prefix sum.                                                              *)
SumUp(r, k, read) ==
    SendCounts("", r, k, Half(k), Kept("count_core put status in send_counts"))
    \o TakeCounts("", r, k, Half(k), read, Kept("count_core wait_until status"),
                  Kept("count_core put status in take_count"))
    \o HandOn("", r, read, Kept("count_core put_with_signal offset"))

(* "token_core wait_until signal", "count_core wait_until signal",          *)
(* "token_core put signal", "count_core put signal",                        *)
(* "token_core load offset", "count_core load offset": the offset of a      *)
(* source.                                                                  *)
OffsetOf(r, c, s) ==
    WaitOffset("", r, c, s, WaitForOffset,
               Kept("token_core wait_until signal") /\ Kept("count_core wait_until signal"),
               Kept("token_core put signal") /\ Kept("count_core put signal"))

(* "count_core wait_until window", "count_core put output.tokens": take a   *)
(* share of the tokens, as they arrive, to their offsets.                   *)
Reorder(r, c, k, read) ==
    Joined(Ranks - 1, LAMBDA i :
        LET s == Source(r, i)
            first == OffsetRead(read, i, "offset")
        IN OffsetOf(r, c, s)
           \o Checked(first = TokensBefore(r, s, k))
           \o Joined(OffsetRead(read, i, "count"), LAMBDA n :
                When((first + n - 1) % Cores = Cores - 1 - c,
                     Waits("equal", Window(r, s, n - 1, k), {"flag", "payload"}, "flag",
                           Number(k + 1), Kept("count_core wait_until window"))
                     \o Puts(Output(r, first + n - 1, k),
                             Filled({"payload"}, LastOf(read, "payload"))))))

(* "token_core quiet kernel_end", "count_core quiet kernel_end",            *)
(* "token_core sync", "count_core sync": the end of the kernel.             *)
KernelEnd ==
    When(Kept("token_core quiet kernel_end") /\ Kept("count_core quiet kernel_end"), Quiets)
    \o When(Kept("token_core sync") /\ Kept("count_core sync"), Syncs("rank"))

\* @type: ($process, Int, $read) => Seq($instruction);
Program(p, k, read) ==
    LET r == p[2]
        c == CoreNumber(p)
    IN (IF p[1] = "token_core" THEN SendTokens(r, k) ELSE SumUp(r, k, read))
       \o Reorder(r, c, k, read)
       \o KernelEnd
       \o NextKernel(r, c, Cores, k, read)

Init ==
    /\ ProgramsInit(Process, Program)
    /\ memory = [slot \in CountSlots("", Windows) \cup WindowSlots \cup OutputSlots |->
                    InitialBlock(slot)]

(* "token_core load output.tokens": the next kernel takes each token at its *)
(* place (NextKernel).                                                      *)
Next == ProgramsNext(Program)

Spec == Init /\ [][Next]_vars /\ Fairness

HasStepIsEnabled == HasStep <=> ENABLED <<Next>>_vars

Termination == <>AllDone
ExactlyOnce == ExactlyOnceOf(TokensSent)
Quiescent ==
    QuiescentWith({slot \in CountSlots("", Windows) :
                     slot[1] = "status" \/ (slot[1] = "signal" /\ WaitForOffset)}, InitialBlock)

Polled ==
    (IF Kept("count_core wait_until status")
     THEN {<<"status", "flag">>, <<"status", "count">>} ELSE {})
    \cup (IF Kept("token_core wait_until signal") /\ WaitForOffset
          THEN {<<"signal", "lead">>} ELSE {})
    \cup (IF Kept("count_core wait_until window")
          THEN {<<"window", "flag">>, <<"window", "payload">>} ELSE {})
RaceFree == ~ ReadRace(PlainLoads) /\ ~ WriteRace(Polled)
=============================================================================
