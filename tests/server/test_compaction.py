"""Compaction, requested and automatic: the item, the history after it, failure, interruption."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from model_side import (
    CREATED,
    CUT,
    Refused,
    Reply,
    calls,
    completed,
    delta,
    done,
    function_call,
    http_error,
    message,
    opened,
    says,
)
from session_peer import Message, Peer, config, session

from reference_server.engine.compaction import (
    KEPT_CHARACTERS,
    PREFIX,
    PROMPT,
    kept_messages,
    split_history,
    without_oldest,
)
from reference_server.rollout.reader import read_rollout

NEARLY_FULL = {"input_tokens": 900, "output_tokens": 50, "total_tokens": 950}
SMALL = {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25}
SUMMARY = says("They greeted.", usage=SMALL)


def windowed(size: int | None = 1000, limit: int | None = None) -> Any:
    return replace(config(), model_context_window=size, model_auto_compact_token_limit=limit)


async def compact(peer: Peer, thread: str) -> Message:
    """Ask for a compaction and wait for the end of its turn."""
    before = len(peer.params_of("turn/started"))
    answer = await peer.request("thread/compact/start", {"threadId": thread})
    assert answer["result"] == {}
    while len(started := peer.params_of("turn/started")) == before:
        await peer.receive()
    return await peer.turn_end(started[-1]["turn"]["id"])


def rollout_in(home: Path) -> Path:
    [path] = home.rglob("rollout-*.jsonl")
    return path


def said(body: Message) -> list[tuple[str, str]]:
    """Return the role and the text of each message in a model call."""
    return [
        (item["role"], "".join(part["text"] for part in item["content"]))
        for item in body["input"]
        if item["type"] == "message"
    ]


async def test_a_compaction_is_a_turn_with_one_item(tmp_path) -> None:
    async with session(tmp_path, [says("hello"), SUMMARY]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        before = len(peer.seen)
        end = await compact(peer, thread)
    assert end["status"] == "completed"
    assert peer.methods(start=before) == [
        "answer",
        "turn/started",
        "thread/status/changed",
        "item/started",
        "thread/tokenUsage/updated",
        "item/completed",
        "thread/status/changed",
        "turn/completed",
    ]
    [item] = peer.completed_items("contextCompaction")
    assert item == {"type": "contextCompaction", "id": item["id"]}
    begun = [p["item"] for p in peer.params_of("item/started")]
    assert item in begun


async def test_the_next_call_holds_the_users_words_and_the_summary(tmp_path) -> None:
    replies = [says("hello"), calls("fly"), says("no"), SUMMARY, says("on")]
    async with session(tmp_path, replies) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "hi")
        await peer.run_turn(thread, "fly")
        await compact(peer, thread)
        await peer.run_turn(thread, "and now?")
    asked, after = peer.side.bodies[3], peer.side.bodies[4]
    assert said(asked) == [
        ("user", "hi"),
        ("assistant", "hello"),
        ("user", "fly"),
        ("assistant", "no"),
        ("user", PROMPT),
    ]
    assert [i["type"] for i in asked["input"] if i["type"] != "message"] == [
        "function_call",
        "function_call_output",
    ]
    assert asked["tools"] == []
    assert said(after) == [
        ("user", "hi"),
        ("user", "fly"),
        ("user", f"{PREFIX}They greeted."),
        ("user", "and now?"),
    ]
    assert len(after["input"]) == 4


async def test_the_models_words_on_the_summary_are_not_shown(tmp_path) -> None:
    async with session(tmp_path, [says("hello"), says("in ", "short")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        await compact(peer, thread)
    assert [i["text"] for i in peer.completed_items("agentMessage")] == ["hello"]
    assert [p["delta"] for p in peer.params_of("item/agentMessage/delta")] == ["hello"]


async def test_a_thread_without_history_is_compacted_without_a_model(tmp_path) -> None:
    async with session(tmp_path) as peer:
        thread = await peer.start_thread()
        assert (await compact(peer, thread))["status"] == "completed"
    assert peer.side.bodies == []
    assert len(peer.completed_items("contextCompaction")) == 1


async def test_a_second_compaction_summarises_the_first_summary(tmp_path) -> None:
    replies = [says("hello"), SUMMARY, says("Twice."), says("on")]
    async with session(tmp_path, replies) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "hi")
        await compact(peer, thread)
        await compact(peer, thread)
        await peer.run_turn(thread, "so?")
    assert said(peer.side.bodies[2])[-2:] == [
        ("user", f"{PREFIX}They greeted."),
        ("user", PROMPT),
    ]
    assert said(peer.side.bodies[3]) == [
        ("user", "hi"),
        ("user", f"{PREFIX}Twice."),
        ("user", "so?"),
    ]


async def test_compaction_is_refused_while_a_turn_runs_and_where_no_thread_is(tmp_path) -> None:
    gate = anyio.Event()
    async with session(tmp_path, [Reply([CREATED, gate, completed()])]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        busy = await peer.request("thread/compact/start", {"threadId": thread})
        gate.set()
        await peer.turn_end(turn)
        unknown = await peer.request("thread/compact/start", {"threadId": "thr_99"})
    assert busy["error"]["code"] == unknown["error"]["code"] == -32600
    assert turn in busy["error"]["message"]
    assert "thr_99" in unknown["error"]["message"]
    assert peer.completed_items("contextCompaction") == []


async def test_no_input_is_taken_while_the_history_is_compacted(tmp_path) -> None:
    gate = anyio.Event()
    held = Reply([CREATED, gate, *message("Short."), completed()])
    async with session(tmp_path, [says("hello"), held, says("on")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        await peer.request("thread/compact/start", {"threadId": thread})
        given = {"threadId": thread, "input": [{"type": "text", "text": "x"}]}
        refused = await peer.request("turn/start", given)
        started = peer.params_of("turn/started")[-1]["turn"]["id"]
        steer = {**given, "expectedTurnId": started}
        steered = await peer.request("turn/steer", steer)
        gate.set()
        await peer.event("item/completed", item=peer.params_of("item/started")[-1]["item"])
        await peer.turn_end(peer.params_of("turn/started")[-1]["turn"]["id"])
        assert (await peer.run_turn(thread))["status"] == "completed"
    assert "active turn" in refused["error"]["message"]
    assert "takes no input" in steered["error"]["message"]
    assert (refused["error"]["code"], steered["error"]["code"]) == (-32600, -32600)


FAILURES = {
    "refused": Refused(),
    "status": http_error(400, "invalid_prompt"),
    "cut": Reply([CREATED, opened(), delta("In sh"), CUT]),
    "no words": says(),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_failed_compaction_leaves_the_history_as_it_was(tmp_path, name: str) -> None:
    async with session(tmp_path, [says("hello"), FAILURES[name], says("on")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "hi")
        end = await compact(peer, thread)
        order = peer.methods()[-4:]
        await peer.run_turn(thread, "and now?")
    assert end["status"] == "failed"
    assert end["error"]["message"]
    assert order == ["item/completed", "error", "thread/status/changed", "turn/completed"]
    assert said(peer.side.bodies[-1]) == [
        ("user", "hi"),
        ("assistant", "hello"),
        ("user", "and now?"),
    ]


async def test_an_interrupted_compaction_leaves_the_history_as_it_was(tmp_path) -> None:
    gate = anyio.Event()
    held = Reply([CREATED, opened(), delta("In sh"), gate])
    async with session(tmp_path, [says("hello"), held, says("on")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "hi")
        await peer.request("thread/compact/start", {"threadId": thread})
        started = await peer.until(
            lambda m: (
                m.get("method") == "item/started"
                and m["params"]["item"]["type"] == "contextCompaction"
            )
        )
        turn = started["params"]["turnId"]
        answer = await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        end = await peer.turn_end(turn)
        await peer.run_turn(thread, "and now?")
    assert answer["result"] == {}
    assert (end["status"], end["error"]) == ("interrupted", None)
    assert len(peer.completed_items("contextCompaction")) == 1
    assert said(peer.side.bodies[-1]) == [
        ("user", "hi"),
        ("assistant", "hello"),
        ("user", "and now?"),
    ]


async def test_a_full_context_is_compacted_before_the_first_call(tmp_path) -> None:
    replies = [says("hello", usage=NEARLY_FULL), SUMMARY, says("on", usage=SMALL)]
    async with session(tmp_path, replies, settings=windowed()) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "hi")
        before = len(peer.seen)
        turn = await peer.start_turn(thread, "and now?")
        assert (await peer.turn_end(turn))["status"] == "completed"
    kinds = [
        (m["method"], m["params"]["item"]["type"])
        for m in peer.seen[before:]
        if m.get("method") in ("item/started", "item/completed")
    ]
    assert kinds == [
        ("item/started", "userMessage"),
        ("item/completed", "userMessage"),
        ("item/started", "contextCompaction"),
        ("item/completed", "contextCompaction"),
        ("item/started", "agentMessage"),
        ("item/completed", "agentMessage"),
    ]
    assert said(peer.side.bodies[1]) == [("user", "hi"), ("assistant", "hello"), ("user", PROMPT)]
    assert said(peer.side.bodies[2]) == [
        ("user", "hi"),
        ("user", f"{PREFIX}They greeted."),
        ("user", "and now?"),
    ]


async def test_a_context_that_fills_up_within_a_turn_is_compacted_there(tmp_path) -> None:
    full = Reply([CREATED, done(function_call("fly", "call_7")), completed(NEARLY_FULL)])
    async with session(tmp_path, [full, SUMMARY, says("on")], settings=windowed()) as peer:
        thread = await peer.start_thread()
        end = await peer.run_turn(thread, "hi")
    assert end["status"] == "completed"
    assert len(peer.params_of("turn/started")) == 1
    kinds = [i["type"] for i in peer.completed_items("contextCompaction")]
    assert kinds == ["contextCompaction"]
    assert [i["type"] for i in peer.side.bodies[1]["input"]] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]
    assert said(peer.side.bodies[2]) == [("user", "hi"), ("user", f"{PREFIX}They greeted.")]


async def test_a_full_context_after_the_last_call_waits_for_the_next_turn(tmp_path) -> None:
    async with session(tmp_path, [says("a", usage=NEARLY_FULL)], settings=windowed()) as peer:
        await peer.run_turn(await peer.start_thread())
    assert peer.completed_items("contextCompaction") == []


LIMITS = {
    "nine tenths of the window": (1000, None, 900, True),
    "one token below": (1000, None, 899, False),
    "a limit of its own": (None, 100, 100, True),
    "a limit beats the window": (1000, 2000, 950, False),
    "nothing is known": (None, None, 10**9, False),
}


@pytest.mark.parametrize("name", LIMITS)
async def test_when_the_context_counts_as_full(tmp_path, name: str) -> None:
    size, limit, total, compacted = LIMITS[name]
    usage = {"input_tokens": total, "output_tokens": 0, "total_tokens": total}
    replies = [says("a", usage=usage), SUMMARY, says("b")]
    async with session(tmp_path, replies, settings=windowed(size, limit)) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        await peer.run_turn(thread)
    assert bool(peer.completed_items("contextCompaction")) is compacted


async def test_a_failed_automatic_compaction_fails_the_turn_and_keeps_the_input(tmp_path) -> None:
    replies = [says("hello", usage=NEARLY_FULL), http_error(400), SUMMARY, says("on")]
    async with session(tmp_path, replies, settings=windowed()) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "hi")
        end = await peer.run_turn(thread, "first try")
        again = await peer.run_turn(thread, "second try")
    assert (end["status"], again["status"]) == ("failed", "completed")
    assert len(peer.completed_items("contextCompaction")) == 2
    # What the user said in the failed turn was never answered: the model is told it now.
    assert said(peer.side.bodies[-1])[-2:] == [("user", "first try"), ("user", "second try")]


async def test_a_history_that_is_too_long_to_be_summarised_loses_its_oldest(tmp_path) -> None:
    too_long = http_error(400, "context_length_exceeded")
    replies = [says("a"), says("b"), too_long, SUMMARY, says("on")]
    async with session(tmp_path, replies) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "one")
        await peer.run_turn(thread, "two")
        end = await compact(peer, thread)
        await peer.run_turn(thread, "three")
    assert end["status"] == "completed"
    [told] = peer.params_of("error")
    assert told["willRetry"] is True
    assert told["error"]["agentErrorInfo"] == "ContextWindowExceeded"
    assert said(peer.side.bodies[3]) == [("user", "two"), ("assistant", "b"), ("user", PROMPT)]
    # The user's own words stay all the same.
    assert [text for _, text in said(peer.side.bodies[4])][:2] == ["one", "two"]


async def test_usage_counts_the_compaction_and_names_the_window(tmp_path) -> None:
    replies = [says("hello", usage=NEARLY_FULL), SUMMARY, says("on", usage=SMALL)]
    async with session(tmp_path, replies, settings=windowed()) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        await peer.run_turn(thread)
    told = [p["tokenUsage"] for p in peer.params_of("thread/tokenUsage/updated")]
    assert [t["total"]["totalTokens"] for t in told] == [950, 975, 1000]
    assert [t["last"]["totalTokens"] for t in told] == [950, 25, 25]
    assert {t["modelContextWindow"] for t in told} == {1000}


async def test_the_rollout_holds_the_history_as_it_was_compacted(tmp_path) -> None:
    replies = [says("hello", usage=NEARLY_FULL), SUMMARY, says("on", usage=SMALL)]
    async with session(tmp_path, replies) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "hi")
        await compact(peer, thread)
        path = rollout_in(tmp_path)
        cut = read_rollout(path)
        await peer.run_turn(thread, "so?")
        [loaded] = peer.server.services.threads.loaded_threads
        stored = read_rollout(path)
    assert said({"input": cut.history}) == [("user", "hi"), ("user", f"{PREFIX}They greeted.")]
    assert (cut.context_tokens, stored.context_tokens) == (0, 25)
    assert stored.history == loaded.history
    assert [count.total_tokens for count in stored.tokens] == [950, 25, 25]
    assert [[i.type for i in turn.items] for turn in stored.turns] == [
        ["userMessage", "agentMessage"],
        ["contextCompaction"],
        ["userMessage", "agentMessage"],
    ]


def user(text: str) -> Message:
    return {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": text},
            {"type": "input_image", "image_url": "x"},
        ],
    }


def test_the_newest_words_of_the_user_stay_as_far_as_there_is_room() -> None:
    half = "x" * (KEPT_CHARACTERS // 2)
    kept = kept_messages([user("oldest"), user(half), user(PREFIX + "summary"), user(half)])
    assert [item["content"] for item in kept] == [[{"type": "input_text", "text": half}]] * 2


def test_only_what_the_user_said_last_is_left_out_of_the_summary() -> None:
    answer = {"type": "message", "role": "assistant", "content": []}
    old, recent = split_history([user("a"), answer, user("b"), user("c")])
    assert (old, recent) == ([user("a"), answer], [user("b"), user("c")])
    assert split_history([user("a")]) == ([], [user("a")])
    summary = user(PREFIX + "s")
    assert split_history([user("a"), summary]) == ([user("a"), summary], [])


def test_an_output_goes_with_its_call() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "x", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": ""}
    assert without_oldest([user("a"), call, output, user("b")]) == [user("b")]
    assert without_oldest([user("a"), user("b"), call, output]) == [call, output]
    assert without_oldest([user("a")]) == []
