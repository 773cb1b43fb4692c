"""The comparison of two runs: every kind of difference, in order of importance."""

from harness.report.compare.choices import choice_changes
from harness.report.compare.schemas import schema_changes
from harness.report.compare.values import Change, Comparison, Kind, Run
from harness.report.compare.verdicts import capability_changes, rule_changes, scenario_changes

_ORDER = {kind: place for place, kind in enumerate(Kind)}


def compare(before: Run, after: Run) -> Comparison:
    """Return all differences between two runs."""
    common = before.played_scenarios & after.played_scenarios
    comparison = Comparison(
        before,
        after,
        len(common),
        only_before=sorted(before.played_scenarios - common),
        only_after=sorted(after.played_scenarios - common),
    )
    for change, by_chance in (
        *rule_changes(before, after),
        *scenario_changes(before, after),
        *choice_changes(before, after),
        *schema_changes(before, after),
    ):
        (comparison.unsteady if by_chance else comparison.changes).append(change)
    comparison.changes += capability_changes(before, after)
    comparison.changes.sort(key=_weight)
    comparison.remarks = _remarks(before, after)
    return comparison


def _weight(change: Change) -> tuple[bool, int, bool]:
    # Known deviations come after everything that may count.
    return change.known, _ORDER[change.kind], not change.counts


def _remarks(before: Run, after: Run) -> list[str]:
    remarks: list[str] = []
    revisions = [run.report.revision for run in (before, after)]
    if all(revisions) and len(set(revisions)) > 1:
        remarks.append(
            f"judged by different documents ({' and '.join(revisions)}): run the older one again"
        )
    remarks += [
        f"{run.name} was recorded without choices and messages; to compare them, run it again"
        for run in (before, after)
        if not run.report.choices
    ]
    ids = [{rule.id for rule in run.report.rules} for run in (before, after)]
    for run, extra in ((before, ids[0] - ids[1]), (after, ids[1] - ids[0])):
        if extra:
            remarks.append(f"only {run.name} was judged by {_some(sorted(extra), 'rule')}")
    cut = [run.name for run in (before, after) if run.report.interrupted]
    return remarks + [
        f"{name} was interrupted: what it did not play is not compared" for name in cut
    ]


def _some(names: list[str], noun: str) -> str:
    names_shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return f"{len(names)} {noun}{'s' if len(names) > 1 else ''}: {names_shown}"
