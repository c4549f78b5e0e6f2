------------------------------ MODULE Joining ------------------------------
(***************************************************************************)
(* Joining for Apalache, which has folds in the place of recursion.        *)
(***************************************************************************)
EXTENDS Integers, Sequences, Apalache

(* What F gives for 1, 2, ... n, one behind the other. *)
\* @type: (Int, Int => Seq(a)) => Seq(a);
Joined(n, F(_)) ==
    LET \* @type: (Seq(a), Int) => Seq(a);
        Behind(joined, i) == joined \o F(i)
    IN ApaFoldSeqLeft(Behind, <<>>, MkSeq(n, LAMBDA i : i))

(* The sum of what F gives for 1, 2, ... n. *)
\* @type: (Int, Int => Int) => Int;
Total(n, F(_)) ==
    LET \* @type: (Int, Int) => Int;
        And(sum, i) == sum + F(i)
    IN ApaFoldSeqLeft(And, 0, MkSeq(n, LAMBDA i : i))
=============================================================================
