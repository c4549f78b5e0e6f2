"""``python -m syncproof`` is ``check-protocol``."""

from syncproof.cli import main

main()
