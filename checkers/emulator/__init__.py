"""Protocols run on real bytes: byte arrays as memory, and a fabric that is as bad as it may be.

What it does is walked through the model step by step, and what the model finds is made to happen.
"""
