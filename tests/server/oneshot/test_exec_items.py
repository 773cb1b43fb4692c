"""The eight items of the SDK, as `agent exec` tells them (mcp-cli-and-sdk "SDK thread items")."""

from typing import Any

import pytest
from mcp_side import tiny
from turns import play

pytestmark = pytest.mark.anyio

DONE = "[{message: done}]"
HOW = {"id": "", "type": "", "status": "in_progress"}


def without_id(item: dict[str, Any]) -> dict[str, Any]:
    assert item["id"].startswith("item_")
    return {name: value for name, value in item.items() if name != "id"}


async def test_each_item_has_one_id_from_its_start_to_its_end(tmp_path) -> None:
    played = await play(tmp_path, "[{run: 'true'}, {web_search: {query: q}}]", DONE)
    started = [e["item"]["id"] for e in played.events if e["type"] == "item.started"]
    completed = [e["item"]["id"] for e in played.events if e["type"] == "item.completed"]
    assert len(started) == 2
    assert set(started) < set(completed)
    assert len(set(completed)) == len(completed) == 3


async def test_a_message_is_told_once_when_it_is_complete(tmp_path) -> None:
    played = await play(tmp_path, '[{message: {deltas: [a, b]}}, {message: "c\\n"}]')
    assert [(how, without_id(item)) for how, item in played.of_type("agent_message")] == [
        ("completed", {"type": "agent_message", "text": "ab"}),
        ("completed", {"type": "agent_message", "text": "c\n"}),
    ]


async def test_a_proposed_plan_is_a_message(tmp_path) -> None:
    played = await play(tmp_path, "[{plan_item: {deltas: ['1. look']}}]")
    [(how, item)] = played.of_type("agent_message")
    assert (how, item["text"]) == ("completed", "1. look")


@pytest.mark.parametrize(
    ("raw", "text"), [(False, "First.\nSecond."), (True, "First.\nSecond.\nhidden")]
)
async def test_reasoning_is_its_summary_and_raw_where_that_is_asked_for(
    tmp_path, raw: bool, text: str
) -> None:
    reply = '[{reasoning: {summary: ["First.", "Second."], raw: ["hidden"]}}, {message: m}]'
    played = await play(tmp_path, reply, show_raw_agent_reasoning=raw)
    assert [(how, without_id(item)) for how, item in played.of_type("reasoning")] == [
        ("completed", {"type": "reasoning", "text": text})
    ]


async def test_reasoning_that_says_nothing_is_not_told(tmp_path) -> None:
    played = await play(tmp_path, '[{reasoning: {raw: ["hidden"]}}, {message: m}]')
    assert played.of_type("reasoning") == []


@pytest.mark.parametrize(
    ("command", "end"),
    [
        ("echo out; echo err >&2", {"exit_code": 0, "status": "completed"}),
        ("echo out; echo err >&2; exit 3", {"exit_code": 3, "status": "failed"}),
    ],
)
async def test_a_command_starts_and_ends_with_its_output_and_exit_code(
    tmp_path, command: str, end: dict[str, Any]
) -> None:
    played = await play(tmp_path, f"[{{run: '{command}'}}]", DONE)
    (first, started), (second, completed) = played.of_type("command_execution")
    assert (first, second) == ("started", "completed")
    assert without_id(started) == {
        "type": "command_execution",
        "command": started["command"],
        "aggregated_output": "",
        "exit_code": None,
        "status": "in_progress",
    }
    assert command in started["command"]
    assert completed == {**started, "aggregated_output": "out\nerr\n", **end}


async def test_a_file_change_names_kinds_and_absolute_paths(tmp_path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "b").write_text("old\n")
    (work / "c").write_text("away\n")
    patch = "{patch: {add: {a: 'x'}, update: {b: {old: old, new: new}}, delete: [c]}}"
    played = await play(tmp_path, f"[{patch}]", DONE)
    (first, started), (second, completed) = played.of_type("file_change")
    assert (first, second) == ("started", "completed")
    kinds = {change["path"]: change["kind"] for change in completed["changes"]}
    assert kinds == {f"{work}/a": "add", f"{work}/b": "update", f"{work}/c": "delete"}
    assert completed == {**started, "status": "completed"}
    assert started["status"] == "in_progress"
    assert all(set(change) == {"kind", "path"} for change in completed["changes"])


