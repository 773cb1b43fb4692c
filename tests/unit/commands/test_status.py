"""The table of the last runs: a target's races are its own, beside its scenarios."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.cli.commands.status import read_targets, status_lines
from harness.client.target.profile import Profile
from harness.errors import UsageError
from harness.faults.base import all_faults
from harness.judge.rules.discovery import client_rules
from harness.judge.verdict import Verdict
from harness.report.json_form import to_plain
from harness.report.results.merge import merge
from harness.report.results.outcome import RaceOutcome, ScenarioOutcome
from harness.report.results.report import Report
from harness.trace.store import load, save
from harness.trace.surface.registry import classify_of
from tests.unit.results.outcomes import BOOK, ONCE, RULES, failed, outcome, passed, report_of

GOOD = Path(__file__).parents[3] / "fixtures" / "traces" / "good"


def stored(folder: Path, **reports: Report) -> Path:
    """A folder in which these runs are recorded."""
    (folder / "reports").mkdir()
    for name, report in reports.items():
        text = json.dumps(to_plain(report))
        (folder / "reports" / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


def raced(*placements: ScenarioOutcome, target: str = "p") -> Report:
    """A run of one race."""
    gravest = Verdict.FAIL if any(one.verdict is Verdict.FAIL for one in placements) else "PASS"
    race = RaceOutcome("a@kill", "a", "/a", "a", "kill", Verdict(gravest))
    race.placements = list(placements)
    profile = Profile(name=target, command=["server"])
    return merge([], [], profile=profile, entries=(), rules=RULES, book=BOOK, races=[race])


def placement(name: str, verdict: Verdict = Verdict.PASS) -> ScenarioOutcome:
    row = failed(ONCE) if verdict is Verdict.FAIL else passed(ONCE)
    return outcome("a", row, race=f"kill@{name}", verdict=verdict)


def test_races_are_a_line_of_their_target_and_no_target_of_their_own(tmp_path: Path) -> None:
    plain = report_of(outcome("a", passed(ONCE)))
    races = raced(placement("item:1:started"), placement("turn:completed"))
    lines = list(status_lines(read_targets(stored(tmp_path, reference=plain, races=races))))
    assert lines[0] == "| rule | level | requirements | scenarios | faults | p |"
    told = [line for line in lines if line.startswith("p")]
    assert len(told) == 2
    assert told[0].startswith("p: ")
    assert told[0].endswith("verdict GREEN")
    assert told[1] == "p, races: 1 PASS; placements 2 PASS; verdict GREEN"


def test_race_that_failed_is_told_with_the_rule_it_breaks(tmp_path: Path) -> None:
    races = raced(placement("turn:started"), placement("delta:1", Verdict.FAIL))
    folder = stored(tmp_path, plain=report_of(outcome("a", passed(ONCE))), races=races)
    told = [line for line in status_lines(read_targets(folder)) if line.startswith("p")]
    assert told[0].endswith("verdict GREEN")
    assert told[1] == (f"p, races: 1 FAIL; placements 1 FAIL, 1 PASS; broken {ONCE}; verdict RED")


def test_races_of_another_target_are_that_target(tmp_path: Path) -> None:
    plain = report_of(outcome("a", passed(ONCE)))
    races = raced(placement("turn:started"), target="other")
    lines = list(status_lines(read_targets(stored(tmp_path, plain=plain, races=races))))
    assert lines[0].endswith("| p | other |")
    assert [line for line in lines if line.startswith("other, races: ")] == [
        "other, races: 1 PASS; placements 1 PASS; verdict GREEN"
    ]
    assert not [line for line in lines if line.startswith("p, races: ")]


@pytest.mark.parametrize(
    ("trace", "rule", "others"),
    [
        ("plain-turn", "turn.completed-once", "exec.turn-ends"),
        ("exec-plain", "exec.turn-ends", "mcp-remove.removes"),
        ("mcp-commands", "mcp-remove.removes", "sdk-run.final-response"),
        ("sdk-results", "sdk-run.final-response", "turn.completes"),
    ],
)
def test_a_trace_of_any_surface_shows_which_faults_its_own_rules_find(
    tmp_path: Path, trace: str, rule: str, others: str
) -> None:
    folder = stored(tmp_path, plain=report_of(outcome("a", passed(ONCE))))
    (folder / "traces" / "p").mkdir(parents=True)
    shutil.copy(GOOD / f"{trace}.jsonl", folder / "traces" / "p")
    cells = {
        line.split(" | ")[0]: line.split(" | ")[-1] for line in status_lines(read_targets(folder))
    }
    mine, theirs = (
        [one.id for one in all_faults().values() if one.rule == name] for name in (rule, others)
    )
    assert f"{len(mine)}/{len(mine)} killed" in cells[f"| {rule}"]
    assert f"0/{len(theirs)} killed, {len(theirs)} not applied" in cells[f"| {others}"]


def test_two_commands_of_one_profile_are_told_apart_and_the_words_are_explained(
    tmp_path: Path,
) -> None:
    one, other = (report_of(outcome("a", passed(ONCE))) for _ in range(2))
    one.command, other.command = "python one.py", "python other.py"
    lines = list(status_lines(read_targets(stored(tmp_path, one=one, other=other))))
    assert lines[0].endswith("| p (python one.py) | p (python other.py) |")
    assert any(
        line.startswith(f"duties of clients with a killer: {len(client_rules())} of ")
        for line in lines
    )
    for word in ("faults: ", "killed: "):
        assert [line for line in lines if line.startswith(word)]


def test_without_a_run_it_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--json \S+/reports/NAME.json records one"):
        list(status_lines(read_targets(tmp_path)))


def test_report_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "half.json").write_text('{"version": 1')
    with pytest.raises(UsageError, match=r"half\.json: no report that can be read .*run it again"):
        list(status_lines(read_targets(tmp_path)))


def test_a_trace_with_faults_of_its_scenario_proves_nothing(tmp_path: Path) -> None:
    """The good trace alone has faults that are noticed; marked as made wrong it has none."""
    told: list[str] = []
    for faulty in (False, True):
        folder = tmp_path / str(faulty)
        folder.mkdir()
        stored(folder, p=report_of(outcome("a", passed(ONCE))))
        trace = load(GOOD / "plain-turn.jsonl", classify_of=classify_of)
        trace.header.faults = faulty
        save(trace, folder / "traces" / "p" / "a.jsonl")
        told.append(
            next(line for line in status_lines(read_targets(folder)) if line.startswith("p: "))
        )
    assert "KILLED" in told[0]
    assert "KILLED" not in told[1]
