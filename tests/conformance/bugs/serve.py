"""A server with one bug: `python serve.py NAME app-server`, or an address for one that listens.

Here: the program. Not here: bugs, and how they are planted. It is started by its path, since a
server is started in a folder of its own.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "fixtures" / "servers")]

from reference_server import cli  # noqa: E402
from tests.conformance.bugs.registry import find  # noqa: E402


def main(name: str, *arguments: str) -> int:
    """Plant the bug and serve."""
    planted = find(name)
    if planted.server == "keeper":
        planted.plant()
        importlib.import_module("keeper").main(*arguments)
        return 0
    # As the server itself does before anything heavy is imported; to plant a bug imports it.
    cli._without_plugins()
    planted.plant()
    return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
