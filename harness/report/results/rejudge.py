"""Outcomes judged again with more known deviations, after a baseline was updated."""

from collections.abc import Sequence

from harness.client.target.profile import Deviation
from harness.judge.verdict import GRAVITY, Verdict
from harness.report.results.baseline import mark_known_finding, mark_known_row
from harness.report.results.outcome import LEAKS, UNSTEADY, Finding, RaceOutcome, ScenarioOutcome


def apply_entries(outcome: ScenarioOutcome, entries: Sequence[Deviation]) -> None:
    """Mark the rows and findings that entries match as known, in place.

    The outcome is KNOWN if all its findings are, except those of a repetition.
    """
    outcome.rows = [mark_known_row(row, outcome.id, entries) for row in outcome.rows]
    outcome.findings = _mark_known(outcome.findings, outcome.id, entries)
    if outcome.verdict is not Verdict.FAIL:
        return
    own = [finding for finding in outcome.findings if finding.id not in (LEAKS, UNSTEADY)]
    if own and all(finding.known for finding in own):
        outcome.verdict, outcome.reason = Verdict.KNOWN, own[0].known


def apply_entries_to_race(race: RaceOutcome, entries: Sequence[Deviation]) -> None:
    """Apply the entries to a race, in place; its most severe placement decides its verdict."""
    for placement in race.placements:
        apply_entries(placement, entries)
    race.findings = _mark_known(race.findings, race.scenario, entries)
    if race.verdict is Verdict.FAIL and race.placements:
        gravest = max(race.placements, key=lambda placement: GRAVITY[placement.verdict])
        race.verdict = gravest.verdict
        race.reason = f"{gravest.race}: {gravest.reason}" if gravest.reason else ""


def _mark_known(
    findings: Sequence[Finding], scenario: str, entries: Sequence[Deviation]
) -> list[Finding]:
    return [
        finding if finding.known else mark_known_finding(finding, scenario, entries)
        for finding in findings
    ]
