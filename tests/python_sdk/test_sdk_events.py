"""Events and items, from the lines of an agent."""

import json
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agent_sdk
from agent_sdk import (
    AgentMessageItem,
    CommandExecutionItem,
    ErrorItem,
    FileChange,
    FileChangeItem,
    ItemCompletedEvent,
    ItemStartedEvent,
    ItemUpdatedEvent,
    McpToolCallItem,
    ProtocolError,
    ReasoningItem,
    ThreadError,
    ThreadErrorEvent,
    ThreadEvent,
    ThreadStartedEvent,
    TodoItem,
    TodoListItem,
    TurnCompletedEvent,
    TurnFailedEvent,
    TurnStartedEvent,
    UnknownEvent,
    UnknownItem,
    Usage,
    WebSearchItem,
)
from agent_sdk.events import parse_event, parse_line
from agent_sdk.items import parse_item
from agent_sdk.lines import Lines

MESSAGE = {"id": "item_0", "type": "agent_message", "text": "hi"}
EVENTS: list[tuple[dict[str, Any], ThreadEvent]] = [
    (
        {"type": "thread.started", "thread_id": "thr_1"},
        ThreadStartedEvent(thread_id="thr_1"),
    ),
    ({"type": "turn.started"}, TurnStartedEvent()),
    (
        {"type": "item.started", "item": MESSAGE},
        ItemStartedEvent(item=AgentMessageItem(id="item_0", text="hi")),
    ),
    (
        {"type": "item.updated", "item": MESSAGE},
        ItemUpdatedEvent(item=AgentMessageItem(id="item_0", text="hi")),
    ),
    (
        {"type": "item.completed", "item": MESSAGE},
        ItemCompletedEvent(item=AgentMessageItem(id="item_0", text="hi")),
    ),
    (
        {
            "type": "turn.completed",
            "usage": {"input_tokens": 1, "cached_input_tokens": 2, "output_tokens": 3},
        },
        TurnCompletedEvent(usage=Usage(input_tokens=1, cached_input_tokens=2, output_tokens=3)),
    ),
    (
        {"type": "turn.failed", "error": {"message": "no"}},
        TurnFailedEvent(error=ThreadError(message="no")),
    ),
    ({"type": "error", "message": "no"}, ThreadErrorEvent(message="no")),
]
ITEMS = [
    (
        {"type": "agent_message", "text": "t", "id": "i"},
        AgentMessageItem(text="t", id="i"),
    ),
    ({"type": "reasoning", "text": "t"}, ReasoningItem(text="t")),
    (
        {
            "type": "command_execution",
            "command": "ls",
            "aggregated_output": "a",
            "exit_code": 0,
            "status": "completed",
        },
        CommandExecutionItem(command="ls", aggregated_output="a", exit_code=0, status="completed"),
    ),
    (
        {
            "type": "command_execution",
            "command": "ls",
            "aggregated_output": "",
            "exit_code": None,
            "status": "in_progress",
        },
        CommandExecutionItem(command="ls", status="in_progress"),
    ),
    (
        {
            "type": "file_change",
            "changes": [{"kind": "add", "path": "/a"}, {"kind": "delete", "path": "/b"}],
            "status": "completed",
        },
        FileChangeItem(
            changes=(
                FileChange(kind="add", path="/a"),
                FileChange(kind="delete", path="/b"),
            ),
            status="completed",
        ),
    ),
    (
        {
            "type": "mcp_tool_call",
            "server": "s",
            "tool": "t",
            "arguments": {"a": [1]},
            "result": {"content": []},
            "status": "completed",
        },
        McpToolCallItem(
            server="s",
            tool="t",
            arguments={"a": [1]},
            result={"content": []},
            status="completed",
        ),
    ),
    ({"type": "web_search", "query": "q"}, WebSearchItem(query="q")),
    (
        {
            "type": "todo_list",
            "items": [
                {"text": "a", "completed": True},
                {"text": "b", "completed": False},
            ],
        },
        TodoListItem(
            items=(TodoItem(text="a", completed=True), TodoItem(text="b", completed=False))
        ),
    ),
    ({"type": "error", "message": "m"}, ErrorItem(message="m")),
]


@pytest.mark.parametrize(("raw", "event"), EVENTS, ids=lambda one: str(one)[:24])
def test_each_event_has_a_class(raw: dict[str, Any], event: ThreadEvent) -> None:
    parsed = parse_line(json.dumps(raw).encode())
    assert parsed == event
    assert parsed is not None
    assert parsed.type == raw["type"]
    assert parsed.raw == raw


@pytest.mark.parametrize(("raw", "item"), ITEMS, ids=lambda one: str(one)[:24])
def test_each_item_has_a_class(raw: dict[str, Any], item: object) -> None:
    parsed = parse_item(raw)
    assert parsed == item
    assert parsed.type == raw["type"]
    assert parsed.raw == raw
    assert parsed.id == raw.get("id")


def test_the_classes_have_the_names_of_the_specification() -> None:
    """Its list of exported types, without the three for options, which are keywords here."""
    names = """ThreadEvent ThreadStartedEvent TurnStartedEvent TurnCompletedEvent TurnFailedEvent
        ItemStartedEvent ItemUpdatedEvent ItemCompletedEvent ThreadError ThreadErrorEvent Usage
        ThreadItem AgentMessageItem ReasoningItem CommandExecutionItem FileChangeItem
        McpToolCallItem WebSearchItem TodoListItem ErrorItem ApprovalMode SandboxMode
        ModelReasoningEffort WebSearchMode RunResult RunStreamedResult Input UserInput"""
    assert set(names.split()) <= set(agent_sdk.__all__)
    assert all(hasattr(agent_sdk, name) for name in agent_sdk.__all__)


