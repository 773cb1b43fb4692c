"""thread/resume: its result, later model calls, and notifications."""

import itertools
import json

import anyio
import pytest
from model_side import CREATED, Reply, completed, delta, message, opened, runs, says
from session_peer import another_client, session

from reference_server.rollout.reader import RolloutReader

SIX = {"thread", "model", "modelProvider", "cwd", "approvalPolicy", "sandbox"}


def completed_in(peer, turn: str) -> list:
    return [p["item"] for p in peer.params_of("item/completed") if p["turnId"] == turn]


async def test_a_thread_comes_back_after_a_restart_with_all_that_was_said(tmp_path) -> None:
    settings = {"approvalPolicy": "never", "sandbox": "read-only"}
    async with session(tmp_path, [says("One.")]) as peer:
        thread = await peer.start_thread(**settings)
        turn = await peer.start_turn(thread, "first question", model="other", effort="low")
        await peer.turn_end(turn)
        items = completed_in(peer, turn)
    async with session(tmp_path, [says("Two.")]) as peer:
        result = (await peer.request("thread/resume", {"threadId": thread}))["result"]
        assert set(result) == SIX
        assert (result["model"], result["approvalPolicy"]) == ("other", "never")
        assert result["sandbox"]["type"] == "readOnly"
        shown = result["thread"]
        assert (shown["id"], shown["status"]) == (thread, {"type": "idle"})
        assert shown["preview"] == "first question"
        assert [(t["id"], t["items"], t["status"]) for t in shown["turns"]] == [
            (turn, items, "completed")
        ]
        assert await peer.event("thread/status/changed") == {
            "threadId": thread,
            "status": {"type": "idle"},
        }
        await peer.run_turn(thread, "second question")
        told = json.dumps(peer.side.bodies[-1]["input"])
        assert told.index("first question") < told.index("One.") < told.index("second question")
        assert peer.side.bodies[-1]["reasoning"] == {"effort": "low"}
    assert peer.params_of("thread/started") == []
    ids = [p["item"]["id"] for p in peer.params_of("item/started")]
    assert len(ids) == 2
    assert set(ids).isdisjoint(item["id"] for item in items)


