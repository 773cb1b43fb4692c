"""The program of a server with one bug."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from reference_server import cli
from tests.conformance.bugs.registry import find

SERVERS = Path(__file__).parents[3] / "fixtures" / "servers"


def main(name: str, *arguments: str) -> int:
    """Plant the bug and serve; return the exit status."""
    planted = find(name)
    if planted.server == "keeper":
        sys.path.insert(0, str(SERVERS))
        planted.plant()
        importlib.import_module("keeper").main(*arguments)
        return 0
    # Planting imports the whole server, before which the server itself would do this.
    cli._without_plugins()
    planted.plant()
    return cli.main(arguments)
