"""A client that resumes a thread at any moment of a turn gets all of it exactly once."""

import copy
from typing import Any

import anyio
import pytest
from model_side import (
    CREATED,
    Reply,
    calls,
    completed,
    delta,
    done,
    event,
    message,
    message_item,
    opened,
    patches,
)
from session_peer import Message, Peer, another_client, session

REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}],
}
PLAN = "First.\n<proposed_plan>\n- look\n- leap\n</proposed_plan>\nLast."


def summary(part: int, text: str) -> bytes:
    return event(
        "response.reasoning_summary_text.delta", output_index=0, summary_index=part, delta=text
    )


def thinking() -> list[bytes]:
    added = "response.reasoning_summary_part.added"
    return [
        CREATED,
        event("response.output_item.added", output_index=0, item={"type": "reasoning"}),
        event(added, output_index=0, summary_index=0),
        summary(0, "o"),
        summary(0, "ne"),
        event(added, output_index=0, summary_index=1),
        summary(1, "two"),
        done(REASONING),
        opened(1),
        *(delta(PLAN[at : at + 9], 1) for at in range(0, len(PLAN), 9)),
        done(message_item(PLAN), 1),
        completed(),
    ]


def gated(chunks: list[bytes], gates: list[anyio.Event]) -> Reply:
    """A reply that waits for a gate of its own before each event."""
    parts: list[bytes | anyio.Event] = []
    for chunk in chunks:
        gates.append(anyio.Event())
        parts += [gates[-1], chunk]
    return Reply(parts)


class Watcher:
    """The items of a turn, put together from an answer and from what came after it."""

    def __init__(self, turns: list[Message]) -> None:
        self.items: dict[str, Message] = {
            item["id"]: copy.deepcopy(item) for turn in turns for item in turn["items"]
        }
        self.shown = set(self.items)
        self.completed: list[str] = []

    def take(self, message: Message) -> None:
        params = message.get("params", {})
        match message.get("method", ""):
            case "item/started":
                assert params["item"]["id"] not in self.items, "begun again"
                self.items[params["item"]["id"]] = copy.deepcopy(params["item"])
            case "item/completed":
                item = params["item"]
                assert item["id"] in self.items, "never begun"
                assert item["id"] not in self.completed, "completed again"
                self.completed.append(item["id"])
                if item["type"] != "plan":
                    # What was shown and what came after it is the whole of the item.
                    assert _streamed(self.items[item["id"]]) == _streamed(item)
                self.items[item["id"]] = item
            case "item/agentMessage/delta" | "item/plan/delta":
                self.items[params["itemId"]]["text"] += params["delta"]
            case "item/commandExecution/outputDelta":
                item = self.items[params["itemId"]]
                item["aggregatedOutput"] = item.get("aggregatedOutput", "") + params["delta"]
            case "item/reasoning/summaryPartAdded":
                self.items[params["itemId"]]["summary"].append("")
            case "item/reasoning/summaryTextDelta":
                self.items[params["itemId"]]["summary"][params["summaryIndex"]] += params["delta"]
            case _:
                pass


def _streamed(item: Message) -> Any:
    return {key: item.get(key) for key in ("id", "type", "text", "summary", "aggregatedOutput")}


async def follow(late: Peer, thread: str, turn: str, go_on: list[anyio.Event]) -> Watcher:
    """Resume the thread, let the model go on, and take what is told until the turn ends."""
    answer = await late.request("thread/resume", {"threadId": thread})
    turns = answer["result"]["thread"]["turns"]
    watcher = Watcher(turns)
    place = late.seen.index(answer)
    assert not [m for m in late.seen[:place] if m.get("method", "").startswith(("item", "turn"))]
    for gate in go_on:
        gate.set()
    if turns and turns[-1]["status"] == "inProgress":
        await late.turn_end(turn)
    for told in late.seen[place + 1 :]:
        watcher.take(told)
    return watcher


async def final(peer: Peer, thread: str) -> list[Message]:
    params = {"threadId": thread, "includeTurns": True}
    [turn] = (await peer.request("thread/read", params))["result"]["thread"]["turns"]
    return turn["items"]


@pytest.mark.parametrize("at", range(0, 22, 2))
async def test_whatever_the_model_is_saying(tmp_path, at: int) -> None:
    gates: list[anyio.Event] = []
    first = gated(thinking(), gates)
    replies = [first]
    async with session(tmp_path, replies) as peer, another_client(peer) as late:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.event("item/completed")
        for gate in gates[:at]:
            gate.set()
        watcher = await follow(late, thread, turn, gates)
        await peer.turn_end(turn)
        items = await final(peer, thread)
    # A plan is completed before the message around it.
    assert watcher.items == {item["id"]: item for item in items}
    assert {item["type"] for item in items} == {"userMessage", "reasoning", "agentMessage", "plan"}


@pytest.mark.parametrize("lines", [0, 1, 3])
async def test_whatever_a_command_has_printed(tmp_path, lines: int) -> None:
    go_on = tmp_path / "go-on"
    command = "".join(f"echo line {number}; " for number in range(lines))
    command += f"until [ -e {go_on} ]; do sleep 0.01; done; echo the end"
    replies = [calls("exec_command", cmd=command), Reply([CREATED, *message("so"), completed()])]
    settings = {"sandbox": "danger-full-access", "approvalPolicy": "never", "cwd": str(tmp_path)}
    async with session(tmp_path, replies) as peer, another_client(peer) as late:
        thread = await peer.start_thread(**settings)
        turn = await peer.start_turn(thread)
        await peer.until(lambda m: m.get("params", {}).get("item", {}).get("command") is not None)
        if lines:
            await peer.until(lambda m: f"line {lines - 1}" in m.get("params", {}).get("delta", ""))
        answer = await late.request("thread/resume", {"threadId": thread})
        watcher = Watcher(answer["result"]["thread"]["turns"])
        running = watcher.items[list(watcher.items)[-1]]
        assert (running["type"], running["status"]) == ("commandExecution", "inProgress")
        await anyio.Path(go_on).touch()
        await late.turn_end(turn)
        for told in late.seen[late.seen.index(answer) + 1 :]:
            watcher.take(told)
        items = await final(peer, thread)
    assert list(watcher.items.values()) == items


async def test_a_patch_that_waits_for_an_answer(tmp_path) -> None:
    replies = [
        patches("*** Add File: made.txt", "+new"),
        Reply([CREATED, *message("so"), completed()]),
    ]
    async with session(tmp_path / "home", replies) as peer, another_client(peer) as late:
        thread = await peer.start_thread(sandbox="read-only", cwd=str(tmp_path))
        turn = await peer.start_turn(thread)
        await peer.asked("fileChange")
        answer = await late.request("thread/resume", {"threadId": thread})
        watcher = Watcher(answer["result"]["thread"]["turns"])
        question = await late.asked("fileChange")
        assert question["params"]["itemId"] == list(watcher.items)[-1]
        await late.decide(question, "decline")
        await late.turn_end(turn)
        for told in late.seen[late.seen.index(answer) + 1 :]:
            watcher.take(told)
        items = await final(peer, thread)
    assert list(watcher.items.values()) == items
