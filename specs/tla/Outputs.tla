------------------------------ MODULE Outputs ------------------------------
(***************************************************************************)
(* What a dispatch hands on (protocols/output.py): the tokens of the first *)
(* source, of the second, ...; the next kernel takes each at its place.    *)
(* Two tensors are used in turn.                                           *)
(***************************************************************************)
EXTENDS Programs

\* @type: (Int, Int, Int) => $slot;
Output(r, position, k) == <<"output.tokens", r, <<position, k % 2>>>>
Places == 0 .. (IF (Ranks - 1) * Tokens > 1 THEN (Ranks - 1) * Tokens ELSE 1) - 1
OutputSlots == {Output(r, position, k) : r \in Rank, position \in Places, k \in 0 .. 1}

(* How many tokens come from the ranks before s; Of(i): from the i-th       *)
(* source of r.                                                             *)
Before(r, s, Of(_)) ==
    Total(Ranks - 1, LAMBDA i : IF Source(r, i) < s THEN Of(i) ELSE 0)

(* Core c of several takes every cores-th place.  Its steps are named by    *)
(* the protocol.                                                            *)
\* @type: (Int, Int, Int, Int, $read) => Seq($instruction);
NextKernel(r, c, cores, k, read) ==
    Joined(Ranks, LAMBDA n :
        LET s == n - 1
        IN IF s = r THEN <<>>
           ELSE Joined(routing[<<k, s, r>>], LAMBDA m :
                  LET place == Before(r, s, LAMBDA i : Routed(r, k, i)) + m - 1
                  IN When(place % cores = c,
                          Loads(Output(r, place, k), {"payload"})
                          \o Consumed(Token(s, r, m - 1, k),
                                      LastOf(read, "payload") = Token(s, r, m - 1, k)))))
=============================================================================
