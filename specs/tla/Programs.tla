------------------------------ MODULE Programs ------------------------------
(***************************************************************************)
(* Cores that each go through a program, kernel by kernel: what a core     *)
(* does in a round is a sequence of instructions, later ones of which may  *)
(* depend on what earlier ones have read.                                  *)
(*                                                                         *)
(* Each instruction is one step, but for statements (check, consume): they *)
(* are part of the step before them.  The name in quotes above a part of a *)
(* program is the step of the Python role that it stands for; Omitted      *)
(* holds the names of steps that are left out.  A wait that is left out    *)
(* reads and goes on whatever it finds.                                    *)
(***************************************************************************)
EXTENDS Routing, Joining

\* @typeAlias: instruction = { op: Str, puts: Seq($put), slot: $slot, fields: Set(Str), field: Str, value: $value, holds: Bool, group: Str };
\* @typeAlias: read = Seq($block);
\* @typeAlias: place = { stage: Str, round: Int, line: Int };
ProgramsAliases == TRUE

CONSTANTS
    \* @type: Set(Str);
    Omitted

VARIABLES
    \* Where each process is, and the operation that it is about to do.
    \* @type: $process -> $place;
    at,
    \* What each process is about to do in this round: its program from here
    \* on, which follows from its place and from what it has read.
    \* @type: $process -> Seq($instruction);
    todo,
    \* What each process has read in this round.
    \* @type: $process -> $read;
    known,
    \* The tokens that each process has taken, and whether what it took was
    \* that token's.
    \* @type: $process -> Seq({ token: $value, right: Bool });
    consumed,
    \* A condition that a process states has not held.
    \* @type: Bool;
    failed

\* @type: $slot;
vars == <<memory, flight, routing, at, todo, known, consumed, failed>>

Kept(step) == step \notin Omitted

(***************************************************************************)
(* Instructions.                                                           *)
(***************************************************************************)
\* @type: $slot;
NoSlot == <<"", 0, <<>>>>
Nothing ==
    [op |-> "", puts |-> <<>>, slot |-> NoSlot, fields |-> {}, field |-> "",
     value |-> Mark, holds |-> TRUE, group |-> ""]

\* @type: (Bool, Seq($instruction)) => Seq($instruction);
When(condition, instructions) == IF condition THEN instructions ELSE <<>>

\* @type: ($slot, $block) => Seq($instruction);
Puts(slot, block) == <<[Nothing EXCEPT !.op = "put", !.puts = <<Plain(slot, block)>>]>>

(* put_with_signal: the signal lands behind its own put; a mutant has none. *)
\* @type: ($slot, $block, $slot, $block, Bool) => Seq($instruction);
PutsWithSignal(slot, block, signal, raised, isKept) ==
    LET told == [Plain(signal, raised) EXCEPT !.behind = slot]
        puts == IF isKept THEN <<Plain(slot, block), told>> ELSE <<Plain(slot, block)>>
    IN <<[Nothing EXCEPT !.op = "put", !.puts = puts]>>

(* An atomic add to a number. *)
\* @type: ($slot, $block) => Seq($instruction);
Adds(slot, block) ==
    <<[Nothing EXCEPT !.op = "add", !.puts = <<[Plain(slot, block) EXCEPT !.adds = TRUE]>>]>>

\* @type: ($slot, Set(Str)) => Seq($instruction);
Loads(slot, fields) ==
    <<[Nothing EXCEPT !.op = "load", !.slot = slot, !.fields = fields]>>

(* Wait until a field is a value, is not it, or is a number not below it. *)
\* @type: (Str, $slot, Set(Str), Str, $value, Bool) => Seq($instruction);
Waits(op, slot, fields, field, value, isKept) ==
    <<[Nothing EXCEPT !.op = IF isKept THEN op ELSE "load", !.slot = slot, !.fields = fields,
                      !.field = field, !.value = value]>>

\* @type: Seq($instruction);
Quiets == <<[Nothing EXCEPT !.op = "quiet"]>>

(* sync: all processes of the "rank", or of "all" ranks, are here. *)
\* @type: Str => Seq($instruction);
Syncs(group) == <<[Nothing EXCEPT !.op = "sync", !.group = group]>>

\* @type: Bool => Seq($instruction);
Checked(condition) == <<[Nothing EXCEPT !.op = "check", !.holds = condition]>>

\* @type: ($value, Bool) => Seq($instruction);
Consumed(token, right) == <<[Nothing EXCEPT !.op = "consume", !.value = token, !.holds = right]>>

Said == {"check", "consume"}
Reading == {"load", "equal", "differ", "reach"}

(* A field of the last block that was read. *)
\* @type: ($read, Str) => $value;
LastOf(read, field) ==
    LET n == Len(read)
    IN IF n > 0 /\ field \in DOMAIN read[n] THEN read[n][field] ELSE Mark

