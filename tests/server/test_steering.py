"""turn/steer: accepted input reaches the model and the stored turn once; rejected input never."""

import base64
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from model_side import (
    CREATED,
    PIXEL,
    Reply,
    completed,
    delta,
    done,
    http_error,
    message_item,
    opened,
    says,
)
from model_side import calls as calling
from session_peer import Message, Peer, config, session

from reference_server.config.home import Home
from reference_server.engine import turn as turn_module
from reference_server.rollout.fold import fold
from reference_server.rollout.reader import read_rollout
from reference_server.rollout.records import SteeredRecord, parse_record
from reference_server.rollout.store import RolloutStore


def text_input(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


async def steer(peer: Peer, thread: str, turn: str, *given: Any) -> Message:
    content = [one if isinstance(one, dict) else text_input(one)[0] for one in given]
    params = {"threadId": thread, "expectedTurnId": turn, "input": content}
    return await peer.request("turn/steer", params)


def said(peer: Peer, call: int) -> list[str]:
    """The texts of a model call's messages, in order."""
    messages = [one for one in peer.side.bodies[call]["input"] if one["type"] == "message"]
    return [part.get("text", part["type"]) for one in messages for part in one["content"]]


def held_message(gate: anyio.Event, text: str = "First.") -> Reply:
    return Reply([CREATED, opened(), delta(text), gate, done(message_item(text)), completed()])


def users(items: list[Message]) -> list[str]:
    return [i["content"][0]["text"] for i in items if i["type"] == "userMessage"]


async def stored(peer: Peer, thread: str) -> Message:
    read = await peer.request("thread/read", {"threadId": thread, "includeTurns": True})
    return read["result"]["thread"]["turns"][0]


async def test_input_while_the_last_message_streams_leads_to_another_model_call(tmp_path) -> None:
    gate = anyio.Event()
    async with session(tmp_path, [held_message(gate), says("Second.")]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread, "one")
        await peer.event("item/agentMessage/delta")
        before = len(peer.seen)
        answer = await steer(peer, thread, turn, "two")
        gate.set()
        end = await peer.turn_end(turn)
        again = await stored(peer, thread)
    assert answer["result"] == {"turnId": turn}
    assert peer.methods(start=before)[:3] == ["answer", "item/started", "item/completed"]
    assert end["status"] == "completed"
    assert said(peer, 1) == ["one", "First.", "two"]
    assert len(peer.side.bodies) == 2
    assert users(peer.completed_items("userMessage")) == users(again["items"]) == ["one", "two"]
    assert [len(peer.params_of(m)) for m in ("turn/started", "turn/completed")] == [1, 1]


async def test_several_at_once_each_arrive_once_and_in_order(tmp_path) -> None:
    gate = anyio.Event()
    async with session(tmp_path, [held_message(gate), says("b")]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread, "one")
        await peer.event("item/agentMessage/delta")
        params = {"threadId": thread, "expectedTurnId": turn}
        for word in ("two", "three", "four"):
            await peer.send("turn/steer", {**params, "input": text_input(word)})
        await peer.until(
            lambda m: users([m.get("params", {}).get("item", {"type": ""})]) == ["four"]
        )
        gate.set()
        await peer.turn_end(turn)
    assert said(peer, 1) == ["one", "First.", "two", "three", "four"]


async def test_input_before_the_model_says_anything(tmp_path) -> None:
    gate = anyio.Event()
    async with session(tmp_path, [Reply([gate, *says("a").parts]), says("b")]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread, "one")
        answer = await steer(peer, thread, turn, "two")
        gate.set()
        await peer.turn_end(turn)
    assert "result" in answer
    assert said(peer, -1)[0] == "one"
    assert said(peer, -1).count("two") == 1


async def test_input_that_is_sent_with_the_start_of_its_turn(tmp_path) -> None:
    gate = anyio.Event()
    async with session(tmp_path, [Reply([gate, *says("a").parts]), says("b")]) as peer:
        thread = await peer.start_thread()
        await peer.send("turn/start", {"threadId": thread, "input": text_input("one")})
        params = {"threadId": thread, "expectedTurnId": "turn_1", "input": text_input("two")}
        answer = await peer.request("turn/steer", params)
        gate.set()
        await peer.turn_end("turn_1")
        turn = await stored(peer, thread)
    assert answer["result"] == {"turnId": "turn_1"}
    first = next(i for i, m in enumerate(peer.seen) if m.get("method") == "item/started")
    assert "turn/started" in peer.methods()[:first]
    assert users(turn["items"]) == ["one", "two"]
    assert said(peer, -1).count("two") == 1


async def test_input_during_a_call_comes_after_its_output(tmp_path) -> None:
    fifo = tmp_path / "fifo"
    replies = [calling("exec_command", cmd=f"mkfifo {fifo}; echo on; cat {fifo}"), says("done")]
    async with session(tmp_path / "home", replies) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path), sandbox="danger-full-access")
        turn = await peer.start_turn(thread, "one", approvalPolicy="never")
        await peer.event("item/commandExecution/outputDelta")
        await steer(peer, thread, turn, "two")
        await anyio.to_thread.run_sync(fifo.write_text, "go")
        await peer.turn_end(turn)
    kinds = [one["type"] for one in peer.side.bodies[1]["input"]]
    assert kinds == ["message", "function_call", "function_call_output", "message"]
    assert said(peer, 1) == ["one", "two"]


