"""Runner of the installed commands with plain output of 100 columns."""

import os
from pathlib import Path
from typing import Any

from syrupy.extensions.amber import AmberSnapshotExtension
from syrupy.types import SerializableData

from tests.processes import COMMANDS, ROOT, Said, run, run_warm

PATH = os.pathsep.join([str(COMMANDS), os.environ.get("PATH", "")])
PLAIN = {
    "COLUMNS": "100",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PYTHONIOENCODING": "utf-8",
    "PATH": PATH,
}


def call(*words: str, cwd: Path = ROOT) -> Said:
    """Run a command to its end; return status and output without trailing blanks.

    `harness …` runs in a fork, and so does `pytest …`, which rewrites no assertions then.
    """
    env = {**os.environ, **PLAIN}
    if words[0] == "harness":
        said = run_warm("harness", *words[1:], cwd=cwd, env=env)
    elif words[0] == "pytest":
        said = run_warm("pytest", "--assert=plain", *words[1:], cwd=cwd, env=env)
    else:
        said = run([COMMANDS / words[0], *words[1:]], cwd=cwd, env=env)
    return Said(said.status, _trimmed(said.out), _trimmed(said.err))


def pasted(line: str, folder: Path) -> Said:
    """Run a line in a shell, as a user pastes it; return status and output."""
    return run(["/bin/sh", "-c", line], cwd=folder, env={**os.environ, **PLAIN})


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


class PrintedText(AmberSnapshotExtension):
    """Snapshot extension that stores text unchanged, in one file per test module."""

    def serialize(self, data: SerializableData, **kwargs: Any) -> str:
        """Return the text unchanged."""
        return str(data)
