"""A home that cannot be written: every request gets an error with advice, and nothing is lost.

Each request is made on a thread that has two turns, loaded or not, while every change of a file in
the home fails. Afterwards the disk works again, and so does the thread, with all it had.
"""

import errno
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from model_side import says
from session_peer import Message, Peer, session
from test_durable_kills import check_words

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="finds open files by /proc"),
]

REMEDIES = {errno.ENOSPC: "free space there, then try again", errno.EROFS: "mount it writable"}
CHANGING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@contextmanager
def broken(home: Path, number: int) -> Generator[list[str]]:
    """Let every change of a file below the home fail; gives what was tried."""
    tried: list[str] = []

    def fails(name: str, place: object) -> None:
        path = os.fspath(place) if isinstance(place, str | bytes | os.PathLike) else ""
        if isinstance(place, int):
            path = os.readlink(f"/proc/self/fd/{place}")
        if os.fsdecode(path).startswith(str(home)):
            tried.append(name)
            raise OSError(number, os.strerror(number), os.fsdecode(path))

    def stand_in(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(place: Any, *args: Any, **kwargs: Any) -> Any:
            given = args[0] if args else kwargs.get("flags", 0)
            opens = name == "open"
            new = opens and given & os.O_CREAT and not os.path.exists(place)
            if not opens or new or (number == errno.EROFS and given & CHANGING):
                fails(name, place)
            return real(place, *args, **kwargs)

        return call

    # A full disk lets files be moved and removed.
    names = ["open", "write", "pwrite", "mkdir", "ftruncate"]
    names += ["rename", "replace", "link", "unlink", "truncate"] if number == errno.EROFS else []
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(os, name, stand_in(name))
        yield tried


async def turn_of(peer: Peer, thread: str) -> Message:
    """A turn's end as an answer: its result, or the error that it ended with."""
    given = {"threadId": thread, "input": [{"type": "text", "text": "more"}]}
    answer = await peer.request("turn/start", given)
    if "error" in answer:
        return answer
    end = await peer.turn_end(answer["result"]["turn"]["id"])
    if end["status"] != "failed":
        return {"result": end}
    return {"error": {"message": end["error"]["additionalDetails"]}}


def asks(method: str, **params: Any) -> Callable[[Peer, str], Any]:
    async def ask(peer: Peer, thread: str) -> Message:
        return await peer.request(method, {"threadId": thread, **params})

    return ask


READING = {"list", "read", "unsubscribe", "loaded"}
"""Requests that need no write, and succeed."""
WRITING = {"start", "turn", "fork", "name", "rollback"}
"""Requests that need a write, and are rejected."""
LOADED_ONLY = {"turn", "compact"}
USES: dict[str, Callable[[Peer, str], Any]] = {
    "start": lambda peer, _: peer.request("thread/start", {}),
    "turn": turn_of,
    "resume": asks("thread/resume"),
    "fork": asks("thread/fork"),
    "archive": asks("thread/archive"),
    "name": asks("thread/name/set", name="x"),
    "rollback": asks("thread/rollback", numTurns=1),
    "compact": asks("thread/compact/start"),
    "read": asks("thread/read", includeTurns=True),
    "unsubscribe": asks("thread/unsubscribe"),
    "list": lambda peer, _: peer.request("thread/list", {}),
    "loaded": lambda peer, _: peer.request("thread/loaded/list", {}),
}


async def items(peer: Peer, thread: str) -> list[Message]:
    params = {"threadId": thread, "includeTurns": True}
    read = (await peer.request("thread/read", params))["result"]["thread"]
    return [item for turn in read["turns"] for item in turn["items"]]


@pytest.mark.parametrize("loaded", [True, False], ids=["loaded", "stored"])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("number", REMEDIES, ids=["full", "read-only"])
async def test_failed_writes_are_reported_and_nothing_is_lost(
    tmp_path: Path, number: int, use: str, loaded: bool
) -> None:
    home = tmp_path / "home"
    replies = [says(f"Reply {count}.") for count in range(5)]
    async with session(home, replies) as peer:
        thread = await peer.start_thread()
        for text in ("first", "second"):
            await peer.run_turn(thread, text)
        before = await items(peer, thread)
        if not loaded:
            await peer.request("thread/unsubscribe", {"threadId": thread})
        with broken(home, number) as tried:
            answer = await USES[use](peer, thread)
        if use in READING:
            assert "result" in answer
        elif not loaded and use in LOADED_ONLY:
            assert "is not loaded" in answer["error"]["message"]
        elif use in WRITING or "error" in answer:
            assert tried
            message = answer["error"]["message"]
            assert str(home) in message
            assert REMEDIES[number] in message
        if use == "archive" and "result" in answer:
            await peer.request("thread/unarchive", {"threadId": thread})
        await peer.request("thread/resume", {"threadId": thread})
        while (running := peer.server.services.threads.find_loaded(thread)) and running.turn:
            await running.turn.end_event.wait()
        kept = before[:2] if use == "rollback" and "result" in answer else before
        assert (await items(peer, thread))[: len(kept)] == kept
        assert (await peer.run_turn(thread, "and on"))["status"] == "completed"
        check_words(peer.side.bodies[-1]["input"])
        assert (await items(peer, thread))[: len(kept)] == kept
