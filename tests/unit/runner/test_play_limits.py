"""Several plays of one scenario: the one that counts, and every difference is reported."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.judge.verdict import Level, Verdict
from harness.play.play_limits import PlayLimits, play_repeatedly, read_play_limits, retry_failed
from harness.report.results.outcome import LEAKS, UNSTEADY, Finding, ScenarioOutcome
from tests.unit.results.outcomes import LAST, ONCE, failed, outcome, passed

Players = Callable[[Iterable[ScenarioOutcome]], Callable[[], ScenarioOutcome]]


@pytest.fixture
def playing(tmp_path: Path) -> Players:
    """Return plays with these outcomes in order, each of which writes its number over one trace."""

    def players(outcomes: Iterable[ScenarioOutcome]) -> Callable[[], ScenarioOutcome]:
        each = enumerate(outcomes)

        def play() -> ScenarioOutcome:
            number, one = next(each)
            one.trace = one.kept = str(tmp_path / "trace.jsonl")
            one.seconds = 1.0
            Path(one.trace).write_text(str(number), "utf-8")
            return one

        return play

    return players


def good() -> ScenarioOutcome:
    return outcome("a/one", passed(ONCE))


def bad(*rules: str) -> ScenarioOutcome:
    return outcome("a/one", *(failed(rule) for rule in rules or (ONCE,)))


def told(one: ScenarioOutcome) -> list[str]:
    return [finding.id for finding in one.findings]


def trace_of(one: ScenarioOutcome) -> str:
    return Path(one.trace).read_text("utf-8")


def test_of_repeated_plays_the_gravest_speaks_and_its_trace_stays(playing: Players) -> None:
    play = playing([good(), bad(ONCE, LAST), bad(), good()])
    found = play_repeatedly(play, PlayLimits(repeat=4), strict=False, level=Level.INFO)
    assert {row.rule for row in found.rows} == {ONCE, LAST}
    assert (found.runs, found.failed_runs, found.seconds) == (4, 2, 4.0)
    assert trace_of(found) == "1"
    (one,) = found.findings
    assert (one.id, one.level) == (UNSTEADY, Level.INFO)
    assert f"{ONCE} (in 2 of 4 plays)" in one.message
    assert f"{LAST} (in 1 of 4 plays)" in one.message


@pytest.mark.parametrize(("make", "failures"), [(good, 0), (bad, 3)])
def test_plays_that_are_alike_give_no_finding(
    playing: Players, make: Callable[[], ScenarioOutcome], failures: int
) -> None:
    play = playing(make() for _ in range(3))
    found = play_repeatedly(play, PlayLimits(repeat=3), strict=False, level=Level.INFO)
    assert (told(found), found.runs, found.failed_runs) == ([], 3, failures)


def test_a_scenario_that_does_not_apply_is_not_repeated(playing: Players) -> None:
    play = playing([outcome("a/one", verdict=Verdict.NOT_APPLICABLE)])
    found = play_repeatedly(play, PlayLimits(repeat=9), strict=False, level=Level.INFO)
    assert (found.verdict, found.runs) == (Verdict.NOT_APPLICABLE, 1)


def test_a_should_counts_as_a_difference_where_it_counts(playing: Players) -> None:
    for strict in (False, True):
        soft = outcome("a/one", failed(ONCE, level=Level.SHOULD))
        play = playing([soft, good()])
        found = play_repeatedly(play, PlayLimits(repeat=2), strict=strict, level=Level.INFO)
        assert (UNSTEADY in told(found)) is strict


def test_a_failure_that_passes_on_retry_is_unsteady(playing: Players) -> None:
    first = bad()
    first.findings = [Finding(LEAKS, "something stays", level=Level.INFO)]
    play = playing([first, bad(LAST), good(), good()])
    found = retry_failed(play(), play, PlayLimits(retries=5), strict=False, level=Level.INFO)
    assert told(found) == [LEAKS, UNSTEADY]
    assert (found.runs, found.failed_runs) == (3, 2)
    assert "the last play counts" in found.findings[1].message
    assert (found.rows, trace_of(found)) == (good().rows, "2")


def test_a_lasting_failure_keeps_its_first_outcome(playing: Players) -> None:
    first = bad()
    play = playing([first, bad(), bad(), good()])
    found = retry_failed(play(), play, PlayLimits(retries=2), strict=False, level=Level.INFO)
    assert found is first
    assert (told(found), found.runs, found.failed_runs, trace_of(found)) == ([], 3, 3, "0")


def test_a_failure_that_differs_each_time_is_unsteady_too(playing: Players) -> None:
    play = playing([bad(), bad(LAST)])
    found = retry_failed(play(), play, PlayLimits(retries=1), strict=False, level=Level.INFO)
    assert {row.rule for row in found.rows} == {ONCE}
    assert told(found) == [UNSTEADY]


def test_a_pass_is_not_retried(playing: Players) -> None:
    play = playing([good()])
    found = retry_failed(play(), play, PlayLimits(retries=3), strict=False, level=Level.INFO)
    assert (found.runs, told(found)) == (1, [])


def test_a_retry_that_judges_nothing_does_not_excuse_the_first(playing: Players) -> None:
    first = bad()
    play = playing([first, outcome("a/one", verdict=Verdict.NOT_EXERCISED)])
    assert (
        retry_failed(play(), play, PlayLimits(retries=1), strict=False, level=Level.INFO) is first
    )


def test_when_the_time_is_over_no_further_play_is_begun(playing: Players) -> None:
    over = PlayLimits(repeat=5, max_time=1, deadline=time.monotonic())
    found = play_repeatedly(playing([good()]), over, strict=False, level=Level.INFO)
    assert found.runs == 1
    play = playing([bad()])
    over = PlayLimits(retries=5, max_time=1, deadline=time.monotonic())
    assert retry_failed(play(), play, over, strict=False, level=Level.INFO).runs == 1


@pytest.mark.parametrize(
    ("repeat", "retries", "seconds", "complaint"),
    [
        (0, 0, None, "--repeat 0: give a number of plays, 1 or more"),
        (1, -1, None, "--retries -1: give a number of retries"),
        (2, 1, None, "give one of them"),
        (1, 0, 0.0, "--max-time 0: give a number of seconds greater than 0"),
        (1, 0, float("nan"), "--max-time nan"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(
    repeat: int, retries: int, seconds: float | None, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        read_play_limits(repeat, retries, seconds, None)


def test_a_worker_takes_the_deadline_of_the_run() -> None:
    assert read_play_limits(1, 0, 60, 12.5).deadline == 12.5
    own = read_play_limits(1, 0, 60, None).deadline
    assert own is not None
    assert 0 < own - time.monotonic() <= 60