(***************************************************************************)
(* Steps of a process.  Program(p, k, read) is what process p does in      *)
(* round k if it has read this.  (A choice from a set of one value makes   *)
(* TLC compute it once.)                                                   *)
(***************************************************************************)
(* How many statements a program begins with. *)
\* @type: Seq($instruction) => Int;
ToSay(program) ==
    LET steps == {n \in DOMAIN program : program[n].op \notin Said}
    IN IF steps = {} THEN Len(program) ELSE Least(steps) - 1

\* @type: Seq($instruction) => Seq({ token: $value, right: Bool });
Taken(statements) ==
    LET of == SelectSeq(statements, LAMBDA x : x.op = "consume")
    IN [n \in DOMAIN of |-> [token |-> of[n].value, right |-> of[n].holds]]

(* Processes go on, and say what they find to say; rest: what each has     *)
(* still to do in this round, read: what each knows now.  At the end of a   *)
(* kernel the next one begins.                                              *)
\* @type: ($process -> Seq($instruction), $process -> $read, ($process, Int, $read) => Seq($instruction)) => Bool;
GoOn(rest, read, Program(_, _, _)) ==
    LET moved == DOMAIN rest
    IN
    \E count \in {[p \in moved |-> ToSay(rest[p])]} :
    \E ended \in {{p \in moved : count[p] = Len(rest[p])}} :
    \E next \in {[p \in moved |->
                   IF p \notin ended THEN SubSeq(rest[p], count[p] + 1, Len(rest[p]))
                   ELSE IF at[p].round + 1 < Rounds THEN Program(p, at[p].round + 1, <<>>)
                   ELSE <<>>]} :
    \E said \in {[p \in moved |-> SubSeq(rest[p], 1, count[p])]} :
        /\ todo' = [p \in DOMAIN at |-> IF p \in moved THEN next[p] ELSE todo[p]]
        /\ at' = [p \in DOMAIN at |->
                    IF p \notin moved THEN at[p]
                    ELSE IF next[p] = <<>> THEN [stage |-> "done", round |-> Rounds, line |-> 0]
                    ELSE IF p \in ended
                    THEN [stage |-> next[p][1].op, round |-> at[p].round + 1, line |-> 1]
                    ELSE [stage |-> next[p][1].op, round |-> at[p].round,
                          line |-> at[p].line + count[p] + 1]]
        /\ known' = [p \in DOMAIN at |->
                       IF p \notin moved THEN known[p]
                       ELSE IF p \in ended THEN <<>> ELSE read[p]]
        /\ consumed' = [p \in DOMAIN at |->
                          IF p \in moved THEN consumed[p] \o Taken(said[p]) ELSE consumed[p]]
        /\ failed' = (failed \/ \E p \in moved : \E n \in DOMAIN said[p] :
                                   said[p][n].op = "check" /\ ~ said[p][n].holds)
        /\ UNCHANGED routing

(* The block satisfies what an instruction waits for. *)
\* @type: ($instruction, $block) => Bool;
Passes(instruction, block) ==
    CASE instruction.op = "load" -> TRUE
      [] instruction.op = "equal" -> block[instruction.field] = instruction.value
      [] instruction.op = "differ" -> block[instruction.field] # instruction.value
      [] instruction.op = "reach" -> block[instruction.field][1] >= instruction.value[1]

(* A put, an add or a quiet. *)
\* @type: ($process, ($process, Int, $read) => Seq($instruction)) => Bool;
Writes(p, Program(_, _, _)) ==
    /\ IF at[p].stage = "quiet"
       THEN Quieted(p) /\ UNCHANGED fabric ELSE Issue(p, todo[p][1].puts)
    /\ GoOn([q \in {p} |-> Tail(todo[q])], known, Program)

(* A load, or a wait that passes. *)
\* @type: ($process, $instruction, ($process, Int, $read) => Seq($instruction)) => Bool;
Reads(p, here, Program(_, _, _)) ==
    /\ Passes(here, memory[here.slot])
    /\ \E read \in {Append(known[p], [f \in here.fields |-> memory[here.slot][f]])} :
       \E program \in {Program(p, at[p].round, read)} :
           GoOn([q \in {p} |-> SubSeq(program, at[p].line + 1, Len(program))],
                [q \in {p} |-> read], Program)
    /\ UNCHANGED fabric

(* One step of a process that needs no other. *)
\* @type: ($process, ($process, Int, $read) => Seq($instruction)) => Bool;
ProcessStep(p, Program(_, _, _)) ==
    /\ at[p].stage \notin {"done", "sync"}
    /\ IF at[p].stage \in Reading THEN Reads(p, todo[p][1], Program) ELSE Writes(p, Program)

(* All processes of a group are at a sync, and go on together. *)
\* @type: (Set($process), Str, ($process, Int, $read) => Seq($instruction)) => Bool;
SyncStep(ps, group, Program(_, _, _)) ==
    /\ \A p \in ps : at[p].stage = "sync" /\ todo[p][1].group = group
    /\ GoOn([p \in ps |-> Tail(todo[p])], known, Program)
    /\ UNCHANGED fabric

