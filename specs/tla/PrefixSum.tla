----------------------------- MODULE PrefixSum -----------------------------
(***************************************************************************)
(* Kernel decomposition (UBEP, section 3.2), the part of counts: a count   *)
(* core takes {flag, count} of every source, sums the counts up, and hands *)
(* each offset on to every core with a signal (PrefixSum in                *)
(* protocols/cumsum.py).  One count core here, which needs no matrix.      *)
(*                                                                         *)
(* Part is what stands before the names of regions where another protocol  *)
(* holds this one; steps are named by the protocol that takes them.        *)
(***************************************************************************)
EXTENDS Outputs

CONSTANTS
    \* Cores of each rank that send tokens.
    \* @type: Int;
    TokenCores,
    \* Cores of each rank that send counts; only one is stated here.
    \* @type: Int;
    CountCores

ASSUME TokenCores = 1 /\ CountCores = 1

\* @type: Int => $process;
TokenCore(r) == <<"token_core", r, 0>>
\* @type: Int => $process;
CountCore(r) == <<"count_core", r, 0>>
Process == {TokenCore(r) : r \in Rank} \cup {CountCore(r) : r \in Rank}
Cores == TokenCores + CountCores
(* All cores of a rank: first those that send tokens, then those that count. *)
\* @type: $process => Int;
CoreNumber(p) == IF p[1] = "token_core" THEN p[3] ELSE TokenCores + p[3]

(* The name of a region here; only TLC can join strings. *)
\* @type: (Str, Str) => Str;
Named(part, region) ==
    IF part = "" THEN region
    ELSE CASE region = "status" -> "counting.status"
           [] region = "offset" -> "counting.offset"
           [] region = "signal" -> "counting.signal"

\* @type: (Str, Int, Int, Int) => $slot;
Status(part, owner, source, half) == <<Named(part, "status"), owner, <<source, half>>>>
\* @type: (Str, Int, Int, Int) => $slot;
Offset(part, owner, core, source) == <<Named(part, "offset"), owner, <<core, source>>>>
\* @type: (Str, Int, Int, Int) => $slot;
Signal(part, owner, core, source) == <<Named(part, "signal"), owner, <<core, source>>>>
CountSlots(part, halves) ==
    {Status(part, r, s, h) : r \in Rank, s \in Rank, h \in 0 .. halves - 1}
      \cup {Offset(part, r, c, s) : r \in Rank, c \in 0 .. Cores - 1, s \in Rank}
      \cup {Signal(part, r, c, s) : r \in Rank, c \in 0 .. Cores - 1, s \in Rank}
CountFields(part, slot) ==
    CASE slot[1] = Named(part, "status") -> {"flag", "count", "unused"}
      [] slot[1] = Named(part, "offset") -> {"offset", "count", "unused"}
      [] slot[1] = Named(part, "signal") -> {"lead"}

\* @type: (Str, Int, Str, Int) => $block;
Two(one, n, other, m) ==
    [f \in {one, other} |-> IF f = one THEN Number(n) ELSE Number(m)]

(* How many tokens come before those of s. *)
TokensBefore(r, s, k) == Before(r, s, LAMBDA i : Routed(r, k, i))

(***************************************************************************)
(* Parts of a program; the last argument of each says what is kept.        *)
(***************************************************************************)
(* Flag and count to each peer, also when the count is zero. *)
SendCounts(part, r, k, half, isKept) ==
    Joined(Ranks - 1, LAMBDA i :
        When(isKept, Puts(Status(part, Destination(r, i), r, half),
                          Two("flag", 1, "count", Sent(r, k, i)))))

(* The n-th of the other ranks in ascending order. *)
Other(r, n) == IF n - 1 < r THEN n - 1 ELSE n
\* @type: ($read, Int) => Int;
CountTaken(read, n) == IF Len(read) < n THEN 0 ELSE read[n]["count"][1]

(* Wait for each flag, read the count with it and empty the flag. *)
TakeCounts(part, r, k, half, read, waits, empties) ==
    Joined(Ranks - 1, LAMBDA n :
        LET s == Other(r, n)
        IN Waits("equal", Status(part, r, s, half), {"flag", "count"}, "flag", Number(1), waits)
           \o When(empties, Puts(Status(part, r, s, half), Two("flag", 0, "count", 0)))
           \o Checked(CountTaken(read, n) = routing[<<k, s, r>>]))

(* Offset and count of each source for each core, with a signal behind. *)
HandOn(part, r, read, isSignalled) ==
    Joined(Cores, LAMBDA c : Joined(Ranks - 1, LAMBDA n :
        LET s == Other(r, n)
            offset == Total(n - 1, LAMBDA m : CountTaken(read, m))
        IN PutsWithSignal(Offset(part, r, c - 1, s),
                          Two("offset", offset, "count", CountTaken(read, n)),
                          Signal(part, r, c - 1, s), Filled({"lead"}, Number(1)), isSignalled)))

(* Wait for the signal of an offset, empty it, and load the offset. *)
WaitOffset(part, r, core, s, waits, isKept, empties) ==
    LET signal == Signal(part, r, core, s)
    IN When(waits,
            Waits("equal", signal, {"lead"}, "lead", Number(1), isKept)
            \o When(empties, Puts(signal, Filled({"lead"}, Number(0)))))
       \o Loads(Offset(part, r, core, s), {"offset", "count"})

(* What has been read of the offsets so far: in the order of the reads. *)
\* @type: $read => $read;
OffsetsIn(read) == SelectSeq(read, LAMBDA block : "offset" \in DOMAIN block)
\* @type: ($read, Int, Str) => Int;
OffsetRead(read, i, field) ==
    LET offsets == OffsetsIn(read)
    IN IF Len(offsets) < i THEN 0 ELSE offsets[i][field][1]
=============================================================================
