"""The program of a broken server."""

from __future__ import annotations

import sys

from reference_server import cli
from tests.fuzz.broken_servers.registry import every


def main(name: str, *arguments: str) -> int:
    """Plant the bug and serve; return the exit status."""
    planted = every()[name]
    # Planting imports the whole server, before which the server itself would do this.
    cli._without_plugins()
    planted.plant()
    return cli.main(arguments)


def serve() -> int:
    """Plant the bug of the arguments and serve; return the exit status."""
    return main(*sys.argv[1:])
