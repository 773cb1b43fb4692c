"""Check that bundled scenarios miss the bugs.

`python -m tests.fuzz.broken_servers.unseen [NAME]…` plays them on each server, or on some. If a
scenario has come to find the bug of a server, plant another bug.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.broken_servers.registry import every

SERVER = Path(__file__).parent


def main(*names: str) -> int:
    """Play, and print the verdict of each server; 1 if one is not green."""
    seen = 0
    for name in names or every():
        command = f"'{sys.executable}' '{SERVER}' {name} app-server"
        words = [sys.executable, "-m", "harness", "run", "--target", "reference", "-n", "2"]
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run(
                [*words, "--server-cmd", command],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
        seen |= ran.returncode
        told = [one for one in ran.stdout.splitlines() if one.startswith(("verdict", "FAIL"))]
        print(name, *told, *ran.stderr.splitlines()[-3:], sep="\n  ", flush=True)  # noqa: T201
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
