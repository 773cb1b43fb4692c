"""Model answers that never end: the call fails without retry, and its text so far is kept."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from model_side import CREATED, Part, Reply, delta, done, event, function_call, message_item, opened
from peaks import peak_of
from session_peer import Message, Peer, config, session

from reference_server.engine import items
from reference_server.model import limits
from reference_server.model.errors import ModelError
from reference_server.model.sse import EVENT_LIMIT
from tests.sampling import one_in

SECTION = event("response.reasoning_summary_part.added", output_index=0, summary_index=0)


async def failed(home, parts: Sequence[Part], words: str) -> Peer:
    """Play an answer that would never end, though the provider allows retries."""
    never = anyio.Event()
    settings = config(stream_max_retries=3)
    async with session(home, [Reply([CREATED, *parts, never])], settings=settings) as peer:
        end = await peer.run_turn(await peer.start_thread())
        # The stream was closed, not waited for.
        with anyio.fail_after(5):
            await peer.side.dropped.wait()
    assert end["status"] == "failed"
    error: Message = end["error"]
    assert error["message"] == "The model's answer is too long"
    assert words in error["additionalDetails"]
    assert len(peer.side.bodies) == 1
    return peer


async def test_deltas_without_end(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_TEXT", 1 << 20)
    piece = "a" * 1000
    peer = await failed(tmp_path, [opened(), *[delta(piece)] * 1100], "1 Mi characters of text")
    [item] = peer.completed_items("agentMessage")
    assert item["text"] == piece * 1048


@pytest.mark.parametrize("kind", ["summary_text", "text"])
async def test_reasoning_without_end(tmp_path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(limits, "MAX_TEXT", 1 << 20)
    fields: dict[str, Any] = {"output_index": 0, "summary_index": 0, "content_index": 0}
    piece = event(f"response.reasoning_{kind}.delta", **fields, delta="a" * 1000)
    peer = await failed(tmp_path, [piece] * 1100, "1 Mi characters of text")
    [item] = peer.completed_items("reasoning")
    assert [len(text) for text in item["summary"] + item["content"]] == [1_048_000]


async def test_whole_items_without_end(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_TEXT", 1 << 20)
    item = done(message_item("a" * 100_000))
    peer = await failed(tmp_path, [item] * 12, "1 MiB of items")
    assert len(peer.completed_items("agentMessage")) == 10


async def test_events_without_meaning_and_end(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_BYTES", 1 << 20)
    await failed(tmp_path, [b": comment\n\n" + b"event: x\n" * 10_000] * 12, "1 MiB of events")


@pytest.mark.parametrize("part", [opened(), done(message_item("a")), SECTION])
async def test_items_without_end(tmp_path, monkeypatch: pytest.MonkeyPatch, part: bytes) -> None:
    monkeypatch.setattr(limits, "MAX_ITEMS", 10)
    await failed(tmp_path, [part] * 11, "10 items")


async def test_calls_without_end(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CALLS", 10)
    call = done(function_call("exec_command", cmd="touch made"))
    peer = await failed(tmp_path, [call] * 11, "10 calls of tools")
    # An answer that was not whole is not acted upon.
    assert peer.completed_items("commandExecution") == []


async def test_blocks_of_reasoning_beyond_the_last_go_to_the_last(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items, "MAX_PARTS", 2)
    deltas = [
        event("response.reasoning_text.delta", output_index=0, content_index=at, delta=str(at))
        for at in range(4)
    ]
    whole = event("response.completed", response={"usage": None})
    async with session(tmp_path, [Reply([CREATED, *deltas, whole])]) as peer:
        await peer.run_turn(await peer.start_thread())
    [item] = peer.completed_items("reasoning")
    assert item["content"] == ["0", "123"]


@pytest.mark.parametrize(
    ("spelled", "text"),
    [
        (r"a\ud83d\ude00b", "a😀b"),
        (r"a\uD83Db", "a?b"),
        (r"\ude00\ud83d", "??"),
        (r"\\ud83d", r"\ud83d"),
        (r"\\\ud83d", "\\?"),
        (r"\ud83d\ud83d\ude00", "?😀"),
    ],
)
async def test_half_characters_are_replaced_and_whole_ones_stay(
    tmp_path, spelled: str, text: str
) -> None:
    start = delta("@").decode()
    piece = start.replace('"@"', f'"{spelled}"').encode()
    whole = event("response.completed", response={"usage": None})
    async with session(tmp_path, [Reply([CREATED, piece, whole])]) as peer:
        await peer.run_turn(await peer.start_thread())
    [item] = peer.completed_items("agentMessage")
    assert item["text"] == text


READING = """
from reference_server.model.events import read_event
from reference_server.model.errors import ModelError
from reference_server.model.sse import SseParser

unit, size = sys.argv[1].encode(), int(sys.argv[2])
head = b'data: {"type":"response.output_item.done","item":{"a":"\\\\ud83d\\\\ude00","b":['
block = unit * (65536 // len(unit))
begin()
parser = SseParser()
parser.feed(head)
for _ in range((size - len(head) - 8) // len(block)):
    assert parser.feed(block) == []
[data] = parser.feed(b"0]}}" + bytes([10, 10]))
end(type(read_event(data)).__name__)
"""


UNITS = ("[],", '{"":' * 90 + "0" + "}" * 90 + ",", '"ab",')


@pytest.mark.slow
@pytest.mark.socket
@pytest.mark.parametrize("unit", one_in(3, UNITS, pytest.mark.attacks))
def test_the_longest_event_takes_less_than_450_mib(unit: str) -> None:
    [kind], peak = peak_of(READING, unit, str(EVENT_LIMIT))
    assert kind == "OutputItemDone"
    assert peak < 450


def test_the_bounds_are_told_in_plain_words() -> None:
    counted = limits.AnswerLimits()
    with pytest.raises(ModelError, match="more than 64 MiB of events") as caught:
        counted.take_bytes(limits.MAX_BYTES + 1)
    assert not caught.value.retryable
