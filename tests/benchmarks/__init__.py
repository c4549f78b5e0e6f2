"""This project, SPIN and TLC on the same systems in one run: ``python -m tests.benchmarks``."""
