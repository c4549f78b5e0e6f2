--------------------------- MODULE BulkSynchronous ---------------------------
(***************************************************************************)
(* Bulk-synchronous dispatch (UBEP, section 2.3): phases with SyncAll      *)
(* between (protocols/bsp.py).  Every core takes part in every phase.      *)
(***************************************************************************)
EXTENDS Outputs

CONSTANTS
    \* Cores of each rank.
    \* @type: Int;
    Cores,
    \* Halves of the window and of the status area, used in turn.
    \* @type: Int;
    Windows,
    \* How SyncAll works; only "ideal" is stated here.
    \* @type: Str;
    Syncall,
    \* A SyncAll between the tokens and the flags.
    \* @type: Bool;
    FirstBarrier,
    \* A SyncAll between the flags and the offsets.
    \* @type: Bool;
    SecondBarrier,
    \* What the workspace of a SyncAll in software holds at first.
    \* @type: Str;
    Initial

ASSUME Syncall = "ideal" /\ Cores > 1

Process == {<<"aiv", r, c>> : r \in Rank, c \in 0 .. Cores - 1}

Half(k) == k % Windows
\* @type: (Int, Int, Int, Int) => $slot;
Window(owner, source, t, k) == <<"window", owner, <<source, t, Half(k)>>>>
\* @type: (Int, Int, Int) => $slot;
Status(owner, source, k) == <<"status", owner, <<source, Half(k)>>>>
Halves == 0 .. Windows - 1
WindowSlots == {Window(r, s, t, k) : r \in Rank, s \in Rank, t \in 0 .. Tokens - 1, k \in Halves}
StatusSlots == {Status(r, s, k) : r \in Rank, s \in Rank, k \in Halves}

InitialBlock(slot) ==
    Filled(IF slot[1] = "status" THEN {"flag", "count", "unused"} ELSE {"payload"}, Number(0))

(* 1 when a half is used for the first time, then 0, then 1 again. *)
Flag(k) == IF k % (2 * Windows) < Windows THEN 1 ELSE 0

\* @type: (Int, Int) => $block;
FlagAndCount(k, count) ==
    [f \in {"flag", "count"} |-> IF f = "flag" THEN Number(Flag(k)) ELSE Number(count)]

(* "aiv put window": a core owns every Cores-th token, and puts it straight *)
(* into the peer's window.                                                  *)
SendTokens(r, c, k) ==
    Joined(Ranks - 1, LAMBDA i : Joined(Sent(r, k, i), LAMBDA n :
        LET d == Destination(r, i)
        IN When((n - 1) % Cores = c,
                Puts(Window(d, r, n - 1, k), Filled({"payload"}, Token(r, d, n - 1, k))))))

(* "aiv put status": flag and count of each peer in one put; the last core  *)
(* begins.                                                                  *)
SendFlags(r, c, k) ==
    Joined(Ranks - 1, LAMBDA i :
        When((i - 1) % Cores = Cores - 1 - c /\ Kept("aiv put status"),
             Puts(Status(Destination(r, i), r, k), FlagAndCount(k, Sent(r, k, i)))))

(* "aiv wait_until status": each core verifies the flags of a share of the  *)
(* sources.                                                                 *)
VerifyFlags(r, c, k) ==
    Joined(Ranks - 1, LAMBDA i :
        When((i - 1) % Cores = c,
             Waits("equal", Status(r, Source(r, i), k), {"flag"}, "flag", Number(Flag(k)),
                   Kept("aiv wait_until status"))))

(* How many flags a core has read before it loads the counts. *)
Verified(c) == Total(Ranks - 1, LAMBDA i : IF (i - 1) % Cores = c THEN 1 ELSE 0)
\* @type: ($read, Int, Int) => Int;
CountRead(read, c, i) ==
    IF Len(read) < Verified(c) + i THEN 0 ELSE read[Verified(c) + i]["count"][1]

(* "aiv load status": all counts, without looking at their flags. *)
LoadCounts(r, c, k, read) ==
    Joined(Ranks - 1, LAMBDA i :
        Loads(Status(r, Source(r, i), k), {"count"})
        \o Checked(CountRead(read, c, i) = Routed(r, k, i)))

(* "aiv load window", "aiv put output.tokens": copy a share of the tokens   *)
(* to where they belong.                                                    *)
CopyTokens(r, c, k, read) ==
    Joined(Ranks - 1, LAMBDA i :
        LET s == Source(r, i)
            first == Before(r, s, LAMBDA j : CountRead(read, c, j))
        IN Joined(CountRead(read, c, i), LAMBDA n :
            When((first + n - 1) % Cores = Cores - 1 - c,
                 Loads(Window(r, s, n - 1, k), {"payload"})
                 \o Puts(Output(r, first + n - 1, k),
                         Filled({"payload"}, LastOf(read, "payload"))))))

(* "aiv sync in sync_all": SyncAll joins the cores of a rank. *)
SyncAll == When(Kept("aiv sync in sync_all"), Syncs("rank"))

(* "aiv quiet", "aiv quiet kernel_end", "aiv sync in aiv": the tokens are   *)
(* complete before the first SyncAll; at the end of the kernel every put is *)
(* and all cores of the rank are there.                                     *)
\* @type: ($process, Int, $read) => Seq($instruction);
Program(p, k, read) ==
    LET r == p[2]
        c == p[3]
    IN SendTokens(r, c, k)
       \o When(Kept("aiv quiet"), Quiets)
       \o When(FirstBarrier, SyncAll)
       \o SendFlags(r, c, k)
       \o VerifyFlags(r, c, k)
       \o When(SecondBarrier, SyncAll)
       \o LoadCounts(r, c, k, read)
       \o CopyTokens(r, c, k, read)
       \o When(Kept("aiv quiet kernel_end"), Quiets)
       \o When(Kept("aiv sync in aiv"), Syncs("rank"))
       \o NextKernel(r, c, Cores, k, read)

Init ==
    /\ ProgramsInit(Process, Program)
    /\ memory = [slot \in WindowSlots \cup StatusSlots \cup OutputSlots |-> InitialBlock(slot)]

(* "aiv load output.tokens": the next kernel takes each token at its place  *)
(* (NextKernel).                                                            *)
Next == ProgramsNext(Program)

Spec == Init /\ [][Next]_vars /\ Fairness

HasStepIsEnabled == HasStep <=> ENABLED <<Next>>_vars

Termination == <>AllDone
ExactlyOnce == ExactlyOnceOf(TokensSent)
Quiescent == QuiescentWith({}, InitialBlock)

Polled == IF Kept("aiv wait_until status") THEN {<<"status", "flag">>} ELSE {}
RaceFree == ~ ReadRace(PlainLoads) /\ ~ WriteRace(Polled)
=============================================================================
