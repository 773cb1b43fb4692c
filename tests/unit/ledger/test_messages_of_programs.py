"""Messages that are gathered from exec, from agent mcp and from SDKs."""

from __future__ import annotations

import json

import pytest

from harness.judge.ledger.record import record_trace
from harness.protocol.spec.loading import load_book
from tests.rules.case import Written
from tests.rules.command_talk import CommandTalk
from tests.rules.sdk_talk import SdkTalk
from tests.rules.streams import StreamTalk, command

BOOK = load_book()


def told(talk: Written) -> dict[str, set[str]]:
    """The members that were seen of each message."""
    spoken = record_trace(BOOK, talk.trace()).messages
    return {message: {*members} for message, members in spoken.items()}


def test_an_event_is_a_message_and_an_item_in_it_is_named_by_its_type() -> None:
    found = told(StreamTalk().process().opens().started(command()).done())
    assert {*found} == {
        *("event thread.started", "event turn.started"),
        *("event item.started", "event turn.completed"),
    }
    assert "event.item<command_execution>.exit_code" in found["event item.started"]


def test_standard_input_of_an_agent_is_not_one_of_its_messages() -> None:
    assert told(StreamTalk().process(prompt=json.dumps({"type": "turn.started"}))) == {}


def test_json_that_a_command_prints_is_a_message() -> None:
    entry = {"name": "docs", "transport": {"type": "stdio", "args": []}}
    talk = CommandTalk().asks("list", "--json").ends(json.dumps([entry]))
    talk.asks("get", "docs", "--json").ends("Error: no such server").asks("list").ends("[{}]")
    found = told(talk)
    assert {*found} == {"output mcp list --json"}
    assert "output[].transport<stdio>.args" in found["output mcp list --json"]


HOSTILE = [
    "[" * 100_000,
    "1" * 5000,
    '[{"name": 1, "transport": [], "auth_status": {}}]',
    "[null, 3]",
]


@pytest.mark.parametrize("printed", HOSTILE, ids=["deep", "long-number", "types", "entries"])
@pytest.mark.parametrize("written", [None, "a = " + "[" * 100_000, "mcp_servers = 3"])
def test_nothing_that_a_command_prints_or_writes_breaks_an_observer(
    printed: str, written: str | None
) -> None:
    talk = CommandTalk().config(written)
    for words in (["list", "--json"], ["get", "docs", "--json"], ["list"], ["add", "a", "--", "x"]):
        talk.asks(*words).ends(printed, status=-9)
    assert record_trace(BOOK, talk.trace()).crashes == []


def test_the_result_of_an_sdk_is_a_message() -> None:
    found = told(SdkTalk().driver().runs())
    assert {*found} == {"result run"}
    assert {"result.finalResponse", "result.usage.input_tokens"} <= found["result run"]
