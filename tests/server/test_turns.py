"""turn/start: order, items, deltas, model calls, lasting overrides."""

import base64
from typing import Any

import anyio
import pytest
from model_side import (
    CREATED,
    PIXEL,
    USAGE,
    Reply,
    calls,
    completed,
    delta,
    done,
    event,
    message,
    message_item,
    opened,
    says,
)
from session_peer import Peer, session


async def test_a_turn_is_told_in_this_order(tmp_path) -> None:
    async with session(tmp_path, [says("Hel", "lo", usage=USAGE)]) as peer:
        thread = await peer.start_thread()
        before = len(peer.seen)
        await peer.run_turn(thread)
    methods = [m for m in peer.methods(start=before) if m != "thread/started"]
    assert methods == [
        "answer",
        "turn/started",
        "thread/status/changed",
        "item/started",
        "item/completed",
        "item/started",
        "item/agentMessage/delta",
        "item/agentMessage/delta",
        "item/completed",
        "thread/tokenUsage/updated",
        "thread/status/changed",
        "turn/completed",
    ]


async def test_the_turn_is_without_items_and_error_wherever_it_is_shown(tmp_path) -> None:
    async with session(tmp_path, [says("a")]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        end = await peer.turn_end(turn)
    answer = next(m["result"]["turn"] for m in peer.seen if "turn" in m.get("result", {}))
    started = (await peer.event("turn/started"))["turn"]
    assert (
        answer
        == started
        == {
            "id": turn,
            "items": [],
            "status": "inProgress",
            "error": None,
        }
    )
    assert end == {"id": turn, "items": [], "status": "completed", "error": None}


async def test_the_thread_is_active_exactly_while_the_turn_runs(tmp_path) -> None:
    gate = anyio.Event()
    held = Reply([CREATED, opened(), delta("a"), gate, completed()])
    async with session(tmp_path, [held]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.event("item/agentMessage/delta")
        during = await peer.request("thread/read", {"threadId": thread, "includeTurns": True})
        gate.set()
        await peer.turn_end(turn)
        after = await peer.request("thread/read", {"threadId": thread})
    shown = during["result"]["thread"]
    assert shown["status"] == {"type": "active", "activeFlags": []}
    assert [(t["id"], t["status"]) for t in shown["turns"]] == [(turn, "inProgress")]
    assert [i["type"] for i in shown["turns"][0]["items"]] == ["userMessage"]
    assert after["result"]["thread"]["status"] == {"type": "idle"}
    assert [p["status"]["type"] for p in peer.params_of("thread/status/changed")] == [
        "active",
        "idle",
    ]


async def test_deltas_join_to_the_text_of_their_item(tmp_path) -> None:
    pieces = ["Grüße", " ", '"quoted"\n', "\u2028", "\U0001f600", ""]
    async with session(tmp_path, [says(*pieces)]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
    deltas = peer.params_of("item/agentMessage/delta")
    [item] = peer.completed_items("agentMessage")
    assert [d["delta"] for d in deltas] == pieces
    assert {d["itemId"] for d in deltas} == {item["id"]}
    assert item["text"] == "".join(pieces)


CASES: dict[str, tuple[list[bytes], list[str], str]] = {
    "only done": ([done(message_item("whole"))], [], "whole"),
    "only deltas": ([delta("a"), delta("b")], ["a", "b"], "ab"),
    "added, never done": ([opened(), delta("a")], ["a"], "a"),
    "a rest that was not streamed": (
        [opened(), delta("ab"), done(message_item("abcd"))],
        ["ab", "cd"],
        "abcd",
    ),
    "a contradiction": ([opened(), delta("ab"), done(message_item("xy"))], ["ab"], "ab"),
    "nothing said": ([opened(), done(message_item(""))], [], ""),
}


@pytest.mark.parametrize("name", CASES)
async def test_the_text_is_the_deltas_joined_whatever_the_model_sends(tmp_path, name: str) -> None:
    events, pieces, text = CASES[name]
    async with session(tmp_path, [Reply([CREATED, *events, completed()])]) as peer:
        await peer.run_turn(await peer.start_thread())
    assert [d["delta"] for d in peer.params_of("item/agentMessage/delta")] == pieces
    [item] = peer.completed_items("agentMessage")
    assert item["text"] == text


async def test_two_messages_of_one_answer_do_not_mix(tmp_path) -> None:
    events = [
        opened(0),
        opened(1),
        delta("a", 0),
        delta("x", 1),
        delta("b", 0),
        done(message_item("ab"), 0),
        done(message_item("x"), 1),
    ]
    async with session(tmp_path, [Reply([CREATED, *events, completed()])]) as peer:
        await peer.run_turn(await peer.start_thread())
    items = peer.completed_items("agentMessage")
    assert [item["text"] for item in items] == ["ab", "x"]
    for item in items:
        joined = [
            d["delta"]
            for d in peer.params_of("item/agentMessage/delta")
            if d["itemId"] == item["id"]
        ]
        assert "".join(joined) == item["text"]


async def test_a_phase_is_passed_on_where_the_model_gives_one(tmp_path) -> None:
    item = {**message_item("a"), "phase": "final_answer"}
    async with session(tmp_path, [Reply([CREATED, done(item), completed()])]) as peer:
        await peer.run_turn(await peer.start_thread())
    assert peer.completed_items("agentMessage")[0]["phase"] == "final_answer"


async def test_a_phase_that_comes_with_the_end_of_a_message_is_the_items(tmp_path) -> None:
    # Whether a message was a comment or the answer is for some models clear at its end only.
    end = done({**message_item("ab"), "phase": "commentary"})
    reply = Reply([CREATED, opened(), delta("ab"), end, completed()])
    async with session(tmp_path, [reply]) as peer:
        await peer.run_turn(await peer.start_thread())
    [started] = [
        params["item"]
        for params in peer.params_of("item/started")
        if params["item"]["type"] == "agentMessage"
    ]
    [item] = peer.completed_items("agentMessage")
    assert "phase" not in started
    assert (item["id"], item["text"], item["phase"]) == (started["id"], "ab", "commentary")


async def test_reasoning_streams_summary_and_content(tmp_path) -> None:
    final = {
        "type": "reasoning",
        "summary": [
            {"type": "summary_text", "text": "first"},
            {"type": "summary_text", "text": "second"},
        ],
        "content": [{"type": "reasoning_text", "text": "raw"}],
    }
    summary = "response.reasoning_summary_text.delta"
    events = [
        event("response.output_item.added", output_index=0, item={"type": "reasoning"}),
        event("response.reasoning_summary_part.added", output_index=0, summary_index=0),
        event(summary, output_index=0, summary_index=0, delta="fir"),
        event(summary, output_index=0, summary_index=0, delta="st"),
        event("response.reasoning_summary_part.added", output_index=0, summary_index=1),
        event(summary, output_index=0, summary_index=1, delta="second"),
        event("response.reasoning_text.delta", output_index=0, content_index=0, delta="raw"),
        done(final),
        *message("done", index=1),
    ]
    async with session(tmp_path, [Reply([CREATED, *events, completed()])]) as peer:
        await peer.run_turn(await peer.start_thread())
    [item] = peer.completed_items("reasoning")
    assert (item["summary"], item["content"]) == (["first", "second"], ["raw"])
    parts = peer.params_of("item/reasoning/summaryPartAdded")
    assert [p["summaryIndex"] for p in parts] == [0, 1]
    deltas = peer.params_of("item/reasoning/summaryTextDelta")
    assert [(d["summaryIndex"], d["delta"]) for d in deltas] == [
        (0, "fir"),
        (0, "st"),
        (1, "second"),
    ]
    [raw] = peer.params_of("item/reasoning/textDelta")
    assert (raw["contentIndex"], raw["delta"], raw["itemId"]) == (0, "raw", item["id"])


async def test_token_usage_is_told_and_added_up(tmp_path) -> None:
    async with session(tmp_path, [says("a", usage=USAGE), says("b", usage=USAGE)]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        await peer.run_turn(thread)
    usages = [p["tokenUsage"] for p in peer.params_of("thread/tokenUsage/updated")]
    last = {
        "totalTokens": 15,
        "inputTokens": 10,
        "cachedInputTokens": 4,
        "outputTokens": 5,
        "reasoningOutputTokens": 2,
    }
    assert [u["last"] for u in usages] == [last, last]
    assert usages[1]["total"] == {name: 2 * count for name, count in last.items()}


async def test_no_usage_is_told_when_the_model_reports_none(tmp_path) -> None:
    async with session(tmp_path, [says("a")]) as peer:
        await peer.run_turn(await peer.start_thread())
    assert peer.params_of("thread/tokenUsage/updated") == []


async def test_ids_have_their_shapes_and_are_unique(tmp_path) -> None:
    async with session(tmp_path, [says("a"), says("b"), says("c")]) as peer:
        threads = [await peer.start_thread() for _ in range(2)]
        turns = [await peer.start_turn(threads[0])]
        await peer.turn_end(turns[0])
        turns.append(await peer.start_turn(threads[1]))
        await peer.turn_end(turns[1])
        turns.append(await peer.start_turn(threads[0]))
        await peer.turn_end(turns[2])
    assert threads == ["thr_1", "thr_2"]
    assert turns == ["turn_1", "turn_2", "turn_3"]
    ids = [p["item"]["id"] for p in peer.params_of("item/started") if p["threadId"] == "thr_1"]
    assert ids == ["item_1_1", "item_1_2", "item_3_1", "item_3_2"]


async def test_a_second_turn_names_steer_while_one_is_active(tmp_path) -> None:
    gate = anyio.Event()
    async with session(tmp_path, [Reply([gate, CREATED, completed()]), says("b")]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        given = {"threadId": thread, "input": [{"type": "text", "text": "x"}]}
        error = (await peer.request("turn/start", given))["error"]
        gate.set()
        await peer.turn_end(turn)
        assert (await peer.run_turn(thread))["status"] == "completed"
    assert error["code"] == -32600
    assert turn in error["message"]
    assert "turn/steer" in error["message"]


async def test_empty_input_is_refused(tmp_path) -> None:
    async with session(tmp_path) as peer:
        thread = await peer.start_thread()
        error = (await peer.request("turn/start", {"threadId": thread, "input": []}))["error"]
    assert error == {"code": -32602, "message": "input: must hold at least one element"}
    assert peer.params_of("turn/started") == []


INPUT: list[dict[str, Any]] = [
    {"type": "text", "text": "look"},
    {"type": "image", "url": "http://x.invalid/a.png"},
    {"type": "localImage", "path": "/nowhere/b.png"},
    {"type": "skill", "name": "s", "path": "/skills/s/SKILL.md"},
    {"type": "mention", "name": "m", "path": "app://c"},
]


async def test_all_five_inputs_are_taken_echoed_and_sent(tmp_path) -> None:
    async with session(tmp_path, [says("a")]) as peer:
        thread = await peer.start_thread()
        answer = await peer.request("turn/start", {"threadId": thread, "input": INPUT})
        await peer.turn_end(answer["result"]["turn"]["id"])
    [item] = peer.completed_items("userMessage")
    assert item["content"] == INPUT
    [sent] = peer.side.bodies[0]["input"]
    assert [part["type"] for part in sent["content"]] == [
        "input_text",
        "input_image",
        "input_text",
        "input_text",
        "input_text",
    ]
    assert "could not be read" in sent["content"][2]["text"]
    assert "/skills/s/SKILL.md" in sent["content"][3]["text"]


async def test_a_local_image_is_sent_as_data(tmp_path) -> None:
    (tmp_path / "p.png").write_bytes(PIXEL)
    async with session(tmp_path / "home", [says("a")]) as peer:
        thread = await peer.start_thread()
        given = {
            "threadId": thread,
            "cwd": str(tmp_path),
            "input": [{"type": "localImage", "path": "p.png"}],
        }
        await peer.turn_end((await peer.request("turn/start", given))["result"]["turn"]["id"])
    [part] = peer.side.bodies[0]["input"][0]["content"]
    data = base64.b64encode(PIXEL).decode()
    assert part == {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}


async def test_the_model_is_sent_the_whole_history(tmp_path) -> None:
    async with session(tmp_path, [says("one"), says("two")]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread, "first")
        await peer.run_turn(thread, "second")
    body = peer.side.bodies[1]
    assert [(m["role"], m["content"][0]["text"]) for m in body["input"]] == [
        ("user", "first"),
        ("assistant", "one"),
        ("user", "second"),
    ]
    assert (body["model"], body["stream"]) == ("test-model", True)
    tools = [tool["name"] for tool in body["tools"]]
    assert tools == ["exec_command", "apply_patch", "update_plan", "view_image"]
    assert body["instructions"]


@pytest.mark.parametrize("path", ["/dev/zero", ".", "no\0name"])
async def test_a_path_that_is_not_an_image_does_not_hold_up_the_turn(tmp_path, path: str) -> None:
    async with session(tmp_path, [says("a")]) as peer:
        thread = await peer.start_thread()
        given = {"threadId": thread, "input": [{"type": "localImage", "path": path}]}
        await peer.turn_end((await peer.request("turn/start", given))["result"]["turn"]["id"])
    assert "could not be read" in peer.side.bodies[0]["input"][0]["content"][0]["text"]


SCHEMA = {"type": "object", "properties": {"n": {"type": "number"}}}


async def overridden(peer: Peer) -> str:
    thread = await peer.start_thread(cwd="/w")
    overrides: dict[str, Any] = {
        "cwd": "sub",
        "approvalPolicy": "never",
        "sandboxPolicy": {"type": "dangerFullAccess"},
        "model": "bigger",
        "effort": "high",
        "summary": "verbose",
        "outputSchema": SCHEMA,
    }
    await peer.run_turn(thread, **overrides)
    return thread


async def test_overrides_reach_the_model(tmp_path) -> None:
    async with session(tmp_path, [says('{"n": 1}')]) as peer:
        await overridden(peer)
    body = peer.side.bodies[0]
    assert body["model"] == "bigger"
    assert body["reasoning"] == {"effort": "high", "summary": "detailed"}
    assert body["text"]["format"]["type"] == "json_schema"
    assert body["text"]["format"]["schema"] == SCHEMA


async def test_all_overrides_last_but_the_output_schema(tmp_path) -> None:
    async with session(tmp_path, [says('{"n": 1}'), says("b")]) as peer:
        thread = await overridden(peer)
        await peer.run_turn(thread)
        read = await peer.request("thread/read", {"threadId": thread})
        [loaded] = peer.server.services.threads.loaded_threads
    body = peer.side.bodies[1]
    assert body["model"] == "bigger"
    assert body["reasoning"] == {"effort": "high", "summary": "detailed"}
    assert "text" not in body
    assert read["result"]["thread"]["cwd"] == "/w/sub"
    assert loaded.settings.approval_policy == "never"
    assert loaded.settings.sandbox.type == "dangerFullAccess"


async def test_a_call_of_a_tool_nobody_offered_is_answered_and_the_turn_goes_on(
    tmp_path,
) -> None:
    async with session(tmp_path, [calls("fly", "call_7"), says("then not")]) as peer:
        end = await peer.run_turn(await peer.start_thread())
    assert end["status"] == "completed"
    call, output = peer.side.bodies[1]["input"][-2:]
    assert (call["type"], call["call_id"]) == ("function_call", "call_7")
    assert output == {
        "type": "function_call_output",
        "call_id": "call_7",
        "output": "unsupported call: fly",
    }


async def test_a_model_that_never_stops_calling_is_stopped(tmp_path) -> None:
    async with session(tmp_path, [calls("fly") for _ in range(60)]) as peer:
        end = await peer.run_turn(await peer.start_thread())
    assert end["status"] == "failed"
    assert len(peer.side.bodies) == 50
