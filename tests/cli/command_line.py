"""Runs the installed commands as a user does, and gives what they print."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

ROOT = Path(__file__).parents[2]
COMMANDS = Path(sys.executable).parent
PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed, without the blanks at the ends of lines, and its exit status."""

    status: int
    out: str
    err: str


def call(*words: str, cwd: Path = ROOT) -> Said:
    """Run `harness …` or `agent …` to its end, as in a dumb terminal of 100 columns."""
    program = str(COMMANDS / words[0])
    path = os.pathsep.join([str(COMMANDS), os.environ.get("PATH", "")])
    done = subprocess.run(
        [program, *words[1:]],
        cwd=cwd,
        env={**os.environ, **PLAIN, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    return Said(done.returncode, _trimmed(done.stdout), _trimmed(done.stderr))


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


class PrintedText(SingleFileSnapshotExtension):
    """One `.txt` file per test and parameter."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"
