"""`pytest -m fuzz`: findings are in the terminal, the JSON report and the JUnit file."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.processes import Said, run_warm

from .judging import SERVERS

pytestmark = [pytest.mark.socket, pytest.mark.slow]

CRASHER = f"""
import os, sys
sys.path.insert(0, {str(SERVERS)!r})
from minimal import Server
class Crasher(Server):
    def thread_read(self, params, reply):
        if not isinstance(params.get("threadId"), str):
            os._exit(9)
        super().thread_read(params, reply)
if "gone" not in sys.argv:
    (Crasher if "crash" in sys.argv else Server)().serve()
"""
WORKERS = pytest.mark.parametrize(
    "workers", [pytest.param([], id="alone"), pytest.param(["-n", "1"], id="worker")]
)


def fuzzed(place: Path, *words: str, how: str = "crash") -> tuple[Said, dict[str, Any], str]:
    """A run of the items, its JSON report, and its JUnit file."""
    (place / "crasher.py").write_text(CRASHER, encoding="utf-8")
    server = shlex.join([sys.executable, str(place / "crasher.py"), how])
    (place / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    said = run_warm(
        *("pytest", "--assert=plain"),
        *("--server-cmd", server, "-m", "fuzz", "-k", "inputs", "--fuzz-conversations", "6"),
        *("--harness-json", "report.json", "--harness-markdown", "report.md"),
        *("--junitxml", "junit.xml", *words),
        cwd=place,
        env=dict(os.environ),
    )
    report = json.loads((place / "report.json").read_text("utf-8"))
    return said, report, (place / "junit.xml").read_text("utf-8")


@WORKERS
def test_a_crash_is_told_everywhere(workers: list[str], place: Path) -> None:
    said, report, junit = fuzzed(place, *workers)
    assert said.status == 1, said.out
    (one,) = report["fuzz"]
    (failure,) = one["failures"]
    assert (report["red"], report["exit"], one["verdict"]) == (True, 1, "RED")
    assert (failure["cause"], failure["occasion"]) == (
        "scenario.crash",
        "thread/read, exit status 9",
    )
    assert (report["scenarios"], report["issues"]) == ([], [])
    (case,) = ElementTree.fromstring(junit).iter("testcase")
    (failed,) = case.iter("failure")
    assert case.get("name") == "fuzz.inputs"
    for text in (said.out, failed.text or ""):
        assert "FAIL scenario.crash (inputs): thread/read, exit status 9" in text
        assert failure["replay"] in text
    page = (place / "report.md").read_text("utf-8")
    assert f"| ❌ `scenario.crash`, generated | `{failure['id']}` |" in page
    assert failure["replay"] in page.splitlines()


def test_a_sound_server_is_no_failure_and_has_a_report(place: Path) -> None:
    said, report, junit = fuzzed(place, how="sound")
    assert said.status == 0, said.out
    assert (report["red"], report["exit"]) == (False, 0)
    assert [one["verdict"] for one in report["fuzz"]] == ["GREEN"]
    assert "<failure" not in junit
    page = (place / "report.md").read_text("utf-8")
    assert page.splitlines()[0].endswith(": GREEN")
    assert "| generated cases | 6 of inputs |" in page


def test_a_server_that_cannot_be_used_is_told_in_one_line_and_red(place: Path) -> None:
    said, report, _ = fuzzed(place, how="gone")
    assert said.status == 1
    (one,) = report["fuzz"]
    (note,) = one["notes"]
    assert note.endswith("; ask harness doctor what to do")
    assert "Traceback" not in said.out
    assert f"NOTE {note}" in said.out
    page = (place / "report.md").read_text("utf-8")
    assert "| ❌ generated cases |  | <code>the server" in page