OnRank(r) == {p \in DOMAIN at : p[2] = r}

Landing(p, i) == Land(p, i) /\ UNCHANGED <<routing, at, todo, known, consumed, failed>>

AllDone == \A p \in DOMAIN at : at[p].stage = "done"

(* A run ends when all processes have returned and every put has landed.   *)
Ended == AllDone /\ (\A p \in DOMAIN flight : flight[p] = <<>>)
Terminated == Ended /\ UNCHANGED vars

\* @type: (Set($process), ($process, Int, $read) => Seq($instruction)) => Bool;
ProgramsInit(processes, Program(_, _, _)) ==
    /\ Ranks > 1
    /\ routing \in Routings
    /\ flight = [p \in processes |-> <<>>]
    /\ todo = [p \in processes |-> Program(p, 0, <<>>)]
    /\ at = [p \in processes |-> [stage |-> todo[p][1].op, round |-> 0, line |-> 1]]
    /\ known = [p \in processes |-> <<>>]
    /\ consumed = [p \in processes |-> <<>>]
    /\ failed = FALSE

\* @type: (($process, Int, $read) => Seq($instruction)) => Bool;
ProgramsNext(Program(_, _, _)) ==
    \/ \E p \in DOMAIN at : ProcessStep(p, Program)
    \/ \E r \in Rank : SyncStep(OnRank(r), "rank", Program)
    \/ SyncStep(DOMAIN at, "all", Program)
    \/ \E p \in DOMAIN at : \E i \in DOMAIN flight[p] : Landing(p, i)
    \/ Terminated

(***************************************************************************)
(* Fairness.                                                               *)
(***************************************************************************)
(* A process, the processes of a group, or the fabric has a step.  This is *)
(* ENABLED <<Next>>_vars (HasStepIsEnabled), which TLC takes much longer   *)
(* to find out.                                                            *)
\* @type: $process => Bool;
CanGoOn(p) ==
    LET stage == at[p].stage
    IN /\ stage \notin {"done", "sync"}
       /\ stage \in Reading => Passes(todo[p][1], memory[todo[p][1].slot])
       /\ stage = "quiet" => Quieted(p)

\* @type: (Set($process), Str) => Bool;
AreAt(ps, group) == \A p \in ps : at[p].stage = "sync" /\ todo[p][1].group = group

HasStep ==
    \/ \E p \in DOMAIN at : CanGoOn(p) \/ flight[p] # <<>>
    \/ \E r \in Rank : AreAt(OnRank(r), "rank")
    \/ AreAt(DOMAIN at, "all")

(* WF_vars(Next): as long as there is a step, one is taken.  This follows   *)
(* from weak fairness of every process and of the fabric and asks less, so  *)
(* that what ends under it ends under that too.  It is enough, as programs  *)
(* have no loops, and every step goes on in one or lands a put.             *)
Fairness == []<>(~ HasStep) \/ []<><<TRUE>>_vars

(***************************************************************************)
(* Properties.                                                             *)
(***************************************************************************)
(* Whatever is taken is what its source put for it. *)
HappensBefore ==
    \A p \in DOMAIN consumed : \A i \in DOMAIN consumed[p] : consumed[p][i].right

(* At the end each token that was sent has been taken once, and no other.  *)
\* @type: Set($value) => Bool;
ExactlyOnceOf(tokens) ==
    LET taken == {<<p, i>> \in (DOMAIN consumed) \X (1 .. 4 * Rounds * Ranks * Tokens) :
                    i <= Len(consumed[p])}
    IN Ended => /\ \A x \in tokens :
                     Cardinality({c \in taken : consumed[c[1]][c[2]].token = x}) = 1
                /\ \A c \in taken : consumed[c[1]][c[2]].token \in tokens

(* What the routing sends. *)
TokensSent ==
    {Token(w[2], w[3], t, w[1]) : w \in Ways, t \in 0 .. Tokens - 1}
      \ {Token(w[2], w[3], t, w[1]) : <<w, t>> \in
           {x \in Ways \X (0 .. Tokens - 1) : x[2] >= routing[x[1]]}}

Checks == ~ failed

(* The loads that processes are about to make and that wait for nothing.    *)
Loading == {todo[p][1] : p \in {q \in DOMAIN at : at[q].stage = "load"}}
PlainLoads == UNION {{<<load.slot, f>> : f \in load.fields} : load \in Loading}

(* Nobody returns with puts in flight, and clean regions end as they began. *)
\* @type: (Set($slot), $slot => $block) => Bool;
QuiescentWith(clean, initial(_)) ==
    /\ \A p \in DOMAIN at : at[p].stage = "done" => flight[p] = <<>>
    /\ Ended => \A slot \in clean : memory[slot] = initial(slot)
=============================================================================
