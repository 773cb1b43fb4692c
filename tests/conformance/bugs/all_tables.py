"""The program of a server with one bug, for a process that forks: it has imported all bugs."""

from __future__ import annotations

import sys

from tests.conformance.bugs.registry import every
from tests.conformance.bugs.serving import main

every()


def serve() -> int:
    """Plant the bug of the arguments and serve; return the exit status."""
    return main(*sys.argv[1:])
