"""Outcomes looked at again with more known deviations, after a baseline was updated."""

from collections.abc import Sequence

from harness.client.target.profile import Deviation
from harness.judge.verdict import GRAVITY, Verdict
from harness.report.results.baseline import known_finding, known_row
from harness.report.results.outcome import LEAKS, UNSTEADY, Finding, RaceOutcome, ScenarioOutcome


def take_as_known(outcome: ScenarioOutcome, entries: Sequence[Deviation]) -> None:
    """Let the entries speak about an outcome, in place."""
    outcome.rows = [known_row(row, outcome.id, entries) for row in outcome.rows]
    outcome.findings = _known(outcome.findings, outcome.id, entries)
    if outcome.verdict is not Verdict.FAIL:
        return
    own = [one for one in outcome.findings if one.id not in (LEAKS, UNSTEADY)]
    if own and all(one.known for one in own):
        outcome.verdict, outcome.reason = Verdict.KNOWN, own[0].known


def take_race_as_known(race: RaceOutcome, entries: Sequence[Deviation]) -> None:
    """The same for a race: the gravest of its placements speaks for it."""
    for placement in race.placements:
        take_as_known(placement, entries)
    race.findings = _known(race.findings, race.scenario, entries)
    if race.verdict is Verdict.FAIL and race.placements:
        gravest = max(race.placements, key=lambda one: GRAVITY[one.verdict])
        race.verdict = gravest.verdict
        race.reason = f"{gravest.race}: {gravest.reason}" if gravest.reason else ""


def _known(
    findings: Sequence[Finding], scenario: str, entries: Sequence[Deviation]
) -> list[Finding]:
    return [one if one.known else known_finding(one, scenario, entries) for one in findings]
