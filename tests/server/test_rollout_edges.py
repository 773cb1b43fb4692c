"""Rollouts changed by others: odd values, foreign files, and paths that are not files."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import anyio
import pytest
from model_side import CREATED, Reply, completed, message, says
from session_peer import Peer, session

from reference_server.rollout import reader
from reference_server.rollout.reader import GivenUp, read_rollout

Line = dict[str, Any]
SETTINGS = {
    "model": "m",
    "modelProvider": "p",
    "cwd": "/w",
    "approvalPolicy": "never",
    "sandbox": {"type": "dangerFullAccess"},
}
WORKERS = 45
"""More requests than a server has threads to read files with."""


def thread_line(**fields: Any) -> Line:
    return {"type": "thread", "at": 1.5, "version": 1, "id": "thr_1", "settings": SETTINGS} | fields


def turn_line(**fields: Any) -> Line:
    return {"type": "turn-started", "at": 2, "turnId": "turn_1", "settings": SETTINGS} | fields


def placed(home: Path, *lines: Line | str, thread: str = "thr_1") -> Path:
    path = home / "sessions" / "2025" / "01" / "02" / f"rollout-2025-01-02T03-04-05-{thread}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(text + "\n" for text in texts))
    return path


async def read(peer: Peer, thread: str = "thr_1") -> Line:
    return await peer.request("thread/read", {"threadId": thread, "includeTurns": True})


NO_MOMENTS = ["1e999", "-1e999", "NaN", "-1", "3093527980800", "1" + "0" * 400, '"1.5"']


@pytest.mark.parametrize("at", NO_MOMENTS)
async def test_a_line_whose_time_is_none_is_no_record(tmp_path, caplog, at: str) -> None:
    odd = json.dumps(turn_line(turnId="turn_2", at=-0.5)).replace("-0.5", at)
    path = placed(tmp_path, thread_line(), turn_line(), odd)
    async with session(tmp_path) as peer:
        shown = (await read(peer))["result"]["thread"]
    assert [turn["id"] for turn in shown["turns"]] == ["turn_1"]
    assert (shown["createdAt"], shown["updatedAt"]) == (1, 2)
    assert f"{path}:3: skipped a line that is no record" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("at", NO_MOMENTS)
async def test_a_thread_whose_own_time_is_none_begins_with_its_turn(
    tmp_path, caplog, at: str
) -> None:
    placed(tmp_path, json.dumps(thread_line(at=-0.5)).replace("-0.5", at), turn_line())
    async with session(tmp_path) as peer:
        shown = (await read(peer))["result"]["thread"]
        [listed] = (await peer.request("thread/list", {}))["result"]["data"]
    assert (shown["id"], shown["createdAt"], shown["cwd"]) == ("thr_1", 2, SETTINGS["cwd"])
    assert listed["id"] == "thr_1"
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    "record",
    [thread_line(version=99), {"type": "thread", "version": 99, "name": "all else is new"}],
)
async def test_a_rollout_of_a_newer_version_is_unreadable(tmp_path, record: Line) -> None:
    path = placed(tmp_path, record, turn_line())
    async with session(tmp_path) as peer:
        error = (await read(peer))["error"]
    assert error["message"] == (
        f"the rollout of thread thr_1 is unreadable: {path}: was written by a newer version (99); "
        "this server reads up to 1"
    )


async def test_a_rollout_of_another_thread_is_unreadable(tmp_path) -> None:
    path = placed(tmp_path, thread_line(id="thr_99"))
    async with session(tmp_path) as peer:
        error = (await read(peer))["error"]
    assert error["message"] == (
        f"the rollout of thread thr_1 is unreadable: {path}: its name says thr_1, its thread "
        "record thr_99"
    )


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (os.mkfifo, "is not a regular file"),
        (os.mkdir, "Is a directory"),
        (_device, "is a symbolic link, not a file"),
    ],
    ids=["pipe", "folder", "link"],
)
async def test_a_rollout_that_is_not_a_file_is_refused_and_holds_nothing_up(
    tmp_path, make: Callable[[Path], None], words: str
) -> None:
    odd = placed(tmp_path)
    odd.unlink()
    make(odd)
    placed(tmp_path, thread_line(id="thr_2"), thread="thr_2")
    async with session(tmp_path) as peer:
        asked = [await peer.send("thread/read", {"threadId": "thr_1"}) for _ in range(WORKERS)]
        good = await read(peer, "thr_2")
        refused = [await peer.answer(one) for one in asked]
    assert good["result"]["thread"]["id"] == "thr_2"
    assert {str(odd) in one["error"]["message"] for one in refused} == {True}
    assert {words in one["error"]["message"] for one in refused} == {True}


def test_who_gives_a_long_rollout_up_does_not_read_on(tmp_path, monkeypatch) -> None:
    path = placed(tmp_path, thread_line(), *[turn_line(turnId=f"turn_{n}") for n in range(10)])
    given_up, taken = Event(), []
    parse = reader.parse_record

    def third(line: bytes) -> Any:
        taken.append(line)
        if len(taken) == 3:
            given_up.set()
        return parse(line)

    monkeypatch.setattr(reader, "parse_record", third)
    with pytest.raises(GivenUp):
        read_rollout(path, given_up)
    assert len(taken) == 3


def removed(path: Path) -> None:
    path.unlink()


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def replaced(path: Path) -> None:
    path.rename(path.with_name("kept"))
    path.write_bytes(path.with_name("kept").read_bytes())


@pytest.mark.parametrize(
    ("meddle", "words"), [(removed, "was removed"), (moved, "was removed"), (replaced, "replaced")]
)
async def test_a_turn_that_nobody_would_find_again_fails(
    tmp_path, meddle: Callable[[Path], None], words: str
) -> None:
    async with session(tmp_path, [says("one"), says("two")]) as peer:
        started = (await peer.request("thread/start"))["result"]["thread"]
        assert (await peer.run_turn(started["id"]))["status"] == "completed"
        meddle(Path(started["path"]))
        end = await peer.run_turn(started["id"])
    assert end["status"] == "failed"
    assert end["error"]["message"] == "The server could not use its disk"
    assert end["error"]["additionalDetails"].startswith(f"{started['path']}: ")
    assert words in end["error"]["additionalDetails"]


async def test_a_rollout_removed_during_a_turn_fails_it(tmp_path) -> None:
    gate = anyio.Event()
    async with session(tmp_path, [Reply([CREATED, gate, *message("late"), completed()])]) as peer:
        started = (await peer.request("thread/start"))["result"]["thread"]
        turn = await peer.start_turn(started["id"])
        await peer.event("item/completed")
        removed(Path(started["path"]))
        gate.set()
        end = await peer.turn_end(turn)
    assert end["status"] == "failed"
    assert "was removed" in end["error"]["additionalDetails"]


async def test_a_rollout_that_was_put_back_goes_on(tmp_path) -> None:
    async with session(tmp_path, [says("one")]) as peer:
        started = (await peer.request("thread/start"))["result"]["thread"]
        path = Path(started["path"])
        moved(path)
        assert (await peer.run_turn(started["id"]))["status"] == "failed"
        path.with_name("elsewhere").rename(path)
        assert (await peer.run_turn(started["id"]))["status"] == "completed"
        assert len((await read(peer, started["id"]))["result"]["thread"]["turns"]) == 1
