"""Text of a skill in a conversation: after a compaction, an interrupt, on a disk that hangs."""

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from model_side import says
from session_peer import session
from skill_folders import WORD, entry, heard, item, names, project, put_skill, say, text

from reference_server.engine.compaction import KEPT_CHARACTERS, kept_messages
from reference_server.skills import invoking, library
from reference_server.words import without_known_skills

SAID = f"Say {WORD} tally."
SKILL = f"<skill>\n<name>tally</name>\n<path>/p</path>\n{SAID}\n</skill>"


def user(*texts: str) -> dict[str, Any]:
    parts = [{"type": "input_text", "text": one} for one in texts]
    return {"type": "message", "role": "user", "content": parts}


@pytest.mark.anyio
async def test_a_compaction_keeps_the_text_of_a_skill_and_it_is_not_given_again(
    tmp_path: Path,
) -> None:
    put_skill(project(tmp_path), "tally")
    async with session(tmp_path / "home", [says("a"), says("summary"), says("b")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        await say(peer, thread, text("$tally apples"))
        await peer.request("thread/compact/start", {"threadId": thread})
        await peer.event("turn/completed", threadId=thread)
        compacted = [m for m in peer.methods() if m == "turn/completed"]
        while len(compacted) < 2:
            await peer.receive()
            compacted = [m for m in peer.methods() if m == "turn/completed"]
        await say(peer, thread, text("$tally pears"))
    assert heard(peer).count(SAID) == 1
    assert "summary" in heard(peer)


def test_where_there_is_no_room_the_words_stay_without_the_skill() -> None:
    large = SKILL.replace(SAID, "x" * KEPT_CHARACTERS)
    assert kept_messages([user(large, "$tally"), user(SKILL, "again")]) == [
        user("$tally"),
        user(SKILL, "again"),
    ]


def test_a_skill_is_left_out_only_where_the_conversation_holds_it() -> None:
    message = user(SKILL, "$tally")
    assert without_known_skills(message, []) == message
    assert without_known_skills(message, [user("$tally")]) == message
    assert without_known_skills(message, [user(SKILL, "before")]) == user("$tally")
    assert without_known_skills(message, [{"role": "assistant", "content": []}]) == message


def test_a_users_own_text_is_never_left_out_whole() -> None:
    assert without_known_skills(user(SKILL), [user(SKILL)]) == user(SKILL)


@pytest.fixture
def silent_disk(monkeypatch: pytest.MonkeyPatch):
    """Let no folder be looked at, and no skill be read, until the test is over."""
    came, over = threading.Semaphore(0), threading.Event()

    def wait(*_given: object) -> None:
        came.release()
        over.wait(20)
        raise OSError(5, "too late")

    monkeypatch.setattr(library, "scan", wait)
    monkeypatch.setattr(invoking, "_read", wait)
    yield came
    over.set()


@pytest.mark.anyio
@pytest.mark.parametrize("given", [text("$tally"), item("tally", "/p/SKILL.md")])
async def test_a_turn_is_interrupted_while_the_disk_does_not_answer(
    given, silent_disk: threading.Semaphore, tmp_path: Path
) -> None:
    async with session(tmp_path, [says("b")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        sent = {"threadId": thread, "input": [text("go"), given]}
        turn = (await peer.request("turn/start", sent))["result"]["turn"]["id"]
        await anyio.to_thread.run_sync(silent_disk.acquire)
        await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        assert (await peer.turn_end(turn))["status"] == "interrupted"
        await say(peer, thread, text("and then"))
    said = heard(peer)
    assert said.startswith("go\n")
    assert said.endswith("and then")


@pytest.mark.anyio
@pytest.mark.slow
async def test_a_folder_that_does_not_answer_is_told_and_the_others_are_listed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put_skill(tmp_path / "home" / "skills", "tally")
    over, real = threading.Event(), library.scan

    def scan(root: str, *rest: Any):
        if root == str(project(tmp_path)):
            over.wait(20)
        return real(root, *rest)

    monkeypatch.setattr(library, "scan", scan)
    monkeypatch.setattr(library, "WAIT_TIME", 1.0)
    try:
        async with session(tmp_path / "home") as peer:
            found = await entry(peer, tmp_path)
    finally:
        over.set()
    assert names(found) == ["tally"]
    assert [one["path"] for one in found["errors"]] == [str(project(tmp_path))]
    assert "does not answer" in found["errors"][0]["message"]
