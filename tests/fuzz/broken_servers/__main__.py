"""A broken server: `python tests/fuzz/broken_servers NAME app-server`.

Start it by its path, since a server's working directory is not the project's.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from reference_server import cli  # noqa: E402
from tests.fuzz.broken_servers.registry import every  # noqa: E402


def main(name: str, *arguments: str) -> int:
    """Plant the bug and serve; return the exit status."""
    planted = every()[name]
    # Planting imports the whole server, before which the server itself would do this.
    cli._without_plugins()
    planted.plant()
    return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
