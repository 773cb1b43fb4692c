"""Rows that add, hold back and refuse messages at the edge."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.protocol.dialects.table import (
    DropRow,
    HoldRow,
    NotificationRow,
    OrderRow,
    RefuseRow,
)
from reference_server.dialect.ids import to_uuid
from reference_server.dialect.memory import MAX_BROADCASTS, Memory
from reference_server.dialect.transport import DialectTransport
from tests.unit.dialects.test_dialect_transport import NEWEST, THREAD, TURN, Lines, Wire

pytestmark = pytest.mark.anyio


def note(method: str, **params: Any) -> dict[str, Any]:
    return {"method": method, "params": {"threadId": "thr_1", **params}}


def turn(status: str) -> dict[str, Any]:
    return {"id": "turn_1", "items": [], "status": status, "error": None}


STARTED = note("turn/started", turn=turn("inProgress"))
COMPLETED = note("turn/completed", turn=turn("completed"))
ACTIVE = note("thread/status/changed", status={"type": "active", "activeFlags": []})
IDLE = note("thread/status/changed", status={"type": "idle"})
USAGE = note("thread/tokenUsage/updated", turnId="turn_1", tokenUsage={"total": {}, "last": {}})


def methods(written: list[Any]) -> list[str]:
    return [message.get("method", "answer") for message in written]


async def test_notification_is_added_before_a_step_with_values_of_the_thread() -> None:
    row = NotificationRow(
        "read/changed",
        {"thread": "{.threadId}", "turn": "{turn.id}"},
        before="thread/status/changed idle",
        needs=("{running}",),
    )
    wire = Wire(notifications=(row,), holds=())
    written = await wire.written(IDLE, STARTED, ACTIVE, IDLE, COMPLETED, IDLE)
    added = [message["params"] for message in written if message["method"] == "read/changed"]
    assert added == [{"thread": THREAD, "turn": TURN}]
    assert methods(written)[3:5] == ["read/changed", "thread/status/changed"]


async def test_added_notification_can_depend_on_the_params_of_the_request() -> None:
    row = NotificationRow("notice", {}, before="thread/read result", request=("includeTurns",))
    wire = Wire(notifications=(row,), holds=())
    thread = {"id": "thr_1", "status": {"type": "idle"}, "turns": []}
    written: list[Any] = []
    for number, wanted in enumerate((True, False)):
        params = {"threadId": THREAD, "includeTurns": wanted}
        await wire.received({"id": number, "method": "thread/read", "params": params})
        written += await wire.written({"id": number, "result": {"thread": dict(thread)}})
    assert methods(written) == ["notice", "answer", "answer"]


async def test_held_notification_comes_before_the_step_that_ends_it() -> None:
    row = HoldRow("thread/tokenUsage/updated", ("thread/status/changed idle",))
    wire = Wire(notifications=(), holds=(row,))
    assert await wire.written(STARTED, USAGE, note("thread/archived")) != []
    written = await wire.written(IDLE)
    assert methods(written) == ["thread/tokenUsage/updated", "thread/status/changed"]


async def test_word_that_the_release_refuses_is_answered_with_its_error() -> None:
    row = RefuseRow("thread/start", "approvalPolicy", ("reject",), "unknown variant `{word}`")
    wire = Wire(refusals=(row,))
    request = {"id": 1, "method": "thread/start", "params": {"approvalPolicy": "reject"}}
    read = await wire.received(request)
    assert read["method"] != "thread/start"
    error = {"code": -32601, "message": "there is no method"}
    (answer,) = await wire.written({"id": 1, "error": error})
    assert answer["error"] == {"code": -32600, "message": "unknown variant `reject`"}


async def test_fork_has_the_settings_of_its_source() -> None:
    wire = Wire()
    settings = {"model": "m", "approvalPolicy": "never", "sandbox": {"type": "dangerFullAccess"}}
    thread = {"id": "thr_1", "cwd": "/w", "modelProvider": "p", "updatedAt": 1}
    started = {**settings, "cwd": "/w", "modelProvider": "p", "thread": dict(thread)}
    await wire.received({"id": 1, "method": "thread/start", "params": {}})
    await wire.written({"id": 1, "result": started})
    await wire.written(STARTED)
    await wire.received({"id": 2, "method": "thread/fork", "params": {"threadId": THREAD}})
    written = await wire.written({"id": 2, "result": {"thread": {**thread, "id": "thr_2"}}})
    result = next(message["result"] for message in written if "result" in message)
    assert {name: result[name] for name in ("model", "approvalPolicy", "cwd")} == {
        "model": "m",
        "approvalPolicy": "never",
        "cwd": "/w",
    }


def command(method: str, status: str) -> dict[str, Any]:
    item = {"type": "commandExecution", "id": "c", "status": status}
    return note(method, turnId="turn_1", item=item)


async def test_held_step_is_lost_where_it_never_began() -> None:
    row = HoldRow(
        "item/started commandExecution",
        ("item/completed",),
        lost=("item/completed commandExecution declined",),
    )
    wire = Wire(notifications=(), holds=(row,), drops=(), orders=())
    started = command("item/started", "inProgress")
    assert methods(await wire.written(started, command("item/completed", "declined"))) == [
        "item/completed"
    ]
    assert methods(await wire.written(started, command("item/completed", "completed"))) == [
        "item/started",
        "item/completed",
    ]


async def test_step_can_come_before_the_one_that_the_server_wrote_first() -> None:
    row = OrderRow("thread/status/changed idle", "thread/archived")
    wire = Wire(notifications=(), holds=(), drops=(), orders=(row,))
    written = await wire.written(note("thread/archived"), IDLE)
    assert methods(written) == ["thread/status/changed", "thread/archived"]


async def test_item_that_an_interrupt_cuts_is_not_completed() -> None:
    row = DropRow(method="item/completed", needs=("{turn.interrupted}",))
    wire = Wire(notifications=(), holds=(), drops=(row,))
    await wire.written(STARTED)
    params = {"threadId": THREAD, "turnId": TURN}
    await wire.received({"id": 1, "method": "turn/interrupt", "params": params})
    written = await wire.written({"id": 1, "result": {}}, command("item/completed", "failed"))
    assert methods(written) == ["answer"]


async def test_a_refused_interrupt_cuts_nothing() -> None:
    row = DropRow(method="item/completed", needs=("{turn.interrupted}",))
    wire = Wire(notifications=(), holds=(), drops=(row,))
    await wire.written(STARTED)
    params = {"threadId": to_uuid("thr_99"), "turnId": TURN}
    await wire.received({"id": 1, "method": "turn/interrupt", "params": params})
    refusal = {"code": -32600, "message": "there is no thread thr_99"}
    written = await wire.written({"id": 1, "error": refusal}, command("item/completed", "failed"))
    assert methods(written) == ["answer", "item/completed"]


@pytest.mark.parametrize("method", ["thread/read", "thread/resume", "thread/fork"])
async def test_half_of_a_message_that_the_release_loses_is_not_in_stored_turns(method: str) -> None:
    wire = Wire()
    half = {"type": "agentMessage", "id": "item_1_2", "text": "ha"}
    params = {"threadId": "thr_1", "turnId": "turn_1"}
    error = {"message": "lost", "agentErrorInfo": None, "additionalDetails": None}
    await wire.written(
        note("item/completed", **params, item=half),
        note("error", **params, error=error, willRetry=True),
    )
    await wire.received({"id": 1, "method": method, "params": {"threadId": THREAD}})
    whole = {"type": "agentMessage", "id": "item_1_3", "text": "half"}
    turn = {"id": "turn_1", "status": "completed", "error": None, "items": [half, whole]}
    answer = {"id": 1, "result": {"thread": {"id": "thr_1", "turns": [turn]}}}
    written = await wire.written(answer)
    turns = next(one for one in written if "result" in one)["result"]["thread"]["turns"]
    assert [item["text"] for item in turns[0]["items"]] == ["half"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("thread/compact/start", {}),
        ("turn/start", {"input": [], "model": "other", "approvalPolicy": "never"}),
        ("turn/start", {"input": [], "sandboxPolicy": {"type": "workspaceWrite"}}),
    ],
)
async def test_a_refused_request_changes_no_fact_of_its_thread(
    method: str, params: dict[str, Any]
) -> None:
    facts = ("compacting", "model", "approvalPolicy", "sandbox")
    wire = Wire()

    def known() -> list[Any]:
        return [wire.edge.memory.thread_fact(fact, THREAD) for fact in facts]

    before = known()
    await wire.received({"id": 1, "method": method, "params": {"threadId": THREAD, **params}})
    assert known() != before
    await wire.written({"id": 1, "error": {"code": -32600, "message": "not loaded"}})
    assert known() == before


async def test_notification_for_everyone_reaches_the_other_connections() -> None:
    row = NotificationRow("notice", {}, after="thread/archived", everyone=True)
    wire = Wire(notifications=(row,), holds=())
    lines = Lines()
    dialect = NEWEST._replace(notifications=(), holds=())
    other = DialectTransport(lines, dialect, "/home", wire.edge.memory)
    assert methods(await wire.written(note("thread/archived"))) == ["thread/archived", "notice"]
    await other.send([json.dumps(IDLE).encode()])
    sent = [json.loads(line)["method"] for line in lines.sent]
    assert sent == ["notice", "thread/status/changed"]


def test_the_others_get_a_broadcast_once_and_only_the_newest_are_kept() -> None:
    memory, sender, receiver = Memory(), object(), object()
    for number in range(MAX_BROADCASTS + 5):
        memory.broadcast(sender, {"method": str(number)})
    assert memory.broadcasts_since(0, sender) == []
    assert memory.broadcasts_since(MAX_BROADCASTS + 4, receiver) == [
        {"method": str(MAX_BROADCASTS + 4)}
    ]
    assert len(memory.broadcasts_since(0, receiver)) == MAX_BROADCASTS
    assert memory.broadcasts_since(memory.broadcast_count, receiver) == []


@pytest.mark.parametrize(("text", "expected"), [("half", ["notice"]), ("whole", [])])
async def test_added_notification_can_depend_on_values_of_the_message(
    text: str, expected: list[str]
) -> None:
    row = NotificationRow("notice", {}, before="item/completed", where={"item.text": "!who*"})
    wire = Wire(notifications=(row,), holds=(), drops=(), orders=())
    item = {"type": "agentMessage", "id": "i", "text": text}
    written = await wire.written(note("item/completed", turnId="turn_1", item=item))
    assert methods(written) == [*expected, "item/completed"]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (HoldRow("thread/archived", ("thread/closed",), after=True), ["closed", "archived"]),
        (
            HoldRow("thread/archived", (), after=True, before=("thread/closed",)),
            ["archived", "closed"],
        ),
        (
            HoldRow("thread/archived", ("thread/closed",), after=True, where={"threadId": "other"}),
            ["archived", "closed"],
        ),
        (
            HoldRow("thread/archived", ("thread/closed",), after=True, unless=("{.threadId}",)),
            ["archived", "closed"],
        ),
        (
            HoldRow("thread/archived", (), before=("thread/closed",), lost=("thread/closed",)),
            ["closed"],
        ),
    ],
)
async def test_held_step_comes_after_before_or_never(row: HoldRow, expected: list[str]) -> None:
    wire = Wire(notifications=(), holds=(row,), drops=(), orders=())
    written = await wire.written(note("thread/archived"), note("thread/closed"))
    assert [method.removeprefix("thread/") for method in methods(written)] == expected


async def test_item_that_a_row_adds_is_remembered_as_one_of_the_server() -> None:
    item = {"type": "userMessage", "id": "u", "content": []}
    rows = (
        NotificationRow("item/started", {"threadId": THREAD, "item": item}, after="turn/started"),
        NotificationRow("notice", {}, before="turn/completed", needs=("{turn.user}",)),
    )
    wire = Wire(notifications=rows, holds=(), drops=(), orders=())
    assert methods(await wire.written(STARTED, COMPLETED)) == [
        "turn/started",
        "item/started",
        "notice",
        "turn/completed",
    ]


async def test_a_thread_is_in_review_until_the_turn_of_the_review_ends() -> None:
    row = NotificationRow("notice", {"of": "{thread.reviewing}"}, before="thread/archived")
    row = row._replace(needs=("{thread.reviewing}",))
    wire = Wire(notifications=(row,), holds=(), drops=(), orders=())
    params = {"threadId": THREAD, "target": {"type": "commit", "sha": "a"}}
    await wire.received({"id": 1, "method": "review/start", "params": params})
    result = {"turn": turn("inProgress"), "reviewThreadId": "thr_1"}
    await wire.written({"id": 1, "result": result}, STARTED)
    during = await wire.written(note("thread/archived"))
    assert during[0]["params"] == {"of": "commit"}
    assert methods(await wire.written(COMPLETED, note("thread/archived"))) == [
        "turn/completed",
        "thread/archived",
    ]


@pytest.mark.parametrize(("used", "is_full"), [(99, False), (100, True)])
async def test_a_thread_is_full_from_the_limit_of_the_settings_on(
    used: int, is_full: bool, tmp_path: Path
) -> None:
    row = NotificationRow("notice", {}, before="thread/archived", needs=("{thread.isFull}",))
    (tmp_path / "config.toml").write_text("model_auto_compact_token_limit = 100")
    wire = Wire()
    rows = NEWEST._replace(notifications=(row,), holds=(), drops=(), orders=())
    wire.edge = DialectTransport(wire.lines, rows, str(tmp_path))
    usage = {"total": {}, "last": {"totalTokens": used}}
    await wire.written(STARTED, note("thread/tokenUsage/updated", turnId="t", tokenUsage=usage))
    written = await wire.written(note("thread/archived"))
    assert methods(written) == ["notice"] * is_full + ["thread/archived"]
    compacted = note("item/completed", turnId="t", item={"type": "contextCompaction", "id": "c"})
    assert methods(await wire.written(compacted, note("thread/archived")))[1:] == [
        "thread/archived"
    ]
