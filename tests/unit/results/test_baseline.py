"""Known findings: matching entries, stale ones, and ones that could not be checked."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from harness.client.target.profile import Deviation
from harness.judge.verdict import Row, Verdict
from harness.report.results.baseline import load_baseline, mark_known_finding, mark_known_row
from harness.report.results.outcome import Finding, ScenarioOutcome
from tests.unit.results.outcomes import LAST, ONCE, entry, failed, outcome, passed, report_of


def after(row: Row, *entries: Deviation, scenario: str = "turns/a") -> Verdict:
    return mark_known_row(row, scenario, entries).verdict


def test_violation_that_an_entry_names_is_known_and_nothing_else() -> None:
    assert after(failed(ONCE), entry()) is Verdict.KNOWN
    assert after(failed(LAST), entry()) is Verdict.FAIL
    assert after(passed(ONCE), entry()) is Verdict.PASS
    error = Row(ONCE, "turn u", Verdict.ERROR, failed(ONCE).level)
    assert after(error, entry()) is Verdict.ERROR


def test_entry_is_for_the_scenarios_of_its_glob() -> None:
    one = entry(scenario="failures/*")
    assert after(failed(ONCE), one, scenario="failures/x") is Verdict.KNOWN
    assert after(failed(ONCE), one, scenario="turns/x") is Verdict.FAIL


def test_pinned_entry_knows_only_its_own_violation() -> None:
    pinned = entry(pinned="two of them")
    assert after(failed(ONCE, actual="it was two of them"), pinned) is Verdict.KNOWN
    assert after(failed(ONCE, actual="three of them"), pinned) is Verdict.FAIL
    assert after(failed(ONCE, actual="x", expected="two of them"), pinned) is Verdict.KNOWN


def test_finding_gets_the_reason_of_its_entry() -> None:
    crash = Finding("scenario.crash", "it ended by itself")
    assert mark_known_finding(crash, "a", [entry("scenario.crash", reason="why")]).known == "why"
    assert mark_known_finding(crash, "a", [entry("scenario.timeout")]).known == ""
    assert not mark_known_finding(crash, "a", [entry("scenario.crash")]).counts


def stale(
    *outcomes: ScenarioOutcome,
    bundled: Collection[str] = (),
    own: Collection[str] = (),
    **more: Any,
) -> list[str]:
    report = report_of(*outcomes, entries=(entry(**more),), bundled=bundled, own=own)
    ids = [issue.id for issue in report.issues]
    return [*ids, *(f"unchecked {name}" for name in report.unchecked)]


STALE, SEEN = ["baseline.stale"], list[str]()
UNCHECKED = [f"unchecked {ONCE} (scenario *)"]


def test_entry_whose_rule_passes_wherever_it_ran_is_stale() -> None:
    assert stale(outcome("a", passed(ONCE)), outcome("b")) == STALE
    assert report_of(outcome("a", passed(ONCE)), entries=(entry(),)).red


def test_entry_that_is_still_seen_is_not_stale() -> None:
    known = mark_known_row(failed(ONCE), "b", [entry()])
    assert stale(outcome("a", passed(ONCE)), outcome("b", known)) == SEEN


def test_entry_about_more_of_the_suite_than_was_played_is_unchecked() -> None:
    one, other = outcome("a", passed(ONCE)), outcome("b", passed(ONCE))
    assert stale(one, bundled=["a", "b"]) == UNCHECKED
    assert stale(one, other, bundled=["a", "b"]) == STALE
    # A run of somebody's own scenarios says nothing of the suite.
    assert stale(one, bundled=["c"]) == UNCHECKED


def test_entry_about_more_of_ones_own_scenarios_than_were_played_is_unchecked() -> None:
    one, other = outcome("my/a", passed(ONCE)), outcome("my/b", passed(ONCE))
    mine = ["my/a", "my/b"]
    assert stale(one, own=mine, scenario="my/*") == [f"unchecked {ONCE} (scenario my/*)"]
    assert stale(one, own=mine) == UNCHECKED
    assert stale(one, other, own=mine, scenario="my/*") == STALE
    assert stale(one, own=mine, scenario="my/a") == STALE


def test_entry_of_a_built_in_profile_is_stale_by_a_run_of_the_suite_only() -> None:
    mine, theirs = outcome("mine", passed(ONCE)), outcome("a", passed(ONCE))
    partly = report_of(mine, shipped=(entry(),), bundled=["a"])
    assert (partly.issues, partly.unchecked) == ([], [f"{ONCE} (scenario *)"])
    whole = report_of(mine, theirs, shipped=(entry(),), bundled=["a"])
    assert [issue.id for issue in whole.issues] == STALE


def test_flaky_entry_is_never_stale() -> None:
    assert stale(outcome("a", passed(ONCE)), flaky=True) == SEEN


def test_entry_without_a_witness_is_unchecked() -> None:
    assert stale(outcome("a", passed(LAST))) == UNCHECKED


def test_entry_is_unchecked_while_a_scenario_of_it_did_not_run_to_the_end() -> None:
    assert stale(outcome("a", passed(ONCE)), outcome("b", played=False)) == UNCHECKED


def test_entry_is_unchecked_when_none_of_its_scenarios_ran() -> None:
    assert stale(outcome("a", passed(ONCE)), scenario="b*") == [f"unchecked {ONCE} (scenario b*)"]


def test_only_the_scenarios_of_the_entry_matter() -> None:
    outcomes = (outcome("a", passed(ONCE)), outcome("b", failed(ONCE), played=False))
    assert stale(*outcomes, scenario="a") == STALE


def test_pinned_entry_is_stale_when_another_violation_is_all_there_is() -> None:
    other = outcome("a", failed(ONCE, actual="three of them"))
    assert stale(other, pinned="two of them") == STALE


def message(*outcomes: ScenarioOutcome, **more: Any) -> str:
    (issue,) = report_of(*outcomes, entries=(entry(**more),)).issues
    return issue.message


def test_stale_entry_whose_rule_is_still_broken_says_what_was_found_instead_of_its_pin() -> None:
    said = message(outcome("a", failed(ONCE, actual="three of them")), pinned="two of them")
    assert "the pinned text 'two of them' matches no finding" in said
    assert "three of them; correct pinned, or remove the entry" in said
    assert "passed" not in said


def test_stale_entry_about_a_scenarios_own_finding_speaks_of_no_rule() -> None:
    assert "the rule passed wherever it ran" in message(outcome("a", passed(ONCE)))
    said = message(outcome("a"), rule="scenario.crash")
    assert "it was not found in any of its scenarios; remove the entry" in said
    assert "rule" not in said
    ended = outcome("a", findings=[Finding("scenario.crash", "it ended")])
    assert "'it began' matches no finding" in message(
        ended, rule="scenario.crash", pinned="it began"
    )


def test_entry_about_a_scenario_that_now_passes_is_stale() -> None:
    assert stale(outcome("a"), rule="scenario.crash") == STALE
    crash = Finding("scenario.crash", "it ended")
    assert stale(outcome("a", findings=[crash]), rule="scenario.crash") == SEEN


def test_file_holds_entries_as_a_profile_does(tmp_path: Path) -> None:
    path = tmp_path / "baseline.toml"
    path.write_text(
        f'[[deviations]]\nrule = "{ONCE}"\nreason = "r"\nscenario = "a*"\nflaky = true\n'
    )
    found = load_baseline(path)
    assert found.entries == (Deviation(rule=ONCE, reason="r", scenario="a*", flaky=True),)
    assert str(found.place(0, "scenario")) == f"{path}:4:12"
