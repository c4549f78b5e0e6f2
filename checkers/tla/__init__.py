"""The TLA+ modules of ``specs/tla`` and the tools that check them, TLC and Apalache.

The modules state each protocol a second time, by hand. This package chooses their constants for
an instance, runs a tool on them, and turns what it says into verdicts and traces of ours.
"""
