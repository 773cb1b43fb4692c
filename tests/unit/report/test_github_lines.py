"""Annotations as the runner of GitHub Actions reads them back."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.judge.verdict import Level, Verdict
from harness.report.github import annotations, command, pause_command, resume_command
from harness.report.results.report import Issue
from tests.actions_runner import Command, commands
from tests.unit.results.outcomes import Finding, failed, outcome, report_of


@pytest.mark.parametrize("text", ["a\r\nb", "100%", "%0A", "%250A", "a:b,c", "::x::", "##[error]"])
def test_every_text_comes_through_as_it_is(text: str) -> None:
    line = command("error", text, {"file": text, "line": "3", "title": ""})
    assert commands(line.splitlines()) == [Command("error", text, {"file": text, "line": "3"})]


def test_text_between_the_two_lines_is_not_a_command() -> None:
    lines = [
        pause_command("abc"),
        "::error::x",
        "##[error]x",
        "::abc",
        resume_command("abc"),
        "::warning::y",
    ]
    assert commands(lines) == [Command("warning", "y")]


def test_each_failure_is_one_error_and_each_told_finding_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "one.scenario.yaml"
    path.touch()
    bad = outcome("one", failed("turn.completed-once"), verdict=Verdict.FAIL, reason="why")
    bad.path = str(path)
    report = report_of(bad, loose=(Finding("unsteady", "now and then", level=Level.INFO),))
    stale = Issue("baseline.stale", "gone", Level.MUST, where=f"{tmp_path}/known.toml:4:1")
    (tmp_path / "known.toml").touch()
    report.issues.append(stale)
    found = commands(annotations(report, tmp_path))
    assert [(one.name, one.properties.get("title")) for one in found] == [
        ("error", "baseline.stale"),
        ("error", "turn.completed-once (MUST)"),
        ("error", "scenario one"),
        ("warning", "unsteady"),
    ]
    assert found[0].properties | {"title": ""} == {"file": "known.toml", "line": "4", "title": ""}
    assert found[1].properties["file"] == found[2].properties["file"] == "one.scenario.yaml"


def test_a_file_outside_of_the_checkout_is_not_named(tmp_path: Path) -> None:
    report = report_of(outcome("one", failed("turn.completed-once")))
    (one,) = commands(annotations(report, tmp_path))
    assert "file" not in one.properties


def test_of_more_than_ten_the_last_says_how_many_more(tmp_path: Path) -> None:
    report = report_of(*(outcome(f"s{n}", verdict=Verdict.FAIL, reason="r") for n in range(25)))
    found = commands(annotations(report, tmp_path))
    assert len(found) == 10
    assert found[-1].data == "16 more; the summary of the job lists them"