async def test_tokens_are_counted_on_after_a_restart(tmp_path) -> None:
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    async with session(tmp_path, [says("a", usage=usage)]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
    async with session(tmp_path, [says("b", usage=usage)]) as peer:
        await peer.request("thread/resume", {"threadId": thread})
        await peer.run_turn(thread)
        usage = (await peer.event("thread/tokenUsage/updated"))["tokenUsage"]
    assert (usage["total"]["totalTokens"], usage["last"]["totalTokens"]) == (14, 7)


async def test_the_personality_is_overridden(tmp_path) -> None:
    async with session(tmp_path, [says("a")]) as peer:
        thread = await peer.start_thread(personality="pragmatic")
        answer = {"threadId": thread, "personality": "friendly"}
        assert "result" in await peer.request("thread/resume", answer)
        await peer.run_turn(thread)
        assert "warm" in peer.side.bodies[-1]["instructions"]


async def test_who_resumes_a_loaded_thread_is_told_what_happens_on_it(tmp_path) -> None:
    async with session(tmp_path, [says("a"), says("b")]) as peer, another_client(peer) as other:
        thread = await peer.start_thread()
        first = await peer.run_turn(thread)
        shown = (await other.request("thread/resume", {"threadId": thread}))["result"]["thread"]
        assert [turn["id"] for turn in shown["turns"]] == [first["id"]]
        again = await other.request("thread/resume", {"threadId": thread})
        assert again["result"]["thread"] == shown
        second = await peer.start_turn(thread)
        assert (await other.turn_end(second))["status"] == "completed"
        await peer.turn_end(second)
    # It was idle before: no change of status is told. Nothing is told twice.
    statuses = [p["status"]["type"] for p in other.params_of("thread/status/changed")]
    assert statuses == ["active", "idle"]
    assert len(completed_in(other, second)) == 2


@pytest.mark.parametrize("after", range(6))
async def test_a_running_turn_is_shown_as_far_as_it_was_streamed(tmp_path, after: int) -> None:
    """The answer and the deltas after it give the message without gap or repetition."""
    gates = [anyio.Event() for _ in range(6)]
    words = [f"w{number} " for number in range(5)]
    chunks = [[gate, delta(word)] for gate, word in zip(gates, words, strict=False)]
    last = [gates[-1], *message("".join(words))[-1:], completed()]
    reply = Reply([CREATED, opened(), *itertools.chain(*chunks), *last])
    async with session(tmp_path, [reply]) as peer, another_client(peer) as other:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.until(
            lambda m: m.get("params", {}).get("item", {}).get("type") == "agentMessage"
        )
        for gate, word in zip(gates[:after], words, strict=False):
            gate.set()
            await peer.event("item/agentMessage/delta", delta=word)
        answer = await other.request("thread/resume", {"threadId": thread})
        shown = answer["result"]["thread"]
        assert shown["status"]["type"] == "active"
        for gate in gates:
            gate.set()
        await other.turn_end(turn)
        await peer.turn_end(turn)
    [running] = shown["turns"]
    assert (running["id"], running["status"]) == (turn, "inProgress")
    said = running["items"][1]
    assert said["text"] == "".join(words[:after])
    later = [p["delta"] for p in other.params_of("item/agentMessage/delta")]
    assert said["text"] + "".join(later) == "".join(words)
    # The items that were shown are not begun again; the one that was open is completed.
    assert other.params_of("item/started") == []
    assert [i["id"] for i in completed_in(other, turn)] == [said["id"]]
    assert completed_in(other, turn)[0]["text"] == "".join(words)


async def test_records_added_while_the_rollout_is_read_are_shown_too(tmp_path, monkeypatch) -> None:
    read = RolloutReader.read
    go_on = anyio.Event()
    ended = anyio.Event()

    def slowly(reader: RolloutReader, *given) -> None:
        read(reader, *given)
        if not go_on.is_set():
            anyio.from_thread.run_sync(go_on.set)
            anyio.from_thread.run(ended.wait)

    reply = Reply([CREATED, go_on, *message("done"), completed()])
    async with session(tmp_path, [reply]) as peer, another_client(peer) as other:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.event("item/completed")
        monkeypatch.setattr(RolloutReader, "read", slowly)
        asked = await other.send("thread/resume", {"threadId": thread})
        await peer.turn_end(turn)
        ended.set()
        shown = (await other.answer(asked))["result"]["thread"]
        assert shown["turns"][0]["items"] == completed_in(peer, turn)
        assert shown["turns"][0]["status"] == "completed"
        assert shown["status"] == {"type": "idle"}
        await other.request("thread/read", {"threadId": thread})
    assert [m for m in other.methods() if m.startswith(("turn/", "item/"))] == []


async def test_an_open_approval_is_put_to_who_resumes_the_thread(tmp_path, bubblewrap) -> None:
    del bubblewrap
    replies = [runs("touch made", sandbox_permissions="require_escalated"), says("done")]
    async with session(tmp_path, replies) as peer:
        async with another_client(peer) as first:
            thread = await first.start_thread(cwd=str(tmp_path), sandbox="read-only")
            turn = await first.start_turn(thread)
            question = await first.asked()
        # The only client that was asked is gone; the turn waits.
        async with another_client(peer) as second:
            answer = await second.request("thread/resume", {"threadId": thread})
            shown = answer["result"]["thread"]
            assert shown["status"] == {"type": "active", "activeFlags": ["waitingOnApproval"]}
            assert shown["turns"][0]["items"][1]["status"] == "inProgress"
            again = await second.asked()
            assert again == question
            # Who was asked is not asked twice.
            await second.request("thread/resume", {"threadId": thread})
            assert sum(m.get("id") == question["id"] and "method" in m for m in second.seen) == 1
            await second.decide(again, "decline")
            assert (await second.turn_end(turn))["status"] == "completed"


async def test_who_has_left_and_is_back_is_asked_again(tmp_path, bubblewrap) -> None:
    del bubblewrap
    replies = [runs("touch made", sandbox_permissions="require_escalated"), says("done")]
    async with session(tmp_path, replies) as peer, another_client(peer) as other:
        thread = await peer.start_thread(cwd=str(tmp_path), sandbox="read-only")
        named = {"threadId": thread}
        await other.request("thread/resume", named)
        turn = await peer.start_turn(thread)
        question = await other.asked()
        await other.request("thread/unsubscribe", named)
        await other.request("thread/resume", named)
        # What was sent before the answer to this has come by then.
        await other.request("thread/read", named)
        asked = [m for m in other.seen if m.get("id") == question["id"] and "method" in m]
        assert asked == [question, question]
        await other.decide(question, "decline")
        assert (await peer.turn_end(turn))["status"] == "completed"
        resolved = {"threadId": thread, "requestId": question["id"]}
        assert await other.event("serverRequest/resolved") == resolved


@pytest.mark.parametrize("thread", ["thr_99", "", "../thr_1", "thr_1/../thr_1", "é"])
async def test_an_unknown_thread_is_not_resumed(tmp_path, thread: str) -> None:
    async with session(tmp_path) as peer:
        await peer.start_thread()
        error = (await peer.request("thread/resume", {"threadId": thread}))["error"]
    assert (error["code"], error["message"]) == (-32600, f"there is no thread {thread}")


async def test_a_thread_that_another_server_has_open_is_read_but_not_resumed(tmp_path) -> None:
    async with session(tmp_path, [says("a")]) as peer, session(tmp_path) as elsewhere:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        asked = {"threadId": thread, "includeTurns": True}
        shown = (await elsewhere.request("thread/read", asked))["result"]["thread"]
        assert len(shown["turns"]) == 1
        error = (await elsewhere.request("thread/resume", {"threadId": thread}))["error"]
        assert "open in another server" in error["message"]
        named = await elsewhere.request("thread/name/set", {"threadId": thread, "name": "x"})
        assert "open in another server" in named["error"]["message"]
        await peer.request("thread/unsubscribe", {"threadId": thread})
        assert "result" in await elsewhere.request("thread/resume", {"threadId": thread})
        error = (await peer.request("thread/resume", {"threadId": thread}))["error"]
        assert "open in another server" in error["message"]


async def test_a_thread_without_a_turn_is_resumed(tmp_path) -> None:
    async with session(tmp_path) as peer:
        thread = await peer.start_thread()
    async with session(tmp_path, [says("a")]) as peer:
        shown = (await peer.request("thread/resume", {"threadId": thread}))["result"]["thread"]
        assert shown["turns"] == []
        assert (await peer.run_turn(thread))["status"] == "completed"
