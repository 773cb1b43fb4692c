"""A comparison as builtins, for JSON.

Format version 1: a change of meaning raises it, a new member does not.
"""

from dataclasses import asdict
from typing import Any

from harness.report.compare.values import Change, Comparison, Run

VERSION = 1


def to_plain(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as builtins. `worse` decides the exit status."""
    return {
        "version": VERSION,
        "worse": comparison.worse,
        "before": _run(comparison.before),
        "after": _run(comparison.after),
        "compared": comparison.common,
        "only_before": comparison.only_before,
        "only_after": comparison.only_after,
        "remarks": comparison.remarks,
        "changes": [_change(change) for change in comparison.changes],
        "unsteady": [_change(change) for change in comparison.unsteady],
    }


def _run(run: Run) -> dict[str, str]:
    report = run.report
    return {"name": run.name, "target": report.target, "command": report.command}


def _change(change: Change) -> dict[str, Any]:
    return {**asdict(change), "kind": str(change.kind)}
