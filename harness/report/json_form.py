"""The report as JSON: stable ids, plain values, everything that the other forms show.

Format version 1: a change of meaning raises it, a new member does not. Verdicts, levels and ids are
strings.
"""

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter

from harness.judge.verdict import Verdict
from harness.protocol.spec.loading import load_book
from harness.report.requirements import judged_requirements
from harness.report.results.report import (
    PlacementResult,
    Report,
    RuleResult,
    ScenarioResult,
    is_red,
)

VERSION = 1
DISTRIBUTION = "agent-session-harness"
# Members that are computed from the others, or describe the origin of the report.
DERIVED = ("version", "harness", "red", "exit", "summary")

_REPORT = TypeAdapter(Report)


def to_plain(report: Report, status: int | None = None) -> dict[str, Any]:
    """Return the report as builtins. `status` is the exit status of the run, if known."""
    plain: dict[str, Any] = _REPORT.dump_python(report, mode="json")
    for rule, value in zip(report.rules, plain["rules"], strict=True):
        value["counts"] = is_red(rule, strict=report.strict)
    head: dict[str, Any] = {"version": VERSION, "harness": version(DISTRIBUTION), "red": report.red}
    if status is not None:
        head["exit"] = int(status)
    return {**head, "summary": _summary(report), **plain}


def _summary(report: Report) -> dict[str, Any]:
    placements = [placement for race in report.races for placement in race.placements]
    return {
        "rules": _by_verdict(report.rules),
        "scenarios": _by_verdict(report.scenarios),
        "placements": _by_verdict(placements),
        "requirements": _requirements(report),
        "seconds": round(sum(scenario.seconds for scenario in (*report.scenarios, *placements)), 3),
    }


def _requirements(report: Report) -> dict[str, int]:
    """Return the counts of requirements: judged, in all, not judged by reason, by verdict."""
    counts = judged_requirements(report, load_book())
    head = {
        "judged": counts.judged_count,
        "of": counts.total,
        "of_other_surfaces": counts.other_surfaces,
        "without_rule": counts.without_rule,
        "of_clients": counts.client_only,
    }
    return {**head, **dict(sorted(counts.counts.items()))}


def _by_verdict(
    judged: Sequence[RuleResult] | Sequence[ScenarioResult] | Sequence[PlacementResult],
) -> dict[str, int]:
    """Return the number with each verdict, including zero."""
    counts = dict.fromkeys(map(str, Verdict), 0)
    for result in judged:
        counts[str(result.verdict)] += 1
    return counts


def from_plain(plain: dict[str, Any]) -> Report:
    """Return the report of builtins from `to_plain`. Raises `ValueError` for another version."""
    if plain.get("version") != VERSION:
        raise ValueError(f"report version {plain.get('version')!r}; this reads {VERSION}")
    fields = {key: value for key, value in plain.items() if key not in DERIVED}
    fields["rules"] = [
        {key: value for key, value in rule.items() if key != "counts"}
        for rule in plain.get("rules", ())
    ]
    return _REPORT.validate_python(fields)


def read_report(path: Path) -> Report:
    """Read a report from a file. Raises `OSError`, or `ValueError` if it is not a report."""
    plain = json.loads(path.read_text("utf-8"))
    if not isinstance(plain, dict):
        raise ValueError("it is not a JSON object")
    return from_plain(cast("dict[str, Any]", plain))
