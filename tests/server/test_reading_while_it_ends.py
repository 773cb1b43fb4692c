"""thread/read while the turn that it shows comes to its end, and words of refusals around turns."""

import threading
from typing import Any

import anyio
import pytest
from model_side import CREATED, Reply, completed, message, says
from session_peer import session

from reference_server.rollout.reader import RolloutReader


async def test_a_turn_that_ends_while_its_rollout_is_read_is_shown_ended(
    tmp_path, monkeypatch
) -> None:
    """The file was read before the end was in it: that would read as an interrupted turn."""
    go_on, ended = anyio.Event(), threading.Event()

    read = RolloutReader.read

    def read_early(reader: RolloutReader, *given: Any) -> None:
        read(reader, *given)
        if not go_on.is_set():
            anyio.from_thread.run_sync(go_on.set)
            assert ended.wait(5.0)

    monkeypatch.setattr(RolloutReader, "read", read_early)
    reply = Reply([CREATED, go_on, *message("done"), completed()])
    async with session(tmp_path, [reply]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        asked = await peer.send("thread/read", {"threadId": thread, "includeTurns": True})
        assert (await peer.turn_end(turn))["status"] == "completed"
        ended.set()
        shown = (await peer.answer(asked))["result"]["thread"]
    assert shown["status"] == {"type": "idle"}
    [read] = shown["turns"]
    assert (read["status"], len(read["items"])) == ("completed", 2)


@pytest.mark.parametrize("where", ["thread/start", "turn/start"])
async def test_a_folder_that_no_path_can_name_is_refused(tmp_path, where: str) -> None:
    async with session(tmp_path, [says("fine")]) as peer:
        thread = await peer.start_thread()
        given = {"threadId": thread, "input": [{"type": "text", "text": "hi"}], "cwd": "/a\0b"}
        answer = await peer.request(where, given)
        assert answer["error"]["code"] == -32602
        assert "cwd" in answer["error"]["message"]
        assert (await peer.run_turn(thread))["status"] == "completed"


async def test_a_mistake_within_an_input_is_placed_where_it_is(tmp_path) -> None:
    async with session(tmp_path) as peer:
        thread = await peer.start_thread()
        for part, where in [
            ({"type": "text", "text": None}, "input[0].text"),
            ({"type": "image", "url": 7}, "input[0].url"),
            ({"type": "text"}, "input[0].text"),
        ]:
            answer = await peer.request("turn/start", {"threadId": thread, "input": [part]})
            assert answer["error"]["message"].startswith(f"{where}: ")


@pytest.mark.parametrize("second", ["turn/start", "thread/compact/start"])
async def test_who_asks_during_a_compaction_is_not_sent_to_steer_it(tmp_path, second: str) -> None:
    gate = anyio.Event()
    summary = Reply([CREATED, gate, *message("summary"), completed()])
    async with session(tmp_path, [says("one"), summary]) as peer:
        thread = await peer.start_thread()
        await peer.run_turn(thread)
        await peer.request("thread/compact/start", {"threadId": thread})
        given = {"threadId": thread, "input": [{"type": "text", "text": "hi"}]}
        answer = await peer.request(second, given)
        assert "wait for its turn/completed" in answer["error"]["message"]
        assert "turn/steer" not in answer["error"]["message"]
        gate.set()
        started = peer.params_of("turn/started")[-1]["turn"]["id"]
        assert (await peer.turn_end(started))["status"] == "completed"
