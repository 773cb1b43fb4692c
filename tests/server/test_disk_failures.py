"""A home that cannot be written: every refusal names the file and the remedy, and nothing hangs."""

import errno
import os

import anyio
import pytest
from model_side import CREATED, Reply, completed, message, says
from session_peer import session

from reference_server.rollout import writer

REMEDY = "free space there, then try again"
CLEAR = "move away what is there, then try again"


async def test_a_file_where_a_folder_should_be_is_named(tmp_path) -> None:
    (tmp_path / "sessions").write_text("")
    async with session(tmp_path, [says("fine")]) as peer:
        refused = (await peer.request("thread/start", {}))["error"]
        assert str(tmp_path / "sessions") in refused["message"]
        assert refused["message"].endswith(f": Not a directory; {CLEAR}")
        thread = await peer.start_thread(ephemeral=True)
        assert (await peer.run_turn(thread))["status"] == "completed"


async def test_a_folder_where_the_counters_should_be_is_named(tmp_path) -> None:
    (tmp_path / "counters").mkdir()
    async with session(tmp_path) as peer:
        refused = (await peer.request("thread/start", {}))["error"]
    assert refused["message"] == f"{tmp_path / 'counters'}: Is a directory; {CLEAR}"


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
async def test_a_disk_that_is_full_fails_the_turn_and_names_the_rollout(
    tmp_path, monkeypatch, writes: int
) -> None:
    """After any number of records; the turn has its end, the thread takes the next one."""
    async with session(tmp_path, [says("one"), says("two")]) as peer:
        started = (await peer.request("thread/start", {}))["result"]["thread"]
        left = writes

        def write(descriptor: int, data: bytes) -> int:
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real_write(descriptor, data)

        real_write = os.write
        with monkeypatch.context() as patch:
            patch.setattr(writer.os, "write", write)
            end = await peer.run_turn(started["id"])
        assert (end["status"], end["items"]) == ("failed", [])
        assert end["error"]["message"] == "The server could not use its disk"
        expected = f"{started['path']}: No space left on device; {REMEDY}"
        assert end["error"]["additionalDetails"] == expected
        assert (await peer.run_turn(started["id"]))["status"] == "completed"
    begun = [p["item"]["id"] for p in peer.params_of("item/started")]
    assert begun == [p["item"]["id"] for p in peer.params_of("item/completed")]


async def test_a_steer_that_cannot_be_stored_is_refused(tmp_path, monkeypatch) -> None:
    gate = anyio.Event()
    async with session(tmp_path, [Reply([CREATED, gate, *message("done"), completed()])]) as peer:
        thread = await peer.start_thread()
        turn = await peer.start_turn(thread)
        await peer.event("item/completed")

        def full(_descriptor: int, _data: bytes) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(writer.os, "write", full)
            given = {"threadId": thread, "expectedTurnId": turn}
            words = [{"type": "text", "text": "lost"}]
            answer = await peer.request("turn/steer", {**given, "input": words})
        assert REMEDY in answer["error"]["message"]
        gate.set()
        assert (await peer.turn_end(turn))["status"] == "completed"
    assert len(peer.side.bodies) == 1
    assert len(peer.completed_items("userMessage")) == 1
