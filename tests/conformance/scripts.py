"""Scripts of `fixtures/` as forks of a process that has imported what they import.

Starting Python and importing takes longer than what they do. Each fork executes its script as
`python SCRIPT …` does.
"""

from __future__ import annotations

import os
import runpy
import sys
from contextlib import AbstractContextManager
from pathlib import Path

# What the scripts import.
import agent_sdk as _agent_sdk  # noqa: F401  # pyright: ignore[reportUnusedImport]
from tests.conformance.bugs.forking import forked


def forked_script(script: Path) -> AbstractContextManager[None]:
    """Make `subprocess.Popen` fork instead of starting `python SCRIPT …` or `agent …`."""
    return forked(str(script), f"{__name__}:main")


def main() -> None:
    """Execute the script that the command line names."""
    sys.path.insert(0, os.path.dirname(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
