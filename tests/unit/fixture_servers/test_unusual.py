"""The unusual server has each habit that it claims, names what allows it, and stays correct.

A habit that got lost would make the suite's test against false alarms pass for nothing.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import threading
from typing import Any

import pytest
import yaml

from .conftest import Start
from .driver import SERVERS, Session
from .fake_model import COMPLETED, FakeModel, message

pytestmark = pytest.mark.socket
SPEC = SERVERS.parents[1] / "harness" / "protocol" / "spec"


def listing() -> list[list[str]]:
    """The habits as the server lists them: name, row, text."""
    ran = subprocess.run(
        [sys.executable, str(SERVERS / "unusual.py"), "list"], capture_output=True, check=True
    )
    return [line.split(None, 2) for line in ran.stdout.decode().splitlines()]


HABITS = listing()


def unusual(*habits: str) -> str:
    return " ".join(["unusual.py", *habits])


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


def played(server: Session, model: FakeModel, text: str = "hi") -> dict[str, Any]:
    """Play a turn with two deltas to its end; return the completed turn."""
    model.will(message("Hel", "lo"), COMPLETED)
    thread = server.start_thread()
    server.start_turn(thread, text)
    return server.wait("turn/completed")["turn"]


def failed(server: Session, model: FakeModel) -> dict[str, Any]:
    model.will(500)
    server.start_turn(server.start_thread(), "hi")
    return server.wait("turn/completed")["turn"]


def test_each_habit_names_the_point_of_the_book_that_allows_it() -> None:
    open_points = yaml.safe_load((SPEC / "unspecified.yaml").read_text())
    known = {row["id"] for row in open_points}
    for path in (SPEC / "requirements").glob("*.yaml"):
        known |= {row["id"] for row in yaml.safe_load(path.read_text())}
    assert len(HABITS) > 40
    assert [row for _, row, _ in HABITS if row not in known] == []


def test_unknown_habit_is_refused_with_the_list() -> None:
    ran = subprocess.run(
        [sys.executable, str(SERVERS / "unusual.py"), "humming"], capture_output=True
    )
    assert ran.returncode == 1
    assert b"unknown habit humming; there are all, others, uuid-ids" in ran.stderr


@pytest.mark.parametrize("habit", ["all", "others", *(habit for habit, _, _ in HABITS)])
def test_a_turn_comes_to_its_end_with_what_the_model_said(
    start: Start, model: FakeModel, habit: str
) -> None:
    with start(unusual(habit)) as server:
        thread = server.start_thread()
        model.will(message("Hel", "lo"), COMPLETED)
        server.start_turn(thread, "hi")
        completed = server.wait("turn/completed")["turn"]
        assert completed["status"] == "completed"
        assert completed["items"] == []
        said = [sent["item"] for sent in server.named("item/completed")]
        assert [item["text"] for item in said if item["type"] == "agentMessage"] == ["Hello"]
        assert "result" in server.request("thread/read", threadId=thread["id"])
        assert server.end() == 0
        assert server.stderr == b""


def test_all_together_are_in_an_order_of_their_own(start: Start, model: FakeModel) -> None:
    with start(unusual("all")) as server:
        played(server, model)
        assert server.until(lambda: story(server).count("thread/status/changed idle") == 2)
        told = [one for one in story(server) if "tokenUsage" not in one and one != "weather/ask"]
        assert told == [
            "weather/changed",
            "thread/started",
            "thread/status/changed idle",
            "answer",
            "thread/status/changed active",
            "turn/started",
            "weather/changed",
            "item/started userMessage",
            "answer",
            "error",
            "item/started agentMessage",
            "item/completed agentMessage",
            "item/completed userMessage",
            "turn/completed",
            "weather/changed",
            "thread/status/changed idle",
        ]


@pytest.mark.parametrize(
    ("habit", "deltas"),
    [("no-deltas", []), ("one-delta", ["Hello"]), ("empty-deltas", ["", "Hel", "", "lo"])],
)
def test_deltas(start: Start, model: FakeModel, habit: str, deltas: list[str]) -> None:
    with start(unusual(habit)) as server:
        played(server, model)
        assert [one["delta"] for one in server.named("item/agentMessage/delta")] == deltas


def test_extra_fields_are_in_every_object_but_an_empty_one(start: Start, model: FakeModel) -> None:
    with start(unusual("extra-fields")) as server:
        played(server, model)
        for sent in server.messages:
            assert sent["x-extra"]["method"] == "turn/completed"
            assert "x-extra" in (sent["result"] if "result" in sent else sent["params"])


def test_lines_look_as_their_habits_say(start: Start) -> None:
    looks = {
        "spaces": lambda line: line.startswith(b" \t {") and line.endswith(b"}\x20\t\r"),
        "unescaped": lambda line: b" " not in line,
        "all-escaped": lambda line: b"\\u0072\\u0065\\u0073" in line and b"result" not in line,
        "jsonrpc-member": lambda line: json.loads(line)["jsonrpc"] == "2.0",
        "keys-backwards": lambda line: list(json.loads(line)) == ["result", "id"],
        "whole-ids-as-fractions": lambda line: b'"id": 1.0' in line,
    }
    for habit, right in looks.items():
        with start(unusual(habit)) as server:
            assert server.request("initialize")["result"] == {"userAgent": "minimal"}
            assert right(server.lines[0]), (habit, server.lines)


def test_line_separators_of_unicode_are_left_as_they_are(start: Start) -> None:
    with start(unusual("unescaped", "extra-fields")) as server:
        server.request("initialize")
        assert len(server.lines[0].decode().splitlines()) > 1


def test_ids_have_no_prefix_and_name_the_same_things(start: Start, model: FakeModel) -> None:
    with start(unusual("uuid-ids")) as server:
        turn = played(server, model)
        assert len(turn["id"]) == 36
        (thread,) = {sent["threadId"] for sent in server.named("item/completed")}
        assert thread == server.named("thread/started")[0]["thread"]["id"]
        assert {sent["turnId"] for sent in server.named("item/completed")} == {turn["id"]}


def test_items_of_each_turn_are_numbered_from_1(start: Start, model: FakeModel) -> None:
    with start(unusual("item-ids-by-turn")) as server:
        played(server, model)
        assert [sent["item"]["id"] for sent in server.named("item/started")] == ["1", "2"]


def test_preview_and_turns_have_every_form(start: Start, model: FakeModel) -> None:
    for habit, first in (("preview-null", [None]), ("preview-absent", []), ("preview-cut", [""])):
        with start(unusual(habit)) as server:
            thread = server.start_thread()
            assert [thread[key] for key in ("preview",) if key in thread] == first
    with start(unusual("preview-cut", "turns-unasked", "times-with-fraction")) as server:
        played(server, model, "a long question")
        thread = server.named("thread/started")[0]["thread"]
        read = server.request("thread/read", threadId=thread["id"])["result"]["thread"]
        assert (read["preview"], read["turns"]) == ("a lon", [])
        assert read["createdAt"] % 1 == 0.25


def test_read_shows_not_loaded_and_turns_without_items(start: Start, model: FakeModel) -> None:
    with start(unusual("shown-not-loaded", "read-without-items")) as server:
        completed = played(server, model)
        thread = server.named("thread/started")[0]["thread"]
        whole = server.request("thread/read", threadId=thread["id"], includeTurns=True)
        assert whole["result"]["thread"]["status"] == {"type": "notLoaded"}
        assert whole["result"]["thread"]["turns"] == [completed]


def test_interrupt_leaves_the_cut_item_open_and_forgets_what_was_said(
    start: Start, model: FakeModel
) -> None:
    gate = threading.Event()
    model.will(*message("Hel", "lo")[:2], gate, *message("Hel", "lo")[2:], COMPLETED)
    with start(unusual("cut-items-left-open", "interrupted-forgotten")) as server:
        thread = server.start_thread()
        turn_id = server.answer(server.start_turn(thread, "hi"))["result"]["turn"]["id"]
        server.wait("item/started", 2)
        interrupt = server.request("turn/interrupt", threadId=thread["id"], turnId=turn_id)
        assert interrupt["result"] == {}
        assert server.wait("turn/completed")["turn"]["status"] == "interrupted"
        assert len(server.named("item/completed")) == 1
        read = server.request("thread/read", threadId=thread["id"], includeTurns=True)
        (turn,) = read["result"]["thread"]["turns"]
        assert [item["type"] for item in turn["items"]] == ["userMessage"]
        gate.set()


@pytest.mark.parametrize(
    ("habit", "error"),
    [
        ("error-kind-of-its-own", {"agentErrorInfo": "StarsMisaligned"}),
        ("error-kind-as-object", {"agentErrorInfo": {"stars": {"aligned": False}}}),
        ("error-kind-absent", {}),
    ],
)
def test_failed_turn_says_why_in_a_way_of_its_own(
    start: Start, model: FakeModel, habit: str, error: dict[str, Any]
) -> None:
    with start(unusual(habit, "system-error", "fails-in-silence")) as server:
        turn = failed(server, model)
        assert turn["error"].pop("message")
        assert (turn["status"], turn["error"]) == ("failed", error)
        assert "thread/status/changed systemError" in story(server)
        assert server.named("error") == []


def test_refusals_have_other_codes_and_bad_lines_an_answer(start: Start) -> None:
    with start(unusual("own-error-codes", "malformed-lines-answered", "no-handshake")) as server:
        error = server.request("thread/list")["error"]
        assert (error["code"], error["data"]) == (72601, {"was": -32601})
        assert "error" in server.request("initialize")
        server.write(b"{\n")
        assert server.until(lambda: len(server.lines) == 3)
        assert server.messages[2]["id"] is None


def test_failures_need_no_member_error(start: Start) -> None:
    with start(unusual("failures-in-own-form", "no-handshake")) as server:
        refused = server.request("thread/list")
        assert refused["failed"] is True
        assert "unknown method thread/list" in refused["because"]
        assert "error" not in refused


def test_capabilities_not_promised_are_left_out(start: Start, model: FakeModel) -> None:
    with start(unusual("error-absent", "reads-briefly")) as server:
        model.will(message("Hel", "lo"), COMPLETED)
        thread = server.request("thread/start")["result"]["thread"]
        said = [{"type": "text", "text": "hello"}]
        turn = server.request("turn/start", threadId=thread["id"], input=said)["result"]["turn"]
        assert "error" not in turn
        assert server.until(lambda: bool(server.named("turn/completed")))
        assert "error" not in server.named("turn/completed")[0]["turn"]
        read = server.request("thread/read", threadId=thread["id"])["result"]["thread"]
        assert read.keys() == {"id", "status"}


def test_requests_that_arrive_together_are_answered_last_first(start: Start) -> None:
    with start(unusual("answers-backwards")) as server:
        lines = [json.dumps({"method": "initialize", "id": n, "params": {}}) for n in (1, 2, 3)]
        server.write("\n".join([*lines, ""]).encode())
        assert server.until(lambda: len(server.lines) == 3)
        assert [sent["id"] for sent in server.messages] == [3, 2, 1]


def test_each_of_the_others_does_what_it_says(start: Start, model: FakeModel) -> None:
    names = ["answers-late", "flags-of-its-own", "own-requests", "own-notifications", "worries"]
    names += ["token-usage", "nulls-for-absent", "restricted-reads", "updated-never"]
    names += ["user-item-absent", "refuses-empty-input", "interrupts-anything"]
    with start(unusual(*names)) as server:
        model.will(message("Hel", "lo"), COMPLETED)
        result = server.request("thread/start")["result"]
        thread = result["thread"]
        assert result["sandbox"] == {"type": "readOnly", "access": {"type": "restricted"}}
        nothing = server.request("turn/start", threadId=thread["id"], input=[])
        assert "empty" in nothing["error"]["message"]
        server.answer(server.start_turn(thread, "hi"))
        assert server.until(lambda: story(server).count("weather/changed") == 3)
        told = story(server)
        assert told.index("thread/started") < told.index("answer")
        assert "weather/ask" in told
        assert server.named("error")[0]["willRetry"] is True
        assert server.named("thread/tokenUsage/updated")
        assert server.named("thread/status/changed")[0]["status"]["activeFlags"][0] == "thinking"
        (item,) = [sent["item"] for sent in server.named("item/completed")]
        assert (item["type"], item["phase"]) == ("agentMessage", None)
        read = server.request("thread/read", threadId=thread["id"])["result"]["thread"]
        assert read["updatedAt"] == read["createdAt"]
        interrupt = {"threadId": thread["id"], "turnId": "turn_0"}
        assert server.request("turn/interrupt", **interrupt)["result"] == {}


def test_lines_come_in_many_writes_or_many_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SERVERS))
    base, wire = (importlib.import_module(f"habits.{name}") for name in ("base", "wire"))
    assert wire.ManyWritesALine.row == "rpc.transport"
    written: list[bytes] = []
    monkeypatch.setattr(base.Habit, "write", lambda _, data: written.append(data))
    base.unusual(["many-writes-a-line"]).handle({"method": "initialize", "id": 1})
    assert {len(piece) for piece in written[:-1]} == {7}
    assert b"".join(written) == b'{"id": 1, "result": {"userAgent": "minimal"}}\n'
    written.clear()
    base.unusual(["many-lines-a-write"]).handle({"method": "thread/start", "id": 1})
    assert [piece.count(b"\n") for piece in written] == [2]