async def test_input_during_an_approval_leaves_the_question_open(tmp_path) -> None:
    replies = [calling("exec_command", cmd="echo a; touch made"), says("done")]
    async with session(tmp_path / "home", replies) as peer:
        thread = await peer.start_thread(
            cwd=str(tmp_path), sandbox="danger-full-access", approvalPolicy="untrusted"
        )
        turn = await peer.start_turn(thread, "one")
        question = await peer.asked()
        await steer(peer, thread, turn, "two")
        assert peer.params_of("serverRequest/resolved") == []
        await peer.decide(question, "decline")
        await peer.turn_end(turn)
    assert said(peer, 1) == ["one", "two"]


async def test_input_during_the_pause_before_a_retry_is_in_the_retry(tmp_path) -> None:
    settings = config(request_max_retries=1)
    replies = [http_error(503, retry_after="0.2"), says("a")]
    async with session(tmp_path, replies, settings=settings) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread, "one")
        await peer.event("error", willRetry=True)
        await steer(peer, thread, turn, "two")
        await peer.turn_end(turn)
    assert said(peer, 1) == ["one", "two"]


@pytest.mark.parametrize("end", ["interrupted", "failed"])
async def test_input_that_a_turn_did_not_reach_is_heard_by_the_next(tmp_path, end: str) -> None:
    gate = anyio.Event()
    broken = Reply([CREATED, opened(), delta("par"), gate])
    async with session(tmp_path, [broken, says("b")]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread, "one")
        await peer.event("item/agentMessage/delta")
        await steer(peer, thread, turn, "two")
        if end == "interrupted":
            await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        gate.set()
        assert (await peer.turn_end(turn))["status"] == end
        again = await stored(peer, thread)
        await peer.run_turn(thread, "three")
    assert users(again["items"]) == ["one", "two"]
    partial = ["par"] if end == "interrupted" else []
    assert said(peer, 1) == ["one", *partial, "two", "three"]


async def test_refused_input_reaches_nobody(tmp_path) -> None:
    gate = anyio.Event()
    async with session(tmp_path, [held_message(gate), says("b")]) as peer:
        thread, other = await peer.start_thread(), await peer.start_thread()
        early = await steer(peer, thread, "turn_1", "early")
        turn = await peer.start_turn(thread, "one")
        await peer.event("item/agentMessage/delta")
        wrong = await steer(peer, thread, "turn_404", "wrong")
        elsewhere = await steer(peer, other, turn, "elsewhere")
        nowhere = await steer(peer, "thr_404", turn, "nowhere")
        empty = await steer(peer, thread, turn)
        gate.set()
        await peer.turn_end(turn)
        late = await steer(peer, thread, turn, "late")
        await peer.run_turn(thread, "next")
    refusals = [one["error"]["message"] for one in (early, wrong, elsewhere, nowhere, empty, late)]
    for words, refusal in zip(
        [
            "no active turn",
            f"is {turn}, not turn_404",
            "no active turn",
            "thr_404",
            "input",
            "no active",
        ],
        refusals,
        strict=True,
    ):
        assert words in refusal
    assert said(peer, 1) == ["one", "First.", "next"]
    assert users(peer.completed_items("userMessage")) == ["one", "next"]


