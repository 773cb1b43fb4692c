"""Times between messages of a trace, and the results of limits over a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from harness.judge.verdict import Level
from harness.report.results.outcome import ScenarioOutcome
from harness.report.results.time_results import slow_run_findings, time_results
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder
from harness.trace.time_limits import TimeLimit, Times, measure, parse_duration, show_duration
from harness.trace.trace import Trace
from tests.unit.results.outcomes import entry, outcome, report_of

OUT, IN = Direction.TO_TARGET, Direction.FROM_TARGET
ROW = TimeLimit("turn/start", "item/agentMessage/delta", 0.5, 95)
Said = tuple[float, Direction, dict[str, Any]]


def trace(*said: Said, connection: str = "c1") -> Trace:
    times = iter([0.0, *(at for at, _, _ in said)])
    recorder = Recorder(clock=lambda: next(times))
    for _, direction, message in said:
        recorder.record(json.dumps(message).encode(), direction, connection=connection)
    return recorder.trace


def asks(at: float, number: int, method: str = "turn/start", thread: str = "a") -> Said:
    return at, OUT, {"method": method, "id": number, "params": {"threadId": thread}}


def tells(at: float, thread: str = "a", method: str = "item/agentMessage/delta") -> Said:
    return at, IN, {"method": method, "params": {"threadId": thread}}


def answers(at: float, number: int, kind: str = "result") -> Said:
    return at, IN, {"id": number, kind: {}}


@pytest.mark.parametrize(
    ("text", "seconds"), [("200ms", 0.2), ("1.5s", 1.5), ("600s", 600.0), ("20 ms", 0.02)]
)
def test_duration_is_milliseconds_or_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("value", ["200", 200, "0ms", "-1s", "601s", "1m", "", None, True, "1e3s"])
def test_other_durations_are_rejected(value: object) -> None:
    with pytest.raises(ValueError, match="expected a time such as 200ms"):
        parse_duration(value)


def test_durations_are_shown_with_three_digits() -> None:
    assert [*map(show_duration, (0.0123, 0.812, 1.5))] == ["12.3 ms", "812 ms", "1.5 s"]


CONVERSATIONS: dict[str, tuple[Sequence[Said], TimeLimit, tuple[float, ...]]] = {
    "the first message after the start counts": ((asks(1, 1), tells(3), tells(9)), ROW, (2.0,)),
    "threads are kept apart": (
        (asks(1, 1), asks(2, 2, thread="b"), tells(4, "b"), tells(9)),
        ROW,
        (2.0, 8.0),
    ),
    "a rejected start gives no time": ((asks(1, 1), answers(2, 1, "error"), tells(9)), ROW, ()),
    "an accepted one goes on": ((asks(1, 1), answers(2, 1), tells(9)), ROW, (8.0,)),
    "the last of two starts counts": ((asks(1, 1), asks(4, 2), tells(9)), ROW, (5.0,)),
    "an end without a start gives no time": ((tells(1), asks(2, 1)), ROW, ()),
    "an answer ends its own request": (
        (asks(1, 1), asks(2, 2), answers(5, 2), answers(9, 1)),
        TimeLimit("turn/start", "", 0.5),
        (3.0, 8.0),
    ),
    "an error is no answer in time": (
        (asks(1, 1), answers(5, 1, "error")),
        TimeLimit("turn/start", "", 0.5),
        (),
    ),
    "a start without a thread meets the message about the new one": (
        (
            (1, OUT, {"method": "thread/start", "id": 1, "params": {}}),
            (3, IN, {"method": "thread/started", "params": {"thread": {"id": "a"}}}),
        ),
        TimeLimit("thread/start", "thread/started", 0.5),
        (2.0,),
    ),
    "a notification can be the start": (
        (tells(1, method="turn/started"), tells(4, method="turn/completed")),
        TimeLimit("turn/started", "turn/completed", 0.5),
        (3.0,),
    ),
    "a server's own request has no answer here": (
        ((1, IN, {"method": "item/tool/call", "id": 7, "params": {}}), answers(3, 7)),
        TimeLimit("item/tool/call", "", 0.5),
        (),
    ),
}


@pytest.mark.parametrize("case", CONVERSATIONS)
def test_times_of_a_conversation(case: str) -> None:
    said, limit, expected = CONVERSATIONS[case]
    assert measure(trace(*said), limit).seconds == expected


def timed(name: str, *seconds: float, limit: TimeLimit = ROW) -> ScenarioOutcome:
    return outcome(name, times=[Times(limit, seconds)])


def test_a_percentile_over_the_run_is_compared_with_the_limit() -> None:
    fast = [timed(f"s{number}", 0.1) for number in range(19)]
    (kept,) = time_results([*fast, timed("slow", 9.0)])
    assert (kept.samples, kept.p50, kept.p95, kept.max) == (20, 0.1, 0.1, 9.0)
    assert kept.is_kept
    assert not list(slow_run_findings([kept]))
    (over,) = time_results([*fast[1:], timed("slow", 9.0), timed("slower", 0.6)])
    (finding,) = slow_run_findings([over])
    assert finding.message == (
        "turn/start -> item/agentMessage/delta: p95 600 ms, at most 500 ms; samples: 20, "
        "p50 100 ms, p95 600 ms, max 9 s; the longest in slow"
    )
    assert (finding.id, finding.level, finding.about) == ("times.slow", Level.SHOULD, ("slow",))


@pytest.mark.parametrize(("promised", "red"), [(False, False), (True, True)])
def test_only_a_promised_limit_makes_the_run_red(promised: bool, red: bool) -> None:
    limit = TimeLimit("turn/start", "", 0.5, 95, promised)
    report = report_of(timed("slow", 0.7, limit=limit))
    assert report.red is red
    assert [issue.id for issue in report.issues] == ["times.slow"]


def test_each_limit_that_is_not_kept_is_an_issue_of_its_own() -> None:
    limits = TimeLimit("turn/start", "", 0.1), TimeLimit("turn/start", "", 0.2, 50), ROW
    report = report_of(*(timed(f"s{number}", 0.7, limit=one) for number, one in enumerate(limits)))
    words = [issue.message.partition(",")[0] for issue in report.issues]
    assert words == [
        f"{ROW.name}: p95 700 ms",
        *(f"{limits[0].name}: p{n} 700 ms" for n in (100, 50)),
    ]


def test_a_known_limit_counts_for_nothing_and_like_hygiene_is_never_stale() -> None:
    limit = TimeLimit("turn/start", "", 0.5, 95, is_promised=True)
    known = entry("times.slow", pinned="turn/start -> its answer")
    report = report_of(timed("slow", 0.7, limit=limit), entries=(known,))
    assert not report.red
    (issue,) = report.issues
    assert issue.known == "known"
    fast = report_of(timed("fast", 0.1, limit=limit), entries=(known,))
    assert (fast.issues, fast.unchecked) == ([], ["times.slow (scenario *)"])


def test_times_of_an_outcome_cross_to_another_process() -> None:
    played = timed("a", 0.1, 0.7)
    assert ScenarioOutcome.from_plain(played.to_plain()) == played
    assert played.slow_limits == {ROW}
