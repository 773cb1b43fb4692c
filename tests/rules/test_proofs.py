"""Findings as a reader sees them: each rule's bad trace and each fault, with their wire lines.

A reader who sees only expected, actual and the wire lines must be convinced: the two differ, both
are bounded, and the line shows the member however long the message is.
"""

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from harness.faults.base import all_faults
from harness.faults.stored import apply
from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Place, Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.protocol.values import MISSING, read_path, value_at
from harness.report.wire_lines import frame_line, proof_lines
from harness.trace.frame import Frame
from harness.trace.store import load
from harness.trace.surface.registry import classify_of
from harness.trace.trace import Trace
from tests.rules.case import all_cases
from tools.matrix import GOOD

# Rules that speak of whole messages in some of their findings: of one that never came, or came too
# early, or is none. What they say is told by the methods and ids alone. What an MCP server got is
# in no message: the end of the turn is shown.
OF_WHOLE_MESSAGES = {
    "approval.never-asked",
    "approval.rejected",
    "compact.item-emitted",
    "compact.told",
    "error.told-mid-turn",
    "exec.agrees-with-session",
    "exec.events-typed",
    "exec.model-asked",
    "exec.resumed-history",
    "exec.thread-first",
    "exec.thread-kept",
    "exec.turn-ends",
    "frame.well-formed",
    "harness.own-frame",
    "mcp-server.arguments",
    "mcp-server.bearer-token",
    "mcp-server.enabled-only",
    "mcp-server.environment",
    "mcp-server.no-credentials",
    "mcp-server.result-told",
    "mcp.progress-of-call",
    "request.answered",
    "response.before-effects",
    "sdk-run.agrees-with-session",
    "status.active-while-turn",
    "turn.reroute-told",
    "turn.usage-told",
}
MAX_CHARACTERS = 700


@cache
def _good(name: str) -> Trace:
    return load(GOOD / f"{name}.jsonl", classify_of=classify_of)


@cache
def _violations(rule: str) -> list[tuple[str, Trace, Row]]:
    """Return the violations in the rule's bad trace and in the traces of faults that it kills."""
    traces = [("its bad trace", case.traces()[1]) for case in all_cases() if case.rule == rule]
    faults = [fault for fault in all_faults().values() if fault.rule == rule]
    traces += [(fault.id, apply(fault, _good(fault.on))) for fault in faults]
    return [
        (name, trace, row)
        for name, trace in traces
        for row in judge(load_book(), trace, rules=[all_rules()[rule]])
        if row.verdict in (Verdict.FAIL, Verdict.ERROR)
    ]


by_rule = pytest.mark.parametrize("rule", all_rules())


@by_rule
def test_a_finding_tells_two_things_that_differ_on_one_line_each(rule: str) -> None:
    found = _violations(rule)
    assert found
    for name, _, row in found:
        assert row.expected.strip(), name
        assert row.actual.strip(), name
        assert row.expected != row.actual, name
        for told in (row.expected, row.actual):
            assert len(told) <= MAX_CHARACTERS, (name, told)
            assert told.isprintable(), (name, told)


@by_rule
def test_values_that_differ_are_not_cut_to_look_the_same(rule: str) -> None:
    """If both name the same member, the text after it differs."""
    for name, _, row in _violations(rule):
        for place in row.places:
            expected, actual = (_after(told, place.path) for told in (row.expected, row.actual))
            if expected and actual:
                assert expected != actual, name


@by_rule
def test_a_finding_about_a_member_shows_it_in_its_wire_line(rule: str) -> None:
    for name, trace, row in _violations(rule):
        for place in row.places:
            frame = trace.frames[place.frame]
            _assert_shown(frame, place, row.places, name)
            _assert_shown(_padded(frame), place, row.places, f"{name}, padded")


@by_rule
def test_every_message_of_a_proof_is_shown_and_marked(rule: str) -> None:
    for name, trace, row in _violations(rule):
        lines = list(proof_lines(trace, row.frames, row.places))
        marked = {*row.frames, *(place.frame for place in row.places)}
        assert sum(line.startswith("  *") for line in lines) == len(marked), name
        assert len(lines) <= 3 * 14


def test_only_these_rules_have_findings_about_no_member() -> None:
    without = {rule for rule in all_rules() for _, _, row in _violations(rule) if not row.places}
    assert without == OF_WHOLE_MESSAGES


def _after(told: str, path: str) -> str:
    _, found, rest = told.partition(f"{path}: ")
    return rest if found else ""


def _assert_shown(frame: Frame, place: Place, places: tuple[Place, ...], name: str) -> None:
    path = read_path(place.path)
    value, line = value_at(frame.json, path), frame_line(frame, places=places)
    assert len(line) <= 800, name
    if value is MISSING:
        above = next((step for step in reversed(path[:-1]) if isinstance(step, str)), "")
        assert f'"{above}"' in line if above else line, name
        return
    if isinstance(path[-1], str):
        assert f'"{path[-1]}"' in line, (name, place, line)
    if not isinstance(value, dict | list) and not place.offset:
        head = json.dumps(value, ensure_ascii=b"\\u" in frame.raw)[:30]
        assert head in line, (name, place, line)


def _padded(frame: Frame) -> Frame:
    """The same message with so much beside every member that its line must be cut."""
    if not isinstance(frame.json, dict):
        return frame
    top = {key: _pad(part) for key, part in frame.json.items()}
    ascii_only = b"\\u" in frame.raw
    return replace(frame, raw=json.dumps(top, ensure_ascii=ascii_only).encode(), json=frame.json)


def _pad(value: Any) -> Any:
    if isinstance(value, list):
        return [_pad(one) for one in value]
    if isinstance(value, dict):
        inside = {key: _pad(one) for key, one in value.items()}
        return {"padding": "p" * 300, **inside, "more": "q" * 300}
    return value
