"""Differences between the verdicts of two runs, and scenarios that only one of them played."""

from __future__ import annotations

from typing import Any

import pytest

from harness.judge.verdict import Level, Verdict
from harness.report.compare.comparison import compare
from harness.report.compare.text import text_lines
from harness.report.compare.values import Comparison, Kind, TracePlace
from harness.report.results.outcome import Finding
from tests.unit.compare.recorded_runs import SCENARIO, played, row, run
from tests.unit.results.outcomes import ONCE, entry, outcome

PASS, FAIL = row(Verdict.PASS), row(Verdict.FAIL, expected="one", actual="two")


def compared(first: list[Any], second: list[Any], **more: Any) -> Comparison:
    return compare(run("old", *first, **more), run("new", *second, **more))


def kinds(found: Comparison) -> list[Kind]:
    return [one.kind for one in found.changes]


def test_two_runs_that_went_alike_differ_in_nothing() -> None:
    found = compared([played(SCENARIO, PASS)], [played(SCENARIO, PASS)])
    assert (found.changes, found.unsteady, found.remarks, found.worse) == ([], [], [], False)
    assert found.common == 1


def test_a_rule_that_is_broken_now_has_regressed_and_both_traces_are_named() -> None:
    found = compared([played(SCENARIO, PASS)], [played(SCENARIO, FAIL)])
    [change] = found.changes
    assert change.subject.startswith(f"{ONCE}: ")
    assert (change.kind, change.before, change.after) == (Kind.REGRESSED, "PASS", "FAIL")
    assert (change.shown_before, change.shown_after) == (
        TracePlace("/turns/one.jsonl"),
        TracePlace("/turns/one.jsonl", 3),
    )
    assert "expected one; actual two" in change.note
    assert found.worse


def test_a_rule_that_is_not_broken_any_more_is_mended_and_does_not_fail_the_comparison() -> None:
    found = compared([played(SCENARIO, FAIL)], [played(SCENARIO, PASS)])
    assert kinds(found) == [Kind.MENDED]
    assert not found.worse


@pytest.mark.parametrize(
    ("level", "counts"), [(Level.MUST, True), (Level.SHOULD, True), (Level.INFO, False)]
)
def test_info_findings_never_fail_the_comparison(level: Level, counts: bool) -> None:
    names = (SCENARIO, "turns/two", "turns/three")
    broken = [played(name, row(Verdict.FAIL, level=level, subject=name)) for name in names]
    kept = [played(name, row(Verdict.PASS, subject=name)) for name in names]
    found = compared(kept, broken)
    assert (kinds(found), found.worse) == ([Kind.REGRESSED], counts)


def test_a_few_info_findings_of_one_release_may_be_chance() -> None:
    info = played(SCENARIO, row(Verdict.FAIL, level=Level.INFO))
    flaky = played("turns/two", row(Verdict.KNOWN, subject="turn two"))
    kept = played("turns/two", row(Verdict.PASS, subject="turn two"))
    passed = played(SCENARIO, PASS)
    known = (entry(flaky=True),)
    for first, second in (([info, kept], [passed, kept]), ([info, kept], [passed, flaky])):
        for release, changes in (("agent/1", 0), ("agent/2", 1)):
            before, after = run("old", *first, entries=known), run("new", *second, entries=known)
            before.report.server, after.report.server = "agent/1", release
            found = compare(before, after)
            assert (len(found.changes), len(found.unsteady)) == (changes, 1 - changes)


def test_a_graver_level_is_a_regression_though_both_are_broken() -> None:
    lighter = row(Verdict.FAIL, level=Level.SHOULD)
    found = compared([played(SCENARIO, lighter)], [played(SCENARIO, FAIL)])
    assert [(one.kind, one.before, one.after) for one in found.changes] == [
        (Kind.REGRESSED, "FAIL (SHOULD)", "FAIL")
    ]


def test_a_changed_level_says_why() -> None:
    lighter = row(Verdict.FAIL, level=Level.INFO, subject="turn a", actual="1", clauses=("a.b",))
    graver = row(Verdict.FAIL, level=Level.SHOULD, subject="turn c", actual="2", clauses=("c.d",))
    found = compared([played(SCENARIO, lighter)], [played(SCENARIO, lighter, graver)])
    [change] = found.changes
    assert change.note.startswith("before, INFO of a.b: turn a: expected ")
    assert "; after, SHOULD of c.d: turn c: expected " in change.note
    found = compared(
        [played(SCENARIO, row(Verdict.FAIL, level=Level.INFO, expected="one", actual="two"))],
        [played(SCENARIO, FAIL)],
    )
    assert found.changes[0].note.startswith("the same finding is judged as MUST now: ")


