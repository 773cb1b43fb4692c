"""The reference server judged on a machine without bubblewrap: green, and it says what is missing.

Bubblewrap is hidden from a run of the harness, as `make bare` does it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.scenario.bundled import bundled_folder
from tests.processes import BOUND

from .judging import ROOT, bundled

HIDING = str(ROOT / "tools" / "without_bubblewrap.sh")
_TRIED = subprocess.run([HIDING, "true"], capture_output=True, text=True)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.socket,
    pytest.mark.skipif(_TRIED.returncode != 0, reason=_TRIED.stderr.strip() or "it was not hidden"),
]
NOT_FOUND = "bwrap was not found; install the package bubblewrap"
NEEDS_IT = ("approvals/never-in-the-sandbox", "approvals/on-failure-accept")
DOES_NOT = (
    "approvals/on-failure-accept-file-change",
    "approvals/on-request-accept",
    "approvals/reject-command",
    "commands/exit-code",
    "turns/sandbox-of-the-turn",
)
CONFINED = """
title: a command under a policy that confines
{needs}
races: [interrupt]
settings: {{approvalPolicy: never, sandbox: workspace-write}}
model:
  - reply: [{{run: "echo a > made.txt"}}]
  - reply: [{{message: "done"}}]
client:
  - start_thread: {{as: t}}
  - start_turn: {{thread: t, text: "go on", as: u}}
  - wait: {{turn: u, status: completed}}
expect:
  workspace: {{made.txt: "a\\n"}}
"""


@dataclass
class Told:
    status: int
    text: str
    report: dict[str, Any]

    def lines(self, part: str) -> list[str]:
        return [line for line in self.text.splitlines() if part in line]


def run(place: Path, *words: str | Path, path: Sequence[Path] = ()) -> Told:
    """`harness run --target reference` where no bubblewrap is; `path` comes to the PATH."""
    report = place / "report.json"
    first = ["env", f"PATH={':'.join(map(str, path))}:/usr/bin:/bin"] if path else []
    line = [
        HIDING,
        *first,
        sys.executable,
        "-m",
        "harness.cli.main",
        "run",
        "--target",
        "reference",
    ]
    line += ["--json", str(report), *map(str, words)]
    ran = subprocess.run(line, cwd=place, capture_output=True, text=True, timeout=1.5 * BOUND)
    plain = json.loads(report.read_text()) if report.exists() else {}
    return Told(ran.returncode, ran.stdout + ran.stderr, plain)


def paths(*names: str) -> list[Path]:
    assert {one.id for one in bundled(*names)} == set(names)
    return [bundled_folder() / f"{name}.scenario.yaml" for name in names]


def mine(place: Path, needs: str = "") -> Path:
    (folder := place / "mine").mkdir()
    (folder / "confined.scenario.yaml").write_text(CONFINED.format(needs=needs))
    return folder


@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.runs)])
def test_without_a_sandbox_its_scenarios_are_not_judged_and_the_rest_passes(
    place: Path, workers: str
) -> None:
    told = run(place, "-n", workers, *paths(*NEEDS_IT, *DOES_NOT))
    assert told.status == 0, told.text
    assert told.lines("bwrap") == [
        f"not judged on this machine: 2 scenario(s), 0 rule(s) that need sandbox: {NOT_FOUND}"
    ]
    verdicts = {one["id"]: (one["verdict"], one["reason"]) for one in told.report["scenarios"]}
    reason = f"this machine cannot do sandbox: {NOT_FOUND}"
    assert verdicts == {
        **dict.fromkeys(NEEDS_IT, ("NOT_APPLICABLE", reason)),
        **dict.fromkeys(DOES_NOT, ("PASS", "")),
    }
    [withheld] = told.report["withheld"]
    assert (withheld["program"], withheld["scenarios"]) == ("bwrap", list(NEEDS_IT))


@pytest.mark.parametrize("require", ["sandbox", pytest.param("all", marks=pytest.mark.runs)])
def test_required_it_is_an_error_that_names_the_program(place: Path, require: str) -> None:
    told = run(place, "--require", require, *paths("turns/plain-turn"))
    assert told.status == 2
    assert told.lines(NOT_FOUND)


def test_the_doctor_says_it_before_anything_is_judged(place: Path) -> None:
    line = [HIDING, sys.executable, "-m", "harness.cli.main", "doctor", "--target", "reference"]
    told = subprocess.run(line, cwd=place, capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, told.stdout
    assert (
        "--   what needs sandbox is not judged on this machine: bwrap was not found\n"
        "     -> install the package bubblewrap\n"
    ) in told.stdout


@pytest.mark.runs
def test_a_bubblewrap_that_does_not_work_is_as_good_as_none(place: Path) -> None:
    (folder := place / "bin").mkdir()
    (folder / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions' >&2\nexit 1\n")
    (folder / "bwrap").chmod(0o755)
    told = run(place, *paths(*NEEDS_IT, "turns/plain-turn"), path=[folder])
    assert told.status == 0, told.text
    (line,) = told.lines("bwrap")
    assert line.endswith(
        f"{folder / 'bwrap'} does not work here (bwrap: No permissions); "
        "install the package bubblewrap, or allow user namespaces"
    )


@pytest.mark.runs
def test_a_scenario_that_runs_a_confined_command_fails_and_says_why(place: Path) -> None:
    told = run(place, mine(place))
    assert told.status == 1
    (line,) = told.lines("FAIL scenario")
    assert 'made.txt is absent; expected "a\\n" (this machine cannot do sandbox: ' in line
    assert NOT_FOUND in line
    assert "or write `needs: [sandbox]`" in line


@pytest.mark.runs
def test_one_that_says_what_it_needs_is_not_played_and_neither_are_its_races(place: Path) -> None:
    folder = mine(place, "needs: [sandbox]")
    told = run(place, folder, "--race", "all")
    assert told.status == 0, told.text
    assert told.lines("1 race(s), 0 rule(s) that need sandbox: bwrap was not found")
    assert [one["verdict"] for one in told.report["races"]] == ["NOT_APPLICABLE"]
