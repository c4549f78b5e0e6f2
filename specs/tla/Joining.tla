------------------------------ MODULE Joining ------------------------------
(***************************************************************************)
(* Sequences and numbers put together from parts.                          *)
(***************************************************************************)
EXTENDS Integers, Sequences

(* What F gives for 1, 2, ... n, one behind the other. *)
Joined(n, F(_)) ==
    LET RECURSIVE upTo(_)
        upTo(i) == IF i = 0 THEN <<>> ELSE upTo(i - 1) \o F(i)
    IN upTo(n)

(* The sum of what F gives for 1, 2, ... n. *)
Total(n, F(_)) ==
    LET RECURSIVE upTo(_)
        upTo(i) == IF i = 0 THEN 0 ELSE upTo(i - 1) + F(i)
    IN upTo(n)
=============================================================================
