"""Published schemas of reports and traces: they accept what we write, and notice what is wrong."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from harness.cli.commands.file_schemas import FILE_SCHEMAS, file_schema
from harness.errors import UsageError
from harness.report.json_form import to_plain
from harness.report.report_schema import report_schema
from harness.report.trace_schema import trace_schema
from harness.trace.mark_rows import mark_classes
from tests.suite_play import suite_play
from tests.unit.report.test_json_form import report

ROOT = Path(__file__).resolve().parents[3]
STORED = [
    path
    for path in sorted((ROOT / "fixtures/traces").rglob("*.jsonl"))
    if path.read_text("utf-8").startswith('{"trace"')  # not a recording of somebody else
]
REPORT_SCHEMA = jsonschema_rs.validator_for(report_schema())
LINE_SCHEMA = jsonschema_rs.validator_for(trace_schema())
FRAME: dict[str, Any] = {
    **{"frame": 0, "at": 0.01, "conn": "c1"},
    **{"dir": "to-target", "origin": "harness", "raw": "{}"},
}
MARK: dict[str, Any] = {
    **{"mark": "step", "at": 0.1, "after": -1},
    "data": {"name": "wait", "line": 3},
}


def mistakes(path: Path) -> list[str]:
    lines = path.read_text("utf-8").splitlines()
    return [
        f"{path.name}:{number}: {error.message}"
        for number, line in enumerate(lines, 1)
        for error in LINE_SCHEMA.iter_errors(json.loads(line))
    ]


def changed(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    plain = copy.deepcopy(to_plain(report(), 1))
    change(plain)
    return plain


def test_stored_traces_fit_their_schema() -> None:
    assert len(STORED) > 50
    assert [error for path in STORED for error in mistakes(path)] == []


@pytest.mark.slow
def test_traces_and_report_of_the_suite_fit_their_schemas() -> None:
    play = suite_play()
    traces = [Path(one.trace) for one in play.report.scenarios if one.trace]
    assert len(traces) > 300
    assert [error for path in traces[::3] for error in mistakes(path)] == []
    assert REPORT_SCHEMA.is_valid(json.loads(json.dumps(to_plain(play.report))))


def test_each_kind_of_mark_has_a_schema() -> None:
    schema = trace_schema()
    forms = [schema["$defs"][form["$ref"].rsplit("/", 1)[1]] for form in schema["oneOf"]]
    kinds = [form["properties"]["mark"]["const"] for form in forms if "mark" in form["required"]]
    assert sorted(kinds) == sorted(mark_classes())
    assert len(forms) == len(kinds) + 3  # the head, a message, the end


@pytest.mark.parametrize("schema", [report_schema(), trace_schema()], ids=["report", "trace"])
def test_a_schema_speaks_json_and_has_no_definition_to_spare(schema: dict[str, Any]) -> None:
    text = json.dumps(schema)
    assert not re.search(r"\b(None|True|False)\b", text)
    assert [name for name in schema["$defs"] if f'"#/$defs/{name}"' not in text] == []


def test_members_that_may_be_missing_have_a_default() -> None:
    for name in ("RuleResult", "ScenarioResult", "Proof", "Row", "Issue"):
        form = report_schema()["$defs"][name]
        optional = form["properties"].keys() - set(form["required"])
        assert [key for key in optional if "default" not in form["properties"][key]] == [], name


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"trace": {"version": 2}},
        {"trace": {"version": 1, "marks": 2}},
        {"end": "tired"},
        {**FRAME, "dir": "sideways"},
        {**FRAME, "raw64": "e30="},
        {name: value for name, value in FRAME.items() if name != "raw"},
        {**FRAME, "frame": "0"},
        {**FRAME, "damage": "lost"},
        {**MARK, "mark": "no-such"},
        {name: value for name, value in MARK.items() if name != "data"},
        {**MARK, "after": -2},
    ],
    ids=str,
)
def test_a_line_that_is_wrong_does_not_fit(line: dict[str, Any]) -> None:
    assert LINE_SCHEMA.is_valid(FRAME)
    assert LINE_SCHEMA.is_valid(MARK)
    assert not LINE_SCHEMA.is_valid(line)


def test_a_report_fits_with_members_that_come_later() -> None:
    assert REPORT_SCHEMA.is_valid(changed(lambda plain: plain.update(later=1)))


@pytest.mark.parametrize(
    "change",
    [
        lambda plain: plain.update(version=2),
        lambda plain: plain.pop("red"),
        lambda plain: plain.update(red="yes"),
        lambda plain: plain["summary"].pop("rules"),
        lambda plain: plain["summary"]["rules"].update(PASS=-1),
        lambda plain: plain["rules"][0].update(verdict="FINE"),
        lambda plain: plain["rules"][0].update(level="MAYBE"),
        lambda plain: plain["rules"][0].update(counts=1),
        lambda plain: plain["rules"][0].pop("counts"),
        lambda plain: plain["rules"][0].pop("id"),
        lambda plain: plain["rules"][0]["proofs"][0]["row"].pop("rule"),
        lambda plain: plain["scenarios"][0].update(seconds="long"),
        lambda plain: plain["issues"][0].pop("message"),
    ],
)
def test_a_report_that_is_wrong_does_not_fit(change: Callable[[dict[str, Any]], Any]) -> None:
    assert not REPORT_SCHEMA.is_valid(changed(change))


def test_an_unknown_schema_is_answered_with_the_known_ones() -> None:
    assert sorted(FILE_SCHEMAS) == ["family", "report", "scenario", "trace"]
    with pytest.raises(UsageError, match="unknown schema 'reports'; did you mean 'report'"):
        file_schema("reports")