async def test_a_turn_that_is_being_interrupted_takes_nothing_more(tmp_path) -> None:
    never = anyio.Event()
    async with session(tmp_path, [Reply([CREATED, opened(), delta("par"), never])]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.event("item/agentMessage/delta")
        await peer.send("turn/interrupt", {"threadId": thread, "turnId": turn})
        answer = await steer(peer, thread, turn, "two")
        end = await peer.turn_end(turn)
    assert "error" in answer
    assert end["status"] == "interrupted"
    assert users(peer.completed_items("userMessage")) == ["hi"]


async def test_every_kind_of_input(tmp_path: Path) -> None:
    gate = anyio.Event()
    picture = tmp_path / "dot.png"
    picture.write_bytes(PIXEL)
    given = [
        {"type": "text", "text": "look"},
        {"type": "image", "url": "http://example.invalid/a.png"},
        {"type": "localImage", "path": "dot.png"},
        {"type": "skill", "name": "knit", "path": "/s/knit/SKILL.md"},
        {"type": "mention", "name": "mail", "path": "app://mail"},
    ]
    async with session(tmp_path / "home", [held_message(gate), says("b")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        turn = await peer.start_turn(thread, "one")
        await peer.event("item/agentMessage/delta")
        await steer(peer, thread, turn, *given)
        gate.set()
        await peer.turn_end(turn)
    assert peer.completed_items("userMessage")[1]["content"] == given
    parts = peer.side.bodies[1]["input"][-1]["content"]
    kinds = [part["type"] for part in parts]
    assert kinds == ["input_text", "input_image", "input_image", "input_text", "input_text"]
    assert parts[2]["image_url"].endswith(base64.b64encode(PIXEL).decode())


async def test_an_accepted_input_is_on_disk_before_the_model_hears_it(tmp_path) -> None:
    """A server that dies now has promised it: the stored turn and the next call must hold it."""
    gate = anyio.Event()
    async with session(tmp_path, [held_message(gate), says("b")]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread, "one")
        await peer.event("item/agentMessage/delta")
        await steer(peer, thread, turn, "two")
        path = RolloutStore(Home(tmp_path)).find(thread)
        assert path is not None
        died = read_rollout(path)
        gate.set()
        await peer.turn_end(turn)
        whole = read_rollout(path)
        lines = [parse_record(line) for line in path.read_bytes().splitlines()]
    texts = [json.dumps(one) for one in died.history]
    assert [("one" in t, "two" in t) for t in texts] == [(True, False), (False, True)]
    assert [item.type for item in died.turns[0].items] == ["userMessage", "userMessage"]
    roles = [one["role"] for one in whole.history]
    assert roles == ["user", "assistant", "user", "assistant"]
    [steered] = [one for one in lines if isinstance(one, SteeredRecord)]
    cut = lines[: lines.index(steered) + 1]
    assert fold([*cut, lines[1]]).history[-1] == steered.history


async def test_more_input_than_one_model_call_may_wait_for_is_refused(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_module, "MAX_ADDED_BYTES", 1 << 20)
    gate = anyio.Event()
    async with session(tmp_path, [held_message(gate), says("Second.")]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.event("item/agentMessage/delta")
        assert "result" in await steer(peer, thread, turn, "a" * 600_000)
        refused = await steer(peer, thread, turn, "b" * 600_000)
        assert "more than 1 MiB of input" in refused["error"]["message"]
        assert "result" in await steer(peer, thread, turn, "c")
        gate.set()
        assert (await peer.turn_end(turn))["status"] == "completed"
    assert said(peer, 1)[-2:] == ["a" * 600_000, "c"]