def test_known_deviations_come_after_all_that_counts() -> None:
    first = [played(SCENARIO, PASS), played("turns/two", verdict=Verdict.PASS)]
    second = [
        played(SCENARIO, row(Verdict.KNOWN)),
        played("turns/two", verdict=Verdict.FAIL, reason="broken"),
    ]
    found = compared(first, second)
    assert [(change.known, change.counts) for change in found.changes] == [
        (False, True),
        (True, True),
    ]
    lines = list(text_lines(found))
    place = lines.index("regressed, of known deviations (1)")
    assert lines.index("regressed (1)") < place


@pytest.mark.parametrize("worker", ["main", "gw0", "main-2", "gw1-3"])
def test_a_note_holds_nothing_of_one_run_alone(worker: str) -> None:
    said = f'turn_17 in "/home/me/p/.harness/run/12-{worker}/work3/a.txt"'
    broken = row(Verdict.FAIL, expected="one", actual=said)
    [change] = compared([played(SCENARIO, PASS)], [played(SCENARIO, broken)]).changes
    assert change.note.endswith('expected one; actual … in "…/a.txt"')


def test_scenarios_of_one_run_alone_are_left_out_and_named() -> None:
    found = compared(
        [played(SCENARIO, PASS), played("turns/old", PASS)],
        [played(SCENARIO, PASS), played("turns/new", FAIL)],
    )
    assert found.changes == []
    assert (found.only_before, found.only_after) == (["turns/old"], ["turns/new"])


def test_a_rule_that_judged_only_where_the_other_run_did_not_play_is_left_out() -> None:
    found = compared([played(SCENARIO), played("turns/old", PASS)], [played(SCENARIO)])
    assert found.changes == []


def test_a_finding_that_another_scenario_proves_too_is_no_less_there() -> None:
    # The report has one proof of a subject, here from the scenario that only the new run played.
    found = compared([played(SCENARIO, FAIL)], [played("turns/new", FAIL), played(SCENARIO, FAIL)])
    assert (found.changes, found.only_after) == ([], ["turns/new"])


def test_a_rule_that_judges_nothing_any_more_in_the_same_scenarios_is_told() -> None:
    found = compared([played(SCENARIO, PASS)], [played(SCENARIO)])
    assert [(one.kind, one.after) for one in found.changes] == [(Kind.UNJUDGED, "NOT_EXERCISED")]
    assert not found.worse


def test_a_rule_that_judges_for_the_first_time_is_told_only_where_it_is_broken() -> None:
    assert compared([played(SCENARIO)], [played(SCENARIO, PASS)]).changes == []
    broken = compared([played(SCENARIO)], [played(SCENARIO, FAIL)])
    assert (kinds(broken), broken.worse) == ([Kind.BROKEN_ANEW], False)


@pytest.mark.parametrize(("flaky", "steady"), [(True, 0), (False, 1)])
def test_a_known_finding_that_does_not_come_every_time_is_unsteady(
    flaky: bool, steady: int
) -> None:
    known = played(SCENARIO, row(Verdict.KNOWN))
    entries = (entry(flaky=flaky),)
    for first, second in ((known, played(SCENARIO, PASS)), (played(SCENARIO, PASS), known)):
        found = compared([first], [second], entries=entries)
        assert (len(found.changes), len(found.unsteady)) == (steady, 1 - steady)


def test_a_change_that_a_repetition_lacks_is_unsteady() -> None:
    shaky = [Finding("unsteady", "it went otherwise", level=Level.INFO)]
    found = compared([played(SCENARIO, FAIL, findings=shaky)], [played(SCENARIO, PASS)])
    assert (found.changes, len(found.unsteady)) == ([], 1)


def test_a_scenario_that_fails_by_itself_has_regressed() -> None:
    failed = played(verdict=Verdict.FAIL, reason="it waits in vain")
    found = compared([played()], [failed])
    [change] = found.changes
    assert (change.kind, change.note, change.counts) == (
        Kind.REGRESSED,
        "it waits in vain",
        True,
    )
    assert kinds(compared([failed], [played()])) == [Kind.MENDED]


def test_a_capability_that_is_not_offered_any_more_fails_the_comparison() -> None:
    lacking = outcome(
        SCENARIO, verdict=Verdict.NOT_APPLICABLE, missing=("review",), reason="not offered"
    )
    found = compared([played()], [lacking])
    [change] = found.changes
    assert (change.kind, change.subject) == (Kind.CAPABILITY_GONE, "capability review")
    assert found.worse
    back = compared([lacking], [played()])
    assert (kinds(back), back.worse) == ([Kind.CAPABILITY_NEW], False)


def test_known_finding_beside_one_that_does_not_count_changes_no_level() -> None:
    info = played(SCENARIO, row(Verdict.FAIL, level=Level.INFO))
    known = played("turns/other", row(Verdict.KNOWN, subject="turn other"))
    kept = played("turns/other", row(Verdict.PASS, subject="turn other"))
    for first, second in ((kept, known), (known, kept)):
        found = compared([info, first], [info, second])
        assert (found.changes, found.worse) == ([], False)
