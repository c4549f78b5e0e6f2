------------------------------ MODULE Routing ------------------------------
(***************************************************************************)
(* How many tokens go from which rank to which in each round.              *)
(***************************************************************************)
EXTENDS Fabric

CONSTANTS
    \* Tokens from one rank to another in a round, at most.
    \* @type: Int;
    Tokens,
    \* @type: Int;
    Rounds,
    \* The routings that are checked: how many tokens go in a round from a
    \* rank to another, indexed by <<round, source, destination>>.
    \* @type: Set(<<Int, Int, Int>> -> Int);
    Routings

VARIABLES
    \* The routing of this run, which never changes.
    \* @type: <<Int, Int, Int>> -> Int;
    routing

Round == 0 .. Rounds - 1
Ways == {w \in Round \X Rank \X Rank : w[2] # w[3]}

(***************************************************************************)
(* Routings by name.                                                       *)
(***************************************************************************)
EveryPair == {[w \in Ways |-> Tokens]}
OneWay == {[w \in Ways |-> IF w[2] = 0 /\ w[3] = 1 THEN Tokens ELSE 0]}
NoTokens == {[w \in Ways |-> 0]}
SilentRound == {[w \in Ways |-> IF w[1] = 1 THEN 0 ELSE Tokens]}
AnyRouting == [Ways -> 0 .. Tokens]

IsDense(table) == \A w \in Ways : table[w] > 0

(* How many tokens a rank sends to its i-th destination, and gets from its  *)
(* i-th source.                                                             *)
Sent(r, k, i) == routing[<<k, r, Destination(r, i)>>]
Routed(r, k, i) == routing[<<k, Source(r, i), r>>]
=============================================================================
