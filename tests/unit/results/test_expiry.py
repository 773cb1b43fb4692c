"""Baseline entries with a last day: they count until then, with a warning two weeks before."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from harness.judge.verdict import Level
from harness.report.results.expiry import expiry_issues, is_alive
from tests.unit.results.outcomes import entry, outcome, passed, report_of

DAY = date(2027, 1, 31)


@pytest.mark.parametrize(("days", "counts"), [(-30, True), (0, True), (1, False)])
def test_an_entry_counts_up_to_its_last_day(days: int, counts: bool) -> None:
    assert is_alive(entry(expires=DAY), DAY + timedelta(days=days)) is counts


def test_an_entry_without_a_last_day_counts_for_ever() -> None:
    assert is_alive(entry(), date.max)
    assert expiry_issues([entry()], date.max, {}) == []


@pytest.mark.parametrize(
    ("days", "name", "words"),
    [
        (-15, "", ""),
        (-14, "baseline.expires-soon", "expires in 14 day(s), on 2027-01-31"),
        (0, "baseline.expires-soon", "expires today, on 2027-01-31"),
        (1, "baseline.expired", "expired on 2027-01-31"),
    ],
)
def test_it_is_told_from_two_weeks_before(days: int, name: str, words: str) -> None:
    known = entry(expires=DAY)
    places = dict.fromkeys([known], "known.toml:4:1")
    found = expiry_issues([known], DAY + timedelta(days=days), places)
    assert [one.id for one in found] == ([name] if name else [])
    for one in found:
        assert words in one.message
        assert one.message.endswith("(known)")
        assert (one.level, one.where) == (Level.INFO, "known.toml:4:1")


def test_news_of_a_last_day_fails_no_run() -> None:
    told = expiry_issues([entry(expires=DAY)], DAY, {})
    report = report_of(outcome("a/one", passed("turn.completes")))
    report.issues += told
    assert not report.red
