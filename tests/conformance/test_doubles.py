"""Our server as each release of Codex, judged by that release's profile.

It may keep the specification where the release does not, which makes known deviations stale; what
it breaks, the release breaks too. `make drift` compares the two in full.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.protocol.dialects.table import dialect_names
from tests.processes import COMMANDS

from .running import harness_run

AREAS = ("turns", "interrupts", "reviews", "steering", "failures", "clients")
STALE = "baseline.stale"


@pytest.mark.runs
@pytest.mark.parametrize("name", dialect_names())
def test_a_double_breaks_nothing_that_its_release_keeps(name: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    server = f"{COMMANDS / 'agent'} app-server --dialect {name}"
    words = ("--target", name, "--json", str(report))
    told = harness_run(*words, *AREAS, server=server, folder=tmp_path)
    results: dict[str, Any] = json.loads(report.read_text("utf-8"))
    verdicts = [one for one in results["rules"] if one["counts"]] + results["scenarios"]
    broken = [one["id"] for one in verdicts if one["verdict"] in ("FAIL", "ERROR")]
    assert broken == [], told.text[-6000:]
    assert {issue["id"] for issue in results["issues"]} <= {STALE}
    passed = [one["id"] for one in results["scenarios"] if one["verdict"] == "PASS"]
    assert len(passed) > 80, told.score
