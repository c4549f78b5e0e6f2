------------------------------ MODULE Taskflow ------------------------------
(***************************************************************************)
(* A static schedule of tile tasks (HyperParallel-MoE, arXiv 2605.23764;   *)
(* protocols/taskflow.py).  Each rank has queues, one for each core, whose *)
(* tasks were put in order before the launch.  A task at the head of its   *)
(* queue waits until its event counters have come to their thresholds,     *)
(* reads tiles, writes tiles into any rank's memory, and when these are    *)
(* complete adds to event counters, its own rank's or another's.           *)
(*                                                                         *)
(* The name in quotes above an action is the step of the Python role that  *)
(* it stands for; Omitted holds the names of steps that are left out, for  *)
(* mutants.  A wait that is left out reads and goes on whatever it finds.  *)
(***************************************************************************)
EXTENDS Fabric, Joining

\* @typeAlias: task = { waits: Seq(<<$slot, Int>>), reads: Seq($slot), writes: Seq($slot), quiet: Bool, triggers: Seq(<<$slot, Int>>) };
\* @typeAlias: schedule = { tasks: $process -> Seq($task), tiles: $slot -> $value, counters: Set($slot) };
\* @typeAlias: instruction = { op: Str, slot: $slot, amount: Int, value: $value };
\* @typeAlias: place = { stage: Str, line: Int };
TaskflowAliases == TRUE

CONSTANTS
    \* The pass of the layer that Layer states; only "forward" is.
    \* @type: Str;
    Direction,
    \* The tasks of each queue, what tiles hold at first, and the event
    \* counters: Layer, or a part of it, Exchange.
    \* @type: $schedule;
    Schedule,
    \* @type: Set(Str);
    Omitted

VARIABLES
    \* The line of its program that each queue is about to do, and what it is.
    \* @type: $process -> $place;
    at,
    \* A task has read a tile that nobody had written.
    \* @type: Bool;
    failed

\* @type: $slot;
vars == <<memory, flight, at, failed>>

ASSUME Direction = "forward" /\ Ranks > 1

Kept(step) == step \notin Omitted

\* @type: (Str, Int, Int) => $slot;
Tile(tensor, r, i) == <<tensor, r, <<i>>>>
(* What stands in a tile that nobody has written, and in one of an input.  *)
Unwritten == Number(0)
Input == Number(-1)
(* What the n-th task of a queue writes. *)
\* @type: ($process, Int) => $value;
Written(q, n) == <<q[2], q[3], n>>

(***************************************************************************)
(* The forward pass of a mixture-of-experts layer (figures 2 and 4), one   *)
(* expert a rank, one tile from each rank to each expert: Dispatch, the    *)
(* matrix product gate/up, SwiGLU, the matrix product down, Combine, and   *)
(* the sum of what came back.  A rank has a matrix core (AIC), a vector    *)
(* core (AIV) that only communicates, and one that computes.               *)
(***************************************************************************)
\* @type: Int => $process;
MatrixCore(r) == <<"queue", r, 0>>
\* @type: Int => $process;
SendingCore(r) == <<"queue", r, 1>>
\* @type: Int => $process;
VectorCore(r) == <<"queue", r, 2>>
LayerQueues == UNION {{MatrixCore(r), SendingCore(r), VectorCore(r)} : r \in Rank}

(* Rank-aware reordering (figure 6): rank r serves r, r+1, ... in turn, so  *)
(* that tiles arrive from r, r-1, ...; they are computed and sent back in  *)
(* that order.                                                             *)
Served(r, n) == (r + n - 1) % Ranks
Arrived(r, n) == (r - n + 1 + Ranks) % Ranks

(* One event for each tile on its way through the expert's rank, and one   *)
(* for all results that come back to a rank.                               *)
\* @type: (Str, Int, Int) => $slot;
Event(name, r, source) == <<name, r, <<0, source>>>>
\* @type: Int => $slot;
Returned(r) == <<"event combine", r, <<0>>>>

\* @type: (Seq(<<$slot, Int>>), Seq($slot), $slot, Seq(<<$slot, Int>>)) => $task;
Task(waits, reads, write, triggers) ==
    [waits |-> waits, reads |-> reads, writes |-> <<write>>, quiet |-> TRUE, triggers |-> triggers]

(* A tile of a rank to an expert, which is told so. *)
Dispatch(r, d) ==
    Task(<<>>, <<Tile("tensor tokens", r, d)>>, Tile("tensor received", d, r),
         <<<<Event("event dispatch", d, r), 1>>>>)
GateUp(r, s) ==
    Task(<<<<Event("event dispatch", r, s), 1>>>>, <<Tile("tensor received", r, s)>>,
         Tile("tensor hidden", r, s), <<<<Event("event gate_up", r, s), 1>>>>)
SwiGlu(r, s) ==
    Task(<<<<Event("event gate_up", r, s), 1>>>>, <<Tile("tensor hidden", r, s)>>,
         Tile("tensor activated", r, s), <<<<Event("event swiglu", r, s), 1>>>>)
Down(r, s) ==
    Task(<<<<Event("event swiglu", r, s), 1>>>>, <<Tile("tensor activated", r, s)>>,
         Tile("tensor output", r, s), <<<<Event("event down", r, s), 1>>>>)
(* The result of a tile back to where the tile came from. *)
Combine(r, d) ==
    Task(<<<<Event("event down", r, d), 1>>>>, <<Tile("tensor output", r, d)>>,
         Tile("tensor returned", d, r), <<<<Returned(d), 1>>>>)
Add(r) ==
    Task(<<<<Returned(r), Ranks>>>>,
         Joined(Ranks, LAMBDA n : <<Tile("tensor returned", r, n - 1)>>),
         Tile("tensor result", r, 0), <<>>)

\* @type: $process => Seq($task);
LayerTasks(q) ==
    LET r == q[2]
    IN CASE q = MatrixCore(r) ->
              Joined(Ranks, LAMBDA n : <<GateUp(r, Arrived(r, n))>>)
              \o Joined(Ranks, LAMBDA n : <<Down(r, Arrived(r, n))>>)
         [] q = SendingCore(r) ->
              Joined(Ranks, LAMBDA n : <<Dispatch(r, Served(r, n))>>)
              \o Joined(Ranks, LAMBDA n : <<Combine(r, Arrived(r, n))>>)
         [] q = VectorCore(r) ->
              Joined(Ranks, LAMBDA n : <<SwiGlu(r, Arrived(r, n))>>) \o <<Add(r)>>

LayerTiles ==
    LET inputs == {Tile("tensor tokens", r, d) : r \in Rank, d \in Rank}
        tensors == {"tensor received", "tensor hidden", "tensor activated", "tensor output",
                    "tensor returned"}
        others == {Tile(tensor, r, s) : tensor \in tensors, r \in Rank, s \in Rank}
                    \cup {Tile("tensor result", r, 0) : r \in Rank}
    IN [slot \in inputs \cup others |-> IF slot \in inputs THEN Input ELSE Unwritten]

LayerCounters ==
    LET names == {"event dispatch", "event gate_up", "event swiglu", "event down"}
    IN {Event(name, r, s) : name \in names, r \in Rank, s \in Rank}
         \cup {Returned(r) : r \in Rank}

Layer ==
    [tasks |-> [q \in LayerQueues |-> LayerTasks(q)], tiles |-> LayerTiles,
     counters |-> LayerCounters]

(* Its first part alone: Dispatch and gate/up. *)
Exchange ==
    LET queues == UNION {{MatrixCore(r), SendingCore(r)} : r \in Rank}
        tensors == {"tensor tokens", "tensor received", "tensor hidden"}
    IN [tasks |-> [q \in queues |-> SubSeq(LayerTasks(q), 1, Ranks)],
        tiles |-> [slot \in {s \in DOMAIN LayerTiles : s[1] \in tensors} |-> LayerTiles[slot]],
        counters |-> {s \in LayerCounters : s[1] \in {"event dispatch", "event gate_up"}}]

(***************************************************************************)
(* What a queue does, line by line.                                        *)
(***************************************************************************)
Queue == DOMAIN Schedule.tasks

\* @type: (Bool, Str, $slot, Int, $value) => Seq($instruction);
Line(isKept, op, slot, amount, value) ==
    IF isKept THEN <<[op |-> op, slot |-> slot, amount |-> amount, value |-> value]>> ELSE <<>>
\* @type: $slot;
Nowhere == <<"", 0, <<>>>>

\* @type: ($process, Int, $task) => Seq($instruction);
Lines(q, n, task) ==
    Joined(Len(task.waits), LAMBDA i :
        Line(TRUE, IF Kept("queue wait_until event") THEN "wait" ELSE "look",
             task.waits[i][1], task.waits[i][2], Mark))
    \o Joined(Len(task.reads), LAMBDA i : Line(TRUE, "load", task.reads[i], 0, Mark))
    \o Joined(Len(task.writes), LAMBDA i :
        Line(Kept("queue put tensor"), "put", task.writes[i], 0, Written(q, n)))
    \o Line(task.quiet /\ Kept("queue quiet"), "quiet", Nowhere, 0, Mark)
    \o Joined(Len(task.triggers), LAMBDA i :
        Line(Kept("queue add event"), "add", task.triggers[i][1], task.triggers[i][2], Mark))

Program ==
    [q \in Queue |->
        Joined(Len(Schedule.tasks[q]), LAMBDA n : Lines(q, n, Schedule.tasks[q][n]))
        \o Line(Kept("queue quiet kernel_end"), "quiet", Nowhere, 0, Mark)
        \o Line(Kept("queue sync"), "sync", Nowhere, 0, Mark)]

\* @type: ($process, Int) => $place;
At(q, line) ==
    [stage |-> IF line > Len(Program[q]) THEN "done" ELSE Program[q][line].op, line |-> line]
Here(q) == Program[q][at[q].line]
Goes(q) == at' = [at EXCEPT ![q] = At(q, @.line + 1)]

Init ==
    /\ memory = [slot \in DOMAIN Schedule.tiles \cup Schedule.counters |->
                    IF slot \in Schedule.counters THEN Filled({"count"}, Number(0))
                    ELSE Filled({"tile"}, Schedule.tiles[slot])]
    /\ flight = [q \in Queue |-> <<>>]
    /\ at = [q \in Queue |-> At(q, 1)]
    /\ failed = FALSE

(* "queue wait_until event": the counter has come to the threshold. *)
Passes(q) == memory[Here(q).slot]["count"][1] >= Here(q).amount
Wait(q) ==
    /\ at[q].stage = "wait"
    /\ Passes(q)
    /\ Goes(q)
    /\ UNCHANGED <<fabric, failed>>

(* The same without waiting, in a mutant. *)
Look(q) == at[q].stage = "look" /\ Goes(q) /\ UNCHANGED <<fabric, failed>>

(* "queue load tensor": read a tile, which somebody has to have written. *)
Read(q) ==
    /\ at[q].stage = "load"
    /\ failed' = (failed \/ memory[Here(q).slot]["tile"] = Unwritten)
    /\ Goes(q)
    /\ UNCHANGED fabric

(* "queue put tensor": write a tile, of one's own rank or of another. *)
Write(q) ==
    /\ at[q].stage = "put"
    /\ Put(q, Here(q).slot, Filled({"tile"}, Here(q).value))
    /\ Goes(q)
    /\ UNCHANGED failed

(* "queue quiet", "queue quiet kernel_end": all that the queue has written  *)
(* or triggered is complete.                                               *)
Quiet(q) ==
    /\ at[q].stage = "quiet"
    /\ Quieted(q)
    /\ Goes(q)
    /\ UNCHANGED <<fabric, failed>>

(* "queue add event": trigger, an atomic add that lands when it likes. *)
Trigger(q) ==
    LET add == [Plain(Here(q).slot, Filled({"count"}, Number(Here(q).amount))) EXCEPT !.adds = TRUE]
    IN /\ at[q].stage = "add"
       /\ Issue(q, <<add>>)
       /\ Goes(q)
       /\ UNCHANGED failed

(* "queue sync": the launch ends on a rank when all its queues are done. *)
OnRank(r) == {q \in Queue : q[2] = r}
HasEnded(r) == \A q \in OnRank(r) : at[q].stage = "sync"
EndLaunch(r) ==
    /\ HasEnded(r)
    /\ at' = [q \in Queue |-> IF q[2] = r THEN At(q, at[q].line + 1) ELSE at[q]]
    /\ UNCHANGED <<fabric, failed>>

QueueStep(q) == Wait(q) \/ Look(q) \/ Read(q) \/ Write(q) \/ Quiet(q) \/ Trigger(q)
Landing(q, i) == Land(q, i) /\ UNCHANGED <<at, failed>>

AllDone == \A q \in Queue : at[q].stage = "done"
(* A run ends when all queues are done and every put has landed. *)
Ended == AllDone /\ (\A q \in Queue : flight[q] = <<>>)
Terminated == Ended /\ UNCHANGED vars

Next ==
    \/ \E q \in Queue : QueueStep(q)
    \/ \E r \in Rank : EndLaunch(r)
    \/ \E q \in Queue : \E i \in DOMAIN flight[q] : Landing(q, i)
    \/ Terminated

(***************************************************************************)
(* WF_vars(Next), as in Programs: HasStep is ENABLED <<Next>>_vars         *)
(* (HasStepIsEnabled), and programs have no loops.                         *)
(***************************************************************************)
CanGoOn(q) ==
    LET stage == at[q].stage
    IN /\ stage \notin {"done", "sync"}
       /\ stage = "wait" => Passes(q)
       /\ stage = "quiet" => Quieted(q)

HasStep ==
    \/ \E q \in Queue : CanGoOn(q) \/ flight[q] # <<>>
    \/ \E r \in Rank : HasEnded(r)
Fairness == []<>(~ HasStep) \/ []<><<TRUE>>_vars
HasStepIsEnabled == HasStep <=> ENABLED <<Next>>_vars

Spec == Init /\ [][Next]_vars /\ Fairness

Termination == <>AllDone

(***************************************************************************)
(* Properties.  No task takes a token by its name, so that there is        *)
(* nothing to say of HappensBefore and ExactlyOnce: what is asked of data  *)
(* is that no tile is read before it is written (Checks), nor while it is  *)
(* being written (RaceFree).                                               *)
(***************************************************************************)
Checks == ~ failed

(* No queue is done while what it has put is in flight.  Counters stay as  *)
(* they are: they are zeroed before the next launch.                       *)
Quiescent == \A q \in Queue : at[q].stage = "done" => flight[q] = <<>>

Loads ==
    {<<Here(q).slot, "tile">> : q \in {x \in Queue : at[x].stage = "load"}}
    \cup {<<Here(q).slot, "count">> : q \in {x \in Queue : at[x].stage = "look"}}
(* Atomic adds are in no race with each other. *)
Counters == {<<slot[1], "count">> : slot \in Schedule.counters}
RaceFree == ~ ReadRace(Loads) /\ ~ WriteRace(Counters)
=============================================================================
