"""The minimal server says exactly what the protocol document promises, in its own order.

Every message of a conversation is compared, not only the ones looked for; ids and times are
replaced by names first.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from .conftest import Start
from .driver import SERVERS, Session, session
from .fake_model import COMPLETED, FakeModel, message

pytestmark = pytest.mark.socket
SCRIPT = "minimal.py"


def shapes(server: Session, thread: dict[str, Any]) -> list[Any]:
    """Return the notifications of a thread, its id taken out and other ids named by first use."""
    names: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        kind = match[1]
        ordinal = sum(known.startswith(kind) for known in names.values()) + 1
        return names.setdefault(match[0], f"{kind}{ordinal}")

    found: list[Any] = []
    for sent in server.messages:
        if sent.get("params", {}).get("threadId") == thread["id"]:
            params = {key: value for key, value in sent["params"].items() if key != "threadId"}
            found.append([sent["method"], params])
    return json.loads(re.sub(r"(turn|item)_\d+", name, json.dumps(found)))


def turn(status: str, error: Any = None, name: str = "turn1") -> dict[str, Any]:
    return {"turn": {"id": name, "items": [], "status": status, "error": error}}


def opening(text: str) -> list[Any]:
    user = {"id": "item1", "type": "userMessage", "content": [{"type": "text", "text": text}]}
    return [
        ["turn/started", turn("inProgress")],
        ["thread/status/changed", {"status": {"type": "active", "activeFlags": []}}],
        ["item/started", {"turnId": "turn1", "item": user}],
        ["item/completed", {"turnId": "turn1", "item": user}],
    ]


def ending(status: str, error: Any = None) -> list[Any]:
    counted = ["thread/tokenUsage/updated", {"turnId": "turn1", "tokenUsage": None}]
    return [
        *([counted] if status == "completed" else []),
        ["thread/status/changed", {"status": {"type": "idle"}}],
        ["turn/completed", turn(status, error)],
    ]


def agent(method: str, text: str) -> list[Any]:
    item = {"id": "item2", "type": "agentMessage", "text": text}
    return [method, {"turnId": "turn1", "item": item}]


def delta(text: str) -> list[Any]:
    return ["item/agentMessage/delta", {"turnId": "turn1", "itemId": "item2", "delta": text}]


def test_initialize_is_answered_with_an_object(start: Start) -> None:
    with start(SCRIPT) as server:
        assert isinstance(server.request("initialize", clientInfo={})["result"], dict)
        assert server.end() == 0
        assert len(server.lines) == 1
        assert server.stderr == b""


def test_it_is_one_file_of_at_most_200_lines_that_needs_no_other_package() -> None:
    source = (SERVERS / SCRIPT).read_text()
    assert len(source.splitlines()) <= 200
    assert max(map(len, source.splitlines())) <= 100
    imported = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import)]
    froms = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    names = [alias.name for node in imported for alias in node.names]
    names += [str(node.module) for node in froms]
    assert names
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


def test_started_thread_has_the_six_keys_and_is_announced(start: Start, tmp_path: Path) -> None:
    with start(SCRIPT) as server:
        result = server.request("thread/start", cwd=str(tmp_path), sandbox="read-only")["result"]
        thread = result.pop("thread")
        assert result == {
            "model": "default-model",
            "modelProvider": "default",
            "cwd": str(tmp_path),
            "approvalPolicy": "never",
            "sandbox": {"type": "readOnly", "access": {"type": "fullAccess"}},
        }
        assert server.wait("thread/started") == {"thread": thread}
        assert thread.pop("createdAt") == thread.pop("updatedAt")
        assert re.fullmatch(r"thr_\d+", thread["id"])
        assert thread == {
            "id": thread["id"],
            "preview": "",
            "ephemeral": True,
            "modelProvider": "default",
            "status": {"type": "idle"},
            "path": None,
            "cwd": str(tmp_path),
        }


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("read-only", "readOnly"),
        ("workspace-write", "workspaceWrite"),
        ("danger-full-access", "dangerFullAccess"),
    ],
)
def test_sandbox_parameter_is_answered_by_its_policy(start: Start, asked: str, given: str) -> None:
    with start(SCRIPT) as server:
        result = server.request("thread/start", sandbox=asked)["result"]
        assert result["sandbox"]["type"] == given


def test_plain_turn_sends_the_whole_sequence(start: Start, model: FakeModel) -> None:
    model.will(message("Hel", "lo"), COMPLETED)
    with start(SCRIPT) as server:
        thread = server.start_thread()
        answer = server.answer(server.start_turn(thread, "hi"))["result"]["turn"]
        assert answer == {"id": answer["id"], "items": [], "status": "inProgress", "error": None}
        assert server.wait("turn/completed")["turn"]["id"] == answer["id"]
        assert shapes(server, thread) == [
            *opening("hi"),
            agent("item/started", ""),
            delta("Hel"),
            delta("lo"),
            agent("item/completed", "Hello"),
            *ending("completed"),
        ]
        first_methods = [sent.get("method") for sent in server.messages[:4]]
        assert first_methods == [None, "thread/started", None, "turn/started"]
    assert len(model.calls) == 1
    assert model.calls[0]["path"] == "/v1/responses"
    assert model.calls[0]["stream"] is True
    assert model.calls[0]["model"] == "default-model"


def test_message_without_deltas_still_makes_an_item(start: Start, model: FakeModel) -> None:
    model.will(message(text="all"), COMPLETED)
    with start(SCRIPT) as server:
        thread = server.start_thread()
        server.start_turn(thread, "hi")
        server.wait("turn/completed")
        items = [agent("item/started", "all"), agent("item/completed", "all")]
        assert shapes(server, thread) == [*opening("hi"), *items, *ending("completed")]


def test_second_turn_shows_the_model_the_first(start: Start, model: FakeModel) -> None:
    model.will(message("one"), COMPLETED)
    model.will(message("two"), COMPLETED)
    with start(SCRIPT) as server:
        thread = server.start_thread()
        for count, text in enumerate(("first", "second"), start=1):
            server.start_turn(thread, text)
            server.wait("turn/completed", count)
        turn_ids = [params["turn"]["id"] for params in server.named("turn/completed")]
        assert len(set(turn_ids)) == 2
    told = [(part["role"], part["content"]) for part in model.calls[1]["input"]]
    assert told == [("user", "first"), ("assistant", "one"), ("user", "second")]


def test_interrupt_ends_a_turn_whose_model_is_silent(start: Start, model: FakeModel) -> None:
    gate = threading.Event()
    model.will(*message("Hel", "lo")[:2], gate, *message("Hel", "lo")[2:], COMPLETED)
    with start(SCRIPT) as server:
        thread = server.start_thread()
        turn_id = server.answer(server.start_turn(thread, "hi"))["result"]["turn"]["id"]
        server.wait("item/agentMessage/delta")
        interrupt = {"threadId": thread["id"], "turnId": turn_id}
        assert server.request("turn/interrupt", **interrupt)["result"] == {}
        server.wait("turn/completed")
        gate.set()
        assert "error" in server.request("turn/interrupt", **interrupt)
        assert shapes(server, thread) == [
            *opening("hi"),
            agent("item/started", ""),
            delta("Hel"),
            agent("item/completed", "Hel"),
            *ending("interrupted"),
        ]


def test_interrupt_of_another_turn_is_refused(start: Start, model: FakeModel) -> None:
    gate = threading.Event()
    model.will(gate, *message("late"), COMPLETED)
    with start(SCRIPT) as server:
        thread = server.start_thread()
        server.answer(server.start_turn(thread, "hi"))
        refused = server.request("turn/interrupt", threadId=thread["id"], turnId="turn_0")
        assert refused["error"]["code"] == -32602
        gate.set()
        assert server.wait("turn/completed")["turn"]["status"] == "completed"


def test_second_turn_is_refused_while_one_runs(start: Start, model: FakeModel) -> None:
    gate = threading.Event()
    model.will(gate, *message("late"), COMPLETED)
    with start(SCRIPT) as server:
        thread = server.start_thread()
        server.answer(server.start_turn(thread, "hi"))
        assert "error" in server.answer(server.start_turn(thread, "too soon"))
        gate.set()
        server.wait("turn/completed")
        assert len(server.named("turn/started")) == 1


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([500], "500"),
        ([401], "401"),
        ([*message("Hel")[:2]], "did not come to the end"),
        ([{"type": "response.failed"}], "did not come to the end"),
        ([{"type": "response.output_text.delta"}], "delta"),
    ],
    ids=["http-500", "http-401", "disconnect", "response-failed", "nonsense"],
)
def test_model_failure_fails_the_turn(
    start: Start, model: FakeModel, parts: list[Any], said: str
) -> None:
    model.will(*parts)
    model.will(message("fine"), COMPLETED)
    with start(SCRIPT) as server:
        thread = server.start_thread()
        server.start_turn(thread, "hi")
        failed = server.wait("turn/completed")["turn"]
        assert failed["status"] == "failed"
        assert failed["items"] == []
        assert failed["error"]["agentErrorInfo"] == "Other"
        assert said in failed["error"]["message"]
        reported = server.named("error")
        assert [(r["willRetry"], r["error"]) for r in reported] == [(False, failed["error"])]
        assert len(server.named("item/started")) == len(server.named("item/completed"))
        server.start_turn(thread, "again")
        assert server.wait("turn/completed", 2)["turn"]["status"] == "completed"


def test_unreachable_model_fails_the_turn(tmp_path: Path) -> None:
    with session(SCRIPT, tmp_path, "") as server:
        server.start_turn(server.start_thread(), "hi")
        failed = server.wait("turn/completed")["turn"]
        assert failed["status"] == "failed"
        assert "unknown url type" in failed["error"]["message"]


def test_read_gives_turns_only_when_asked(start: Start, model: FakeModel) -> None:
    model.will(message("Hello"), COMPLETED)
    with start(SCRIPT) as server:
        thread = server.start_thread()
        server.start_turn(thread, "hi")
        completed = server.wait("turn/completed")["turn"]
        short = server.request("thread/read", threadId=thread["id"])["result"]["thread"]
        assert "turns" not in short
        assert short["preview"] == "hi"
        assert short["status"] == {"type": "idle"}
        whole = server.request("thread/read", threadId=thread["id"], includeTurns=True)
        (stored,) = whole["result"]["thread"]["turns"]
        assert {**stored, "items": []} == completed
        assert [item["type"] for item in stored["items"]] == ["userMessage", "agentMessage"]
        assert stored["items"][1]["text"] == "Hello"


def test_thread_of_an_earlier_process_is_gone_and_its_id_is_not_given_again(start: Start) -> None:
    with start(SCRIPT) as server:
        thread = server.start_thread()
    with start(SCRIPT) as server:
        assert "error" in server.request("thread/read", threadId=thread["id"])
        assert server.start_thread()["id"] != thread["id"]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("thread/list", {}, -32601),
        ("thread/read", {"threadId": "thr_0"}, -32602),
        ("thread/read", {"threadId": "../../etc/passwd"}, -32602),
        ("thread/read", {"threadId": "a\0b"}, -32602),
        ("thread/read", {"threadId": []}, -32602),
        ("thread/start", {"sandbox": "open"}, -32602),
        ("thread/start", {"cwd": 7}, -32602),
        ("turn/start", {"threadId": "thr_0", "input": []}, -32602),
        ("turn/interrupt", {"threadId": "thr_0"}, -32602),
    ],
)
def test_bad_request_is_refused_and_the_server_lives(
    start: Start, method: str, params: dict[str, Any], code: int
) -> None:
    with start(SCRIPT) as server:
        error = server.request(method, **params)["error"]
        assert error["code"] == code
        assert isinstance(error["message"], str)
        assert "result" in server.request("initialize")


@pytest.mark.parametrize("content", [None, {}, "hi", [1], [{"type": "text"}], [{"type": "smell"}]])
def test_bad_input_starts_no_turn(start: Start, content: Any) -> None:
    with start(SCRIPT) as server:
        thread = server.start_thread()
        answer = server.request("turn/start", threadId=thread["id"], input=content)
        assert answer["error"]["code"] == -32602
        assert server.named("turn/started") == []


@pytest.mark.parametrize("line", [b"{", b"\xff\xff", b"[" * 100_000, b"7", b'["id", "method"]'])
def test_line_that_is_no_request_is_passed_over(start: Start, line: bytes) -> None:
    with start(SCRIPT) as server:
        server.write(line + b"\n")
        assert "result" in server.request("initialize")
        assert len(server.lines) == 1


def test_end_of_input_ends_a_server_that_waits_for_its_model(
    start: Start, model: FakeModel
) -> None:
    gate = threading.Event()
    model.will(gate, COMPLETED)
    with start(SCRIPT) as server:
        server.answer(server.start_turn(server.start_thread(), "hi"))
        assert server.end() == 0
        assert server.stderr == b""
        gate.set()
