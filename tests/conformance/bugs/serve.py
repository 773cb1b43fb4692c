"""The reference server with one bug: `python serve.py NAME app-server`.

Here: the program. Not here: bugs, and how they are planted. It is started by its path, since a
server is started in a folder of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from reference_server import cli
from tests.conformance.bugs.registry import every


def main(name: str, *arguments: str) -> int:
    """Plant the bug and serve."""
    # As the server itself does before anything heavy is imported; to plant a bug imports it.
    cli._without_plugins()
    every()[name].plant()
    return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
