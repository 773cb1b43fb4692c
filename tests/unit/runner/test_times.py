"""Times of a play: those of steps, those of a profile, and how often a slow play is repeated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.client.target.profile import parse_profile
from harness.judge.verdict import Verdict
from harness.play.config import configure
from harness.play.judging import outcome_of
from harness.play.lanes import is_settled
from harness.play.repeats import failures
from harness.play.run import Run
from harness.play.times import is_stretched, measure_times
from harness.play.worker_session import WorkerSession
from harness.report.results.outcome import ScenarioOutcome
from harness.scenario.ending import TraceEnding
from harness.scenario.loader import load_text
from harness.scenario.player import Cast
from harness.trace.time_limits import TimeLimit, Times
from harness.trace.trace import End
from tests.unit.results.outcomes import BOOK, outcome, report_of
from tests.unit.runner.test_judging import run, scenario

STEP = TimeLimit("turn/start", "turn/completed", 0.2, step="mine:7")
PROFILE = 'name = "x"\ncommand = "x"\n'
ANSWER = '[[times]]\nfrom = "initialize"\nwithin = "1s"\n'


def timed_run(seconds: float) -> Run:
    played = run(TraceEnding(End.QUIESCENT))
    played.cast = Cast(times=[Times(STEP, (seconds,))])
    return played


def judged(seconds: float, profile: str = "", name: str = "mine") -> ScenarioOutcome:
    loaded = replace(scenario(), id=name)
    target = parse_profile(PROFILE + profile, "x.toml")
    return outcome_of(timed_run(seconds), loaded, BOOK, target, [], {})


@pytest.mark.parametrize(
    ("seconds", "profile", "verdict", "levels"),
    [
        (0.2, 'within = "MUST"', Verdict.PASS, []),
        (0.3, "", Verdict.PASS, ["SHOULD"]),
        (0.3, 'within = "MUST"', Verdict.FAIL, ["MUST"]),
    ],
)
def test_a_slow_step_fails_only_if_the_profile_promises_it(
    seconds: float, profile: str, verdict: Verdict, levels: list[str]
) -> None:
    played = judged(seconds, profile)
    assert played.verdict is verdict
    assert [str(finding.level) for finding in played.findings] == levels
    assert [finding.line for finding in played.findings] == [7] * len(levels)
    issues = report_of(played).issues
    # A scenario that fails says it itself.
    assert [one.id for one in issues] == (["scenario.slow"] if levels == ["SHOULD"] else [])


def test_limits_of_the_profile_are_measured_in_the_trace() -> None:
    limits = {times.limit.name for times in judged(0.1, ANSWER).times}
    assert limits == {STEP.name, "initialize -> its answer"}


def test_no_time_counts_in_a_race() -> None:
    assert judged(0.3, ANSWER, name="mine@kill@turn:started").times == []


STRETCHED = {
    "a gate": "model: [{reply: [{message: {deltas: [a, {hold: g}]}}]}]",
    "a gate of a part": "model: [{reply: [{hold: g}]}]",
    "a delay": "model: [{reply: [{delay: {seconds: 1}}]}]",
    "a cut": "model: [{reply: [{message: a}, {disconnect: true}]}]",
    "a failure": "model: [{fail: {status: 400}}]",
    "a pace": "model: [{pace: {tokens_per_second: 10}, reply: [{message: a}]}]",
    "a pipe": "workspace: {pipes: [p]}",
    "a slow reader": "setup: [{slow_reader: {reading: false}}]",
    "a model that does not listen": "setup: [{model_listens: false}]",
}


@pytest.mark.parametrize("case", STRETCHED)
def test_times_that_the_harness_stretches_do_not_count(case: str) -> None:
    text = f"title: x\nclient: [{{start_thread: {{as: t}}}}]\n{STRETCHED[case]}\n"
    stretched, target = load_text(text), parse_profile(PROFILE + ANSWER, "x.toml")
    assert is_stretched(stretched.scenario)
    (left,) = measure_times(timed_run(0.1), stretched, target)
    assert left.limit.step
    plain = "title: x\nclient: [{start_thread: {as: t}}]\nmodel: [{reply: [{message: a}]}]\n"
    assert not is_stretched(load_text(plain).scenario)


def test_a_slow_play_on_a_lane_is_played_again_alone() -> None:
    slow, fast = ([Times(STEP, (seconds,))] for seconds in (0.3, 0.1))
    assert not is_settled(outcome("a", times=slow))
    assert is_settled(outcome("a", times=fast))


def test_a_slow_step_is_not_repeated_like_a_failure() -> None:
    assert failures(judged(0.3, 'within = "MUST"')) == frozenset()


OTHER = TimeLimit("thread/start", "", 0.2)


@pytest.mark.parametrize(
    ("plays", "confirms", "earlier", "count"),
    [
        ([[0.1]], True, None, 1),
        ([[0.3], [0.1]], True, None, 2),
        ([[0.3], [0.3]], True, None, 2),
        ([[0.3]], True, [0.3], 1),
        ([[0.3]], False, None, 1),
        # The second play is slow in another way, which was then measured once.
        ([[0.3, 0.1], [0.1, 0.3], [0.1, 0.3]], True, None, 3),
        ([[0.1, 0.3], [0.1, 0.1]], True, [0.3, 0.1], 2),
    ],
)
def test_a_time_over_its_limit_is_measured_again_before_it_counts(
    plays: list[list[float]],
    confirms: bool,
    earlier: list[float] | None,
    count: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def played(seconds: list[float]) -> ScenarioOutcome:
        limits = zip((STEP, OTHER), seconds, strict=False)
        return outcome("mine", times=[Times(limit, (one,)) for limit, one in limits])

    coming: Iterator[ScenarioOutcome] = map(played, plays)
    made: list[ScenarioOutcome] = []

    def play(_self: WorkerSession, _loaded: Any, **_options: Any) -> ScenarioOutcome:
        made.append(next(coming))
        return made[-1]

    monkeypatch.setattr(WorkerSession, "_play", play)
    monkeypatch.chdir(tmp_path)
    session = WorkerSession(configure(server_cmd="true"))
    before = played(earlier) if earlier else None
    last = session.play(scenario(), confirms=confirms, earlier=before)
    session.close()
    assert len(made) == count
    assert last is made[-1]
