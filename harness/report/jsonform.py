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
# Members that are computed from the others, or say where the report comes from.
DERIVED = ("version", "harness", "red", "exit", "summary")

_REPORT = TypeAdapter(Report)


def to_plain(report: Report, status: int | None = None) -> dict[str, Any]:
    """Builtins only. `status` is the exit status that the run gives, where that is known."""
    plain: dict[str, Any] = _REPORT.dump_python(report, mode="json")
    for rule, value in zip(report.rules, plain["rules"], strict=True):
        value["counts"] = is_red(rule, strict=report.strict)
    head: dict[str, Any] = {"version": VERSION, "harness": version(DISTRIBUTION), "red": report.red}
    if status is not None:
        head["exit"] = int(status)
    return {**head, "summary": _summary(report), **plain}


def _summary(report: Report) -> dict[str, Any]:
    placements = [one for race in report.races for one in race.placements]
    return {
        "rules": _by_verdict(report.rules),
        "scenarios": _by_verdict(report.scenarios),
        "placements": _by_verdict(placements),
        "requirements": _requirements(report),
        "seconds": round(sum(one.seconds for one in (*report.scenarios, *placements)), 3),
    }


def _requirements(report: Report) -> dict[str, int]:
    """Those that bind servers, by verdict, and how many the book has of both kinds."""
    found = judged_requirements(report, load_book())
    head = {"judged": found.judged, "of": found.of, "of_clients": found.clients}
    return {**head, **dict(sorted(found.counts.items()))}


def _by_verdict(
    judged: Sequence[RuleResult] | Sequence[ScenarioResult] | Sequence[PlacementResult],
) -> dict[str, int]:
    """Return the number with each verdict, including zero."""
    found = dict.fromkeys(map(str, Verdict), 0)
    for one in judged:
        found[str(one.verdict)] += 1
    return found


def from_plain(plain: dict[str, Any]) -> Report:
    """The reverse. Raises `ValueError` for another version."""
    if plain.get("version") != VERSION:
        raise ValueError(f"report version {plain.get('version')!r}; this reads {VERSION}")
    fields = {key: value for key, value in plain.items() if key not in DERIVED}
    fields["rules"] = [
        {key: value for key, value in rule.items() if key != "counts"}
        for rule in plain.get("rules", ())
    ]
    return _REPORT.validate_python(fields)


def read_report(path: Path) -> Report:
    """A report from a file. Raises `OSError`, or `ValueError` where it is no report."""
    plain = json.loads(path.read_text("utf-8"))
    if not isinstance(plain, dict):
        raise ValueError("it is no JSON object")
    return from_plain(cast("dict[str, Any]", plain))
