"""A comparison as builtins, for JSON.

Format version 1: a change of meaning raises it, a new member does not.
"""

from dataclasses import asdict
from typing import Any

from harness.report.compare.values import Change, Comparison, Run

VERSION = 1


def to_plain(found: Comparison) -> dict[str, Any]:
    """Builtins only. `worse` is what the exit status tells."""
    return {
        "version": VERSION,
        "worse": found.worse,
        "before": _run(found.before),
        "after": _run(found.after),
        "compared": found.common,
        "only_before": found.only_before,
        "only_after": found.only_after,
        "remarks": found.remarks,
        "changes": [_change(one) for one in found.changes],
        "unsteady": [_change(one) for one in found.unsteady],
    }


def _run(run: Run) -> dict[str, str]:
    report = run.report
    return {"name": run.name, "target": report.target, "command": report.command}


def _change(change: Change) -> dict[str, Any]:
    return {**asdict(change), "kind": str(change.kind)}
