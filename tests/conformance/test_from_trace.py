"""A scenario that is made of the trace of a run plays green where it came from.

A sample of the bundled scenarios is played, a scenario is made of each trace with nothing but what
the trace says, and that one is played.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.commands.from_trace import from_trace, written
from tests.processes import BOUND, COMMANDS

pytestmark = [pytest.mark.slow, pytest.mark.socket]

SAMPLE = (
    "turns/plain-turn",
    "approvals/accept-command",
    "approvals/decline-file-change",
    "approvals/second-of-two",
    "files/add",
    "interrupts/twice",
    "interrupts/during-an-approval",
    "plans/changed-twice",
    "steering/while-it-speaks",
    "threads/fork",
    "threads/list-pages",
    "tools/run-command-fails",
    "tools/view-image",
    "tools/web-search",
)


def run(folder: Path, *scenarios: str) -> None:
    """Play scenarios on the reference server; all must be green."""
    (folder / "tmp").mkdir(exist_ok=True)
    # The folder must not look like one in the system's temporary folder: traces go elsewhere then.
    places = {"TMPDIR": str(folder / "tmp"), "HOME": str(folder), "PATH": os.environ["PATH"]}
    said = subprocess.run(
        [COMMANDS / "harness", "run", "--target", "reference", "-n", "2", *scenarios],
        capture_output=True,
        encoding="utf-8",
        timeout=2 * BOUND,
        env={**places, "PATH": f"{COMMANDS}{os.pathsep}{places['PATH']}"},
        cwd=folder,
    )
    assert said.returncode == 0, said.stdout[-6000:]


def test_scenarios_made_of_traces_are_green_where_they_came_from(tmp_path: Path) -> None:
    run(tmp_path, *SAMPLE)
    traces = tmp_path / ".harness" / "traces" / "reference"
    for name in SAMPLE:
        made = from_trace(traces / f"{name}.jsonl")
        written(made, tmp_path / "again" / f"{name}.scenario.yaml")
    run(tmp_path, "again")
