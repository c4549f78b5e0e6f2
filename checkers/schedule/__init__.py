"""Checks of a static schedule by graph: one run, vector clocks over queues, and what they say.

`program` unrolls a schedule into nodes, `execution` runs it once, `clocks` finds what precedes what
in every run; `conflicts`, `counters`, `resets`, `hangs` and `implied` ask; `cost` simulates.
Why this is exact: docs/taskflow.md.
"""