def test_unknown_members_are_kept() -> None:
    raw = {"type": "item.completed", "item": {**MESSAGE, "phase": "final"}, "at": 7}
    event = parse_event(raw)
    assert isinstance(event, ItemCompletedEvent)
    assert event.raw["at"] == 7
    assert event.item.raw["phase"] == "final"


def test_unknown_types_are_kept() -> None:
    assert parse_event({"type": "turn.paused", "for": 3}) == UnknownEvent(
        type="turn.paused", raw={"type": "turn.paused", "for": 3}
    )
    event = parse_event({"type": "item.started", "item": {"id": "i", "type": "dream", "of": "x"}})
    assert isinstance(event, ItemStartedEvent)
    assert event.item == UnknownItem(
        type="dream", id="i", raw={"id": "i", "type": "dream", "of": "x"}
    )


@pytest.mark.parametrize(
    ("raw", "event"),
    [
        ({"type": "turn.completed"}, TurnCompletedEvent(usage=None)),
        ({"type": "turn.completed", "usage": None}, TurnCompletedEvent(usage=None)),
        ({"type": "turn.completed", "usage": {}}, TurnCompletedEvent(usage=Usage())),
        (
            {"type": "turn.completed", "usage": {"input_tokens": "x", "output_tokens": 2.0}},
            TurnCompletedEvent(usage=Usage(output_tokens=2)),
        ),
        ({"type": "turn.failed"}, TurnFailedEvent(error=ThreadError(message=""))),
        ({"type": "error", "message": 7}, ThreadErrorEvent(message="")),
        (
            {"type": "item.completed", "item": {"type": "todo_list", "items": [1, {}]}},
            ItemCompletedEvent(item=TodoListItem(items=(TodoItem(text="", completed=False),))),
        ),
        (
            {
                "type": "item.completed",
                "item": {"type": "command_execution", "exit_code": True},
            },
            ItemCompletedEvent(item=CommandExecutionItem(command="")),
        ),
    ],
)
def test_a_member_that_is_missing_or_of_another_type_is_empty(raw, event) -> None:
    assert parse_event(raw) == event


@pytest.mark.parametrize(
    "raw",
    [
        {"type": "thread.started"},
        {"type": "thread.started", "thread_id": 7},
        {"type": "item.completed"},
        {"type": "item.started", "item": "x"},
    ],
)
def test_an_event_without_what_it_is_about_is_unknown(raw: dict[str, Any]) -> None:
    assert parse_event(raw) == UnknownEvent(type=raw["type"], raw=raw)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)
_KINDS = [event["type"] for event, _ in EVENTS]
_ITEMS = st.fixed_dictionaries(
    {"type": st.sampled_from([raw["type"] for raw, _ in ITEMS])},
    optional=dict.fromkeys(("id", "text", "items", "changes", "exit_code", "arguments"), _JSON),
)


@given(
    st.fixed_dictionaries(
        {"type": st.sampled_from(_KINDS)},
        optional={"thread_id": _JSON, "item": _JSON | _ITEMS, "usage": _JSON, "error": _JSON},
    )
)
def test_any_members_give_an_event_that_can_be_shown_and_hashed(raw: dict[str, Any]) -> None:
    event = parse_event(raw)
    assert event.type == raw["type"]
    assert event.raw == raw
    hash(event)
    assert pickle.loads(pickle.dumps(event)) == event


def test_events_and_items_cannot_be_changed() -> None:
    event = parse_event({"type": "item.completed", "item": MESSAGE})
    assert isinstance(event, ItemCompletedEvent)
    for one in (event, event.item):
        with pytest.raises(FrozenInstanceError):
            one.type = "x"  # type: ignore[assignment, misc]


@pytest.mark.parametrize(
    "line",
    [
        b"warming up",
        b"{",
        b"[1]",
        b"7",
        b"null",
        b'"turn.started"',
        b"{}",
        b'{"type": 7}',
        b'{"type": null}',
        b"[" * 100_000,
        b'{"type": ' + b"9" * 5_000 + b"}",
    ],
)
def test_an_invalid_event_is_refused_with_its_line(line: bytes) -> None:
    with pytest.raises(ProtocolError) as told:
        parse_line(line)
    assert told.value.line[:20] == line.decode()[:20]
    assert len(str(told.value)) < 600


@pytest.mark.parametrize("line", [b"", b"  \t", b"\r", b"\xef\xbb\xbf"])
def test_a_blank_line_is_no_event(line: bytes) -> None:
    assert parse_line(line) is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"turn.started"}\r',
        b'  {"type":"turn.started"} ',
        b'\xef\xbb\xbf{"type":"turn.started"}',
    ],
)
def test_space_around_an_event_does_no_harm(line: bytes) -> None:
    assert parse_line(line) == TurnStartedEvent()


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    event = parse_line(b'{"type":"error","message":"a\xffb"}')
    assert event == ThreadErrorEvent(message="a\ufffdb")


@given(st.lists(st.binary(max_size=6), max_size=6), st.data())
def test_lines_are_the_same_however_the_bytes_arrive(parts: list[bytes], data) -> None:
    whole = b"\n".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    lines, found = Lines(), []
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        found += lines.feed(whole[start:end])
    *ended, rest = whole.split(b"\n")
    assert (found, lines.rest()) == (ended, rest)


def test_a_line_without_end_does_not_fill_the_memory() -> None:
    lines = Lines(longest=100)
    assert lines.feed(b"x" * 200 + b"\n") == [b"x" * 200]
    lines.feed(b"x" * 60)
    with pytest.raises(ProtocolError, match="more than 100 bytes"):
        lines.feed(b"x" * 60)
