"""A check that no bundled scenario finds the bugs.

`python -m tests.fuzz.broken_servers.unseen [NAME]…` plays all bundled scenarios on these servers,
or on all. If a new scenario finds a bug, plant another bug instead.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.broken_servers.registry import every

SERVER = Path(__file__).parent


def main(*names: str) -> int:
    """Play the scenarios and print each server's verdict; return non-zero if any run fails."""
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
