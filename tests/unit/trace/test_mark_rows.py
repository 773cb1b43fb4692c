"""Marks as rows: those of version 1, and invalid ones."""

from typing import Any

import pytest

from harness.trace.mark_rows import from_former_row, from_row
from harness.trace.marks import (
    CallEnd,
    ClientLeft,
    Closed,
    EndingBegins,
    GateOpened,
    MarkBody,
    McpToolCall,
    ModelCall,
    ModelEnd,
    ModelListens,
    ModelMessage,
    PartialLine,
    Place,
    PlanStep,
    RaceActs,
    Settled,
    Setup,
    StepBegins,
)

# What version 1 wrote of each kind, and what it says.
FORMER: list[tuple[str, dict[str, Any], MarkBody]] = [
    (
        "model-call",
        {
            "call": 2,
            "thread": "t",
            "step": 1,
            "model": "m",
            "user_texts": ["hello"],
            "effort": "low",
            "summary": "auto",
            "schema": True,
            "outputs": ["made.txt\n"],
        },
        ModelCall(
            call=2,
            thread="t",
            step=1,
            model="m",
            user_texts=("hello",),
            effort="low",
            summary="auto",
            schema=True,
            outputs=("made.txt\n",),
        ),
    ),
    ("model-call", {}, ModelCall(call=0, step=-1, model=None, user_texts=None)),
    ("model-call", {"n": 1}, ModelCall()),
    (
        "model-end",
        {
            "call": 2,
            "outcome": "completed",
            "usage": 15,
            "plans": [[{"step": "look", "status": "pending"}]],
            "answers": "other",
            "texts": [{"text": "Yes.", "phase": ""}, {"text": "Hm.", "phase": "commentary"}],
            "tools": 1,
            "mcp": [{"server": "tiny", "tool": "add"}],
        },
        ModelEnd(
            call=2,
            outcome=CallEnd.COMPLETED,
            usage=15,
            plans=((PlanStep("look", "pending"),),),
            answers="other",
            texts=(ModelMessage("Yes."), ModelMessage("Hm.", "commentary")),
            tools=1,
            mcp=(McpToolCall("tiny", "add"),),
        ),
    ),
    (
        "model-end",
        {"call": 1, "outcome": "status 401", "code": "invalid_api_key", "said": "who are you?"},
        ModelEnd(
            call=1,
            outcome=CallEnd.STATUS,
            status=401,
            code="invalid_api_key",
            said="who are you?",
        ),
    ),
    ("model-end", {"outcome": "failed server_error"}, ModelEnd(outcome=CallEnd.FAILED)),
    (
        "model-end",
        {"outcome": "failed insufficient_quota", "code": "insufficient_quota"},
        ModelEnd(outcome=CallEnd.FAILED, code="insufficient_quota"),
    ),
    ("model-end", {"outcome": "disconnected"}, ModelEnd(outcome=CallEnd.DISCONNECTED)),
    ("model-end", {"outcome": "dropped by the caller"}, ModelEnd(outcome=CallEnd.DROPPED)),
    ("model-end", {}, ModelEnd(outcome=CallEnd.UNKNOWN)),
    ("model-listens", {"listening": False}, ModelListens(listening=False)),
    ("gate", {"open": "g"}, GateOpened("g")),
    ("setup", {"active": True}, Setup(active=True)),
    ("step", {"name": "wait", "line": 7}, StepBegins("wait", 7)),
    ("race", {"action": "steer"}, RaceActs("steer")),
    ("closed", {"connection": "c2"}, Closed("c2")),
    ("client-left", {"connection": "c2"}, ClientLeft("c2")),
    ("ending", {}, EndingBegins()),
    (
        "settled",
        {
            "silence": 1,
            "owed": ["turn/completed of turn_1"],
            "model_streams": 1,
            "server_requests": 2,
            "child_processes": 3,
            "retries": 4,
        },
        Settled(
            silence=1.0,
            owed=("turn/completed of turn_1",),
            model_streams=1,
            server_requests=2,
            child_processes=3,
            retries=4,
        ),
    ),
    (
        "place",
        {"home": "/h", "cwd": "/c", "server-cwd": "/s"},
        Place(home="/h", cwd="/c", server_cwd="/s"),
    ),
    ("partial-line", {"head": '{"me', "bytes": 4}, PartialLine('{"me', 4)),
]


@pytest.mark.parametrize(("kind", "row", "body"), FORMER)
def test_marks_of_version_1_are_read(kind: str, row: dict[str, Any], body: MarkBody) -> None:
    assert from_former_row(kind, row) == body


def test_a_kind_of_version_1_that_nothing_reads_is_left_out() -> None:
    assert from_former_row("forgotten", {}) is None


@pytest.mark.parametrize(
    ("kind", "row", "problem"),
    [
        ("nova", {}, "unknown kind 'nova'"),
        ("setup", {"active": True, "why": ""}, r"setup: unknown member\(s\) why"),
        ("setup", {}, "setup: no active"),
        ("setup", {"active": 1}, "setup.active: expected bool"),
        ("setup", [], "setup: expected an object"),
        ("model-call", {"call": True}, "model-call.call: expected int"),
        ("model-call", {"step": 0.5}, "model-call.step: expected int"),
        ("model-call", {"user_texts": "x"}, "model-call.user_texts: expected an array"),
        ("model-call", {"user_texts": ["x", 1]}, r"model-call.user_texts\[1\]: expected str"),
        ("model-end", {"outcome": "well"}, "'well' is not a valid CallEnd"),
        ("model-end", {"texts": [{"phase": ""}]}, r"model-end.texts\[0\]: no text"),
        ("model-end", {"plans": [[{"step": "s", "status": None}]]}, "status: expected str"),
        ("settled", {"silence": "1", "owed": []}, "settled.silence: expected float"),
    ],
)
def test_an_invalid_mark_is_refused(kind: str, row: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        from_row(kind, row)


def test_a_value_of_a_wrong_type_is_refused_in_version_1_too() -> None:
    with pytest.raises(ValueError, match=r"step\.line: expected int"):
        from_former_row("step", {"name": "wait", "line": "7"})


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (ModelEnd(outcome=CallEnd.STATUS, status=503), "status 503"),
        (ModelEnd(outcome=CallEnd.FAILED), "failed server_error"),
        (ModelEnd(outcome=CallEnd.FAILED, code="insufficient_quota"), "failed insufficient_quota"),
        (ModelEnd(outcome=CallEnd.DROPPED), "dropped by the caller"),
        (ModelEnd(outcome=CallEnd.COMPLETED), "completed"),
    ],
)
def test_an_outcome_has_words_for_findings(end: ModelEnd, told: str) -> None:
    assert end.outcome_text == told