async def test_a_moved_file_shows_both_paths(tmp_path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "old").write_text("line\n")
    lines = ("Begin Patch", "Update File: old", "Move to: new")
    text = "".join(f"*** {line}\\n" for line in lines) + "@@\\n-line\\n+other\\n*** End Patch"
    played = await play(tmp_path, f'[{{patch: {{text: "{text}"}}}}]', DONE)
    _, (_, completed) = played.of_type("file_change")
    assert completed["changes"] == [
        {"kind": "delete", "path": f"{work}/old"},
        {"kind": "add", "path": f"{work}/new"},
    ]


async def test_a_patch_that_fails_is_a_failed_change(tmp_path) -> None:
    played = await play(
        tmp_path,
        "[{patch: {add: {a: 'x'}}}]",
        DONE,
        sandbox_mode="read-only",
    )
    assert [(how, item["status"]) for how, item in played.of_type("file_change")] == [
        ("started", "in_progress"),
        ("completed", "failed"),
    ]


@pytest.mark.socket
@pytest.mark.slow
@pytest.mark.usefixtures("mcp_sdk")
async def test_a_call_of_an_mcp_tool_ends_with_its_result_or_its_error(tmp_path) -> None:
    calls = (
        "[{mcp_call: {server: tiny, tool: add, arguments: {a: 2, b: 3}}},"
        " {mcp_call: {server: tiny, tool: fail, arguments: {}}}]"
    )
    played = await play(tmp_path, calls, DONE, mcp_servers={"tiny": tiny()})
    added, added_end, failed, failed_end = (
        without_id(item) for _, item in played.of_type("mcp_tool_call")
    )
    assert added == {
        "type": "mcp_tool_call",
        "server": "tiny",
        "tool": "add",
        "arguments": {"a": 2, "b": 3},
        "result": None,
        "error": None,
        "status": "in_progress",
    }
    result = added_end["result"]
    assert added_end == {**added, "result": result, "status": "completed"}
    assert set(result) == {"content", "structured_content"}
    assert "5" in str(result["content"])
    assert failed_end == {**failed, "error": failed_end["error"], "status": "failed"}
    assert failed_end["error"]["message"]


async def test_a_web_search_ends_with_its_query(tmp_path) -> None:
    played = await play(tmp_path, "[{web_search: {query: how}}, {message: m}]", web_search="live")
    started, completed = played.of_type("web_search")
    assert (started[0], completed[0]) == ("started", "completed")
    assert without_id(completed[1]) == {"type": "web_search", "query": "how"}


async def test_a_plan_is_one_list_that_is_completed_as_the_turn_ends(tmp_path) -> None:
    def plan(first: str, second: str) -> str:
        steps = f"[{{step: look, status: {first}}}, {{step: write, status: {second}}}]"
        return f"[{{update_plan: {{steps: {steps}}}}}]"

    played = await play(
        tmp_path, plan("inProgress", "pending"), plan("completed", "inProgress"), DONE
    )
    told = played.of_type("todo_list")
    assert [how for how, _ in told] == ["started", "updated", "completed"]
    assert len({item["id"] for _, item in told}) == 1
    assert without_id(told[0][1])["items"] == [
        {"text": "look", "completed": False},
        {"text": "write", "completed": False},
    ]
    assert told[1][1]["items"] == told[2][1]["items"]
    assert told[1][1]["items"][0] == {"text": "look", "completed": True}
    assert played.types[-3:] == ["item.completed", "item.completed", "turn.completed"]
    assert played.events[-3]["item"]["type"] == "agent_message"


async def test_a_failure_that_does_not_end_the_turn_is_an_error_item(tmp_path) -> None:
    played = await play(
        tmp_path, "fail: {status: 500}", "[{reroute: {model: other}}, {message: m}]"
    )
    errors = played.of_type("error")
    assert [how for how, _ in errors] == ["completed", "completed"]
    retried, rerouted = (without_id(item) for _, item in errors)
    assert set(retried) == {"type", "message"}
    assert "trying again (1/4)" in retried["message"]
    assert "other" in rerouted["message"]
    assert played.types[-1] == "turn.completed"
    assert "error" not in played.types


async def test_items_unknown_to_the_sdk_are_not_emitted(tmp_path) -> None:
    played = await play(tmp_path, "[{view_image: {path: none.png}}]", DONE)
    assert {event["item"]["type"] for event in played.events if "item" in event} == {
        "agent_message"
    }
