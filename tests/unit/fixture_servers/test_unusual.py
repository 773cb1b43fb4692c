"""The unusual server keeps every promise of the protocol document and has each habit it claims.

A habit that got lost would make the suite's test against false alarms pass for nothing.
"""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from .conftest import Start
from .driver import Session
from .fake_model import COMPLETED, FakeModel, message

pytestmark = pytest.mark.socket
SCRIPT = "unusual.py"


def bare(value: Any) -> Any:
    """Return the value without the extra fields."""
    if isinstance(value, dict):
        return {key: bare(value[key]) for key in value if key != "x-extra"}
    return [bare(element) for element in value] if isinstance(value, list) else value


def story(server: Session) -> list[str]:
    """Return the kinds of the messages in order, answers as `answer`, statuses by their type."""
    told: list[str] = []
    for sent in server.messages:
        method = sent.get("method", "answer")
        status = sent.get("params", {}).get("status", {}).get("type", "")
        item = sent.get("params", {}).get("item", {}).get("type", "")
        told.append(" ".join(filter(None, (method, status, item))))
    return told


def test_whole_conversation_is_legal_and_in_its_own_order(start: Start, model: FakeModel) -> None:
    model.will(message("Hel", "lo"), COMPLETED)
    with start(SCRIPT) as server:
        thread = server.start_thread()
        server.start_turn(thread, "hi")
        assert server.until(lambda: story(server).count("thread/status/changed idle") == 2)
        assert story(server) == [
            "weather/changed",
            "thread/status/changed idle",
            "thread/started",
            "answer",
            "thread/status/changed active",
            "turn/started",
            "weather/changed",
            "item/started userMessage",
            "answer",
            "item/started agentMessage",
            "item/completed agentMessage",
            "item/completed userMessage",
            "turn/completed",
            "thread/status/changed idle",
        ]
        answer, started, completed = (
            bare(server.answer(2)["result"]),
            bare(server.named("turn/started")[0]),
            bare(server.named("turn/completed")[0]),
        )
        running = {**answer["turn"], "items": [], "status": "inProgress", "error": None}
        assert answer == {"turn": running}
        assert started == {"threadId": thread["id"], "turn": running}
        done = {**running, "status": "completed"}
        assert completed == {"threadId": thread["id"], "turn": done}


def test_first_turn_has_no_delta_and_the_second_has_it_whole(
    start: Start, model: FakeModel
) -> None:
    model.will(message("Hel", "lo"), COMPLETED)
    model.will(message("Good", "bye"), COMPLETED)
    with start(SCRIPT) as server:
        thread = server.start_thread()
        server.start_turn(thread, "hi")
        server.wait("turn/completed")
        assert server.named("item/agentMessage/delta") == []
        server.start_turn(thread, "bye")
        server.wait("turn/completed", 2)
        deltas = server.named("item/agentMessage/delta")
        assert [sent["delta"] for sent in deltas] == ["", "Goodbye"]
        last = [sent["item"] for sent in server.named("item/completed")][2]
        assert last["text"] == "Goodbye"
        assert {sent["itemId"] for sent in deltas} == {last["id"]}


def test_every_line_has_extra_fields_and_careless_line_ends(start: Start) -> None:
    with start(SCRIPT) as server:
        server.start_thread()
        server.wait("thread/started")
        for line in list(server.lines):
            assert len(line.decode().splitlines()) > 1
            assert line.startswith(b"  {")
            sent = json.loads(line)
            assert sent["x-extra"]["method"] == "turn/completed"
            assert sent["jsonrpc"] == "2.0"
        assert list(server.messages[0])[-2:] == ["method", "jsonrpc"]


def test_interrupt_leaves_the_cut_item_open(start: Start, model: FakeModel) -> None:
    gate = threading.Event()
    model.will(*message("Hel", "lo")[:2], gate, *message("Hel", "lo")[2:], COMPLETED)
    with start(SCRIPT) as server:
        thread = server.start_thread()
        turn_id = server.answer(server.start_turn(thread, "hi"))["result"]["turn"]["id"]
        server.wait("item/started", 2)
        interrupt = server.request("turn/interrupt", threadId=thread["id"], turnId=turn_id)
        assert interrupt["result"] == {}
        assert bare(server.wait("turn/completed")["turn"]) == {
            "id": turn_id,
            "items": [],
            "status": "interrupted",
            "error": None,
        }
        kinds = [sent["item"]["type"] for sent in server.named("item/completed")]
        assert kinds == ["userMessage"]
        gate.set()


@pytest.mark.parametrize("parts", [[500], [*message("Hel")[:2]]], ids=["http-500", "disconnect"])
def test_failed_turn_leaves_system_error_and_no_error_notification(
    start: Start, model: FakeModel, parts: list[Any]
) -> None:
    model.will(*parts)
    with start(SCRIPT) as server:
        thread = server.start_thread()
        server.start_turn(thread, "hi")
        failed = server.wait("turn/completed")["turn"]
        assert failed["status"] == "failed"
        assert failed["error"]["agentErrorInfo"] == "StarsMisaligned"
        assert server.until(lambda: "thread/status/changed systemError" in story(server))
        assert server.named("error") == []


def test_read_gives_the_live_status_and_turns_without_items(start: Start, model: FakeModel) -> None:
    model.will(message("Hello"), COMPLETED)
    with start(SCRIPT) as server:
        thread = server.start_thread()
        server.start_turn(thread, "hi")
        completed = server.wait("turn/completed")["turn"]
        short = server.request("thread/read", threadId=thread["id"])["result"]["thread"]
        assert short["turns"] == []
        assert short["status"]["type"] == "idle"
        assert short["updatedAt"] >= short["createdAt"]
        whole = server.request("thread/read", threadId=thread["id"], includeTurns=True)
        assert bare(whole["result"]["thread"]["turns"]) == [bare(completed)]


def test_refusals_have_other_codes_and_bad_lines_no_answer(start: Start) -> None:
    with start(SCRIPT) as server:
        error = server.request("thread/list")["error"]
        assert error["code"] == 72601
        assert bare(error["data"]) == {"was": -32601}
        server.write(b"{\n\xff\n")
        assert "result" in server.request("initialize")
        assert story(server) == ["weather/changed", "answer", *["weather/changed"] * 2, "answer"]
