"""Outcomes of plays as events of a run's progress."""

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from harness.judge.verdict import Verdict
from harness.report.progress.events import Found, PlayEnded, PlayStarted, cut
from harness.report.progress.log import ProgressLog
from harness.report.results.outcome import RaceOutcome, ScenarioOutcome, seconds_of

T = TypeVar("T", ScenarioOutcome, RaceOutcome)
MAX_FINDINGS_PER_PLAY = 20
_WRONG = (Verdict.FAIL, Verdict.ERROR)


def report_play(
    progress: ProgressLog,
    scenario: str,
    lane: str,
    play: Callable[[], T],
    *,
    alone: bool,
    again: bool,
) -> T:
    """Play, and write its events; `alone` if a failure counts, `again` if one is confirmed."""
    progress.write(PlayStarted(scenario=scenario, lane=lane, again=again))
    began = round(time.time(), 3)
    outcome = play()
    outcome.lane, outcome.began, outcome.replayed = lane, began, again
    progress.end_steps(lane)
    parts = outcome.placements if isinstance(outcome, RaceOutcome) else [outcome]
    findings = {(found.rule, found.scenario): found for part in parts for found in _findings(part)}
    for found in list(findings.values())[:MAX_FINDINGS_PER_PLAY]:
        progress.write(found)
    progress.write(
        PlayEnded(
            scenario=scenario,
            lane=lane,
            verdict=str(outcome.verdict),
            seconds=round(seconds_of(outcome), 3),
            reason=cut(outcome.reason),
            trace=parts[0].kept if len(parts) == 1 else "",
            provisional=not alone and outcome.verdict in _WRONG,
        )
    )
    return outcome


def _findings(outcome: ScenarioOutcome) -> Iterator[Found]:
    for row in outcome.rows:
        if row.verdict in _WRONG and row.level != "INFO":
            level = "ERROR" if row.verdict is Verdict.ERROR else str(row.level)
            words = cut(f"{row.subject}: expected {row.expected}; actual {row.actual}")
            yield Found(
                rule=row.rule, level=level, text=words, scenario=outcome.id, trace=outcome.kept
            )
    for finding in outcome.findings:
        level = "KNOWN" if finding.known else str(finding.level)
        yield Found(
            rule=finding.id,
            level=level,
            text=cut(finding.message),
            scenario=outcome.id,
            trace=outcome.kept,
        )
