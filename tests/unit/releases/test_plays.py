"""Stored results of plays: which are used again, with runs that are made up."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from harness.report.json_form import to_plain
from harness.report.results.outcome import Finding
from harness.report.results.report import Report
from harness.report.results.rerun_command import Programs
from harness.search.releases import plays
from harness.search.releases.plays import Play, Plays
from harness.search.releases.target import Release
from tests.unit.results.outcomes import ONCE, outcome, passed, report_of

WHOLE = report_of(outcome("turns/one", passed(ONCE)))
NOT_STARTED = report_of(loose=(Finding("setup.not-started", "it ended"),))
RELEASE = Release("any", "1", Programs("spec", "/bin/true"))
SCENARIOS = ("turns/plain-turn",)


@dataclass(slots=True)
class MadeUpPlays(Plays):
    """Plays without processes: each "run" writes this report, None for none."""

    report: Report | None = field(default_factory=lambda: WHOLE)
    commands: list[list[str]] = field(default_factory=list[list[str]])

    def run_process(self, words: Sequence[str], output: int) -> None:
        self.commands.append(list(words))
        os.write(output, b"NOT CONFINED: no bwrap\nERROR: the disk is full\n")
        if self.report is not None:
            path = Path(words[words.index("--json") + 1])
            path.write_text(json.dumps(to_plain(self.report)))

    def judge(self, release: Release = RELEASE, number: int = 1) -> Play:
        return self.play(release, SCENARIOS, number)


def test_a_complete_run_is_used_again_with_its_note(tmp_path: Path) -> None:
    made_up = MadeUpPlays(tmp_path, ("--lanes", "2"))
    first, second = made_up.judge(), made_up.judge()
    assert (first.reused, second.reused) == (False, True)
    assert first.report == second.report == WHOLE
    assert first.note == second.note == "NOT CONFINED: no bwrap"
    (command,) = made_up.commands
    assert command[command.index("run") + 1 :] == [
        *SCENARIOS, "--lanes", "2", "--target", "spec", "--server-cmd", "/bin/true",
        "--dir", str(first.folder), "--json", str(first.folder / "report.json"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "report",
    [replace(WHOLE, interrupted="SIGINT"), replace(WHOLE, unplayed=["turns/one"]), NOT_STARTED],
)
def test_a_run_that_says_less_is_played_again(report: Report, tmp_path: Path) -> None:
    made_up = MadeUpPlays(tmp_path, report=report)
    assert [made_up.judge().reused for _ in range(2)] == [False, False]


def test_another_question_is_played_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MadeUpPlays(tmp_path).judge()
    other = replace(RELEASE, version="2")
    assert not MadeUpPlays(tmp_path).judge(other).reused
    assert not MadeUpPlays(tmp_path).judge(number=2).reused
    assert not MadeUpPlays(tmp_path, ("--repeat", "2")).judge().reused
    assert not MadeUpPlays(tmp_path, fresh=True).judge().reused
    assert MadeUpPlays(tmp_path).judge().reused
    monkeypatch.setattr(plays, "suite_hash", lambda _: "other scenarios or rules")
    assert not MadeUpPlays(tmp_path).judge().reused


def test_the_hash_of_the_suite_follows_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "own.scenario.yaml"
    file.write_text("title: one")
    first = plays.suite_hash.__wrapped__(("own.scenario.yaml",))
    assert plays.suite_hash.__wrapped__(("own.scenario.yaml",)) == first
    file.write_text("title: two")
    assert plays.suite_hash.__wrapped__(("own.scenario.yaml",)) != first
    assert plays.suite_hash(("turns/plain-turn",)) != plays.suite_hash(())


def test_a_target_that_cannot_be_judged_says_why(tmp_path: Path) -> None:
    assert MadeUpPlays(tmp_path, report=NOT_STARTED).judge().problem == "it ended"
    problem = MadeUpPlays(tmp_path, report=None).judge().problem
    assert problem.startswith("the disk is full (harness run; all: ")


def test_nothing_is_played_after_a_signal(tmp_path: Path) -> None:
    stopped = Plays(tmp_path)
    stopped.stop(signal.SIGINT)
    assert stopped.play(RELEASE, SCENARIOS).problem == "interrupted"
