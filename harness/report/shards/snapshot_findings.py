"""Findings of a run about its snapshots, and accepted ones that no scenario uses."""

from collections.abc import Mapping, Sequence

from harness.judge.verdict import Level, Verdict
from harness.report.results.outcome import Finding, ScenarioOutcome
from harness.report.shards.values import SnapshotSettings
from harness.report.snapshot.keeper import CHANGED, NEW, NOT_KEPT
from harness.scenario.bundled import bundled_ids_on
from harness.trace.surfaces import SDK

PASSED = (Verdict.PASS, Verdict.KNOWN)


def unused_snapshots(
    settings: SnapshotSettings, outcomes: Mapping[str, ScenarioOutcome]
) -> dict[str, str]:
    """Return the reason for each accepted snapshot of no scenario that is played.

    {} unless all scenarios of the target were played, without a selection.
    """
    # Other plugins may deselect too, such as one that splits a run among machines.
    # An SDK plays a session's scenarios only on some agents.
    surfaces = [surface for surface in settings.surfaces if surface != SDK]
    if settings.is_selected or not all(
        bundled_ids_on(surface) <= outcomes.keys() for surface in surfaces
    ):
        return {}
    unused: dict[str, str] = {}
    for scenario in settings.accepted:
        outcome = outcomes.get(scenario)
        if outcome is None:
            unused[scenario] = "no scenario has this id any more"
        elif outcome.verdict is Verdict.NOT_APPLICABLE and not outcome.withheld:
            unused[scenario] = outcome.reason
    return unused


def snapshot_findings(
    settings: SnapshotSettings, outcomes: Mapping[str, ScenarioOutcome], unused: Sequence[str]
) -> list[Finding]:
    """Return what waits for review, is `unused`, or could not be kept, a finding for each kind."""
    review = f"harness snapshots review {settings.folder}"
    findings: list[Finding] = []
    new, changed = (names_of(outcomes, state) for state in (NEW, CHANGED))
    if new or changed:
        counts = f"{len(new)} new, {len(changed)} changed"
        message = f"{len(new) + len(changed)} snapshot(s) wait for review ({counts}): {review}"
        level = Level.MUST if settings.strict else Level.INFO
        findings.append(Finding("snapshots.pending", message, level=level))
    if unused:
        message = f"{len(unused)} snapshot(s) are of no scenario that is played: {review}"
        findings.append(Finding("snapshots.unused", message))
    unkept = [name for name in names_of(outcomes, NOT_KEPT) if outcomes[name].verdict in PASSED]
    if unkept:
        snapshot = outcomes[unkept[0]].snapshot
        reason = snapshot.told[0] if snapshot is not None else ""
        message = f"{len(unkept)} snapshot(s) were not kept: {reason}"
        findings.append(Finding("snapshots.not-kept", message))
    return findings


def names_of(outcomes: Mapping[str, ScenarioOutcome], state: str) -> list[str]:
    """Return the scenarios whose snapshot is in a state, sorted."""
    return sorted(
        name for name, one in outcomes.items() if one.snapshot and one.snapshot.state == state
    )
