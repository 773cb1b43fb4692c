"""Bugs about the storage of threads: the archive, names, loaded threads, files."""

from __future__ import annotations

import os
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio

from tests.conformance.bugs.planting import Message, instead, replied, sent, swap
from tests.conformance.bugs.registry import bug

REGISTRY = "reference_server.session.registry"


@bug(reds={"threads/archive-file": "archive.file-moved"})
def what_is_archived_is_copied() -> None:
    """The file of an archived thread stays where it was, too."""

    def copy(old: Path, new: Path) -> None:
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(old, new)

    instead(f"{REGISTRY}:move", copy)


@bug(reds={"threads/unarchive-path": "rollout.at-its-path"})
def path_in_the_archive_is_told_after_it() -> None:
    """A thread that left the archive is read and resumed with its path in the archive."""
    restored: set[str] = set()

    def edit(kind: str, message: Message) -> list[Message]:
        thread = message.get("result", {}).get("thread", {})
        if kind == "reply:thread/unarchive":
            restored.add(thread["id"])
        if kind in ("reply:thread/read", "reply:thread/resume") and thread["id"] in restored:
            thread["path"] = thread["path"].replace("/sessions/", "/archived_sessions/")
        return [message]

    sent(edit)


AGAIN, ENDED = "threads/asked-again", "threads/ended-twice"


def _lose_answers_after(count: int) -> None:
    """Lose the answers to each method after the first `count` of them."""
    answers: dict[str, int] = {}

    def edit(kind: str, message: Message) -> list[Message]:
        answer, _, method = kind.partition(":")
        if answer not in ("reply", "error") or method == "thread/start":
            return [message]
        answers[method] = answers.get(method, 0) + 1
        return [message] if answers[method] <= count else []

    sent(edit)


@bug(
    reds={
        f"{AGAIN}/interrupt": "request.answered",
        f"{AGAIN}/steer": "request.answered",
        f"{AGAIN}/name": "request.answered",
        f"{AGAIN}/read": "request.answered",
        f"{AGAIN}/resume": "request.answered",
        f"{AGAIN}/fork": "request.answered",
    }
)
def request_after_the_end_gets_no_answer() -> None:
    """A request is answered before and during a turn, and not after its end."""
    _lose_answers_after(2)


@bug(
    reds={
        f"{ENDED}/unarchive": "request.answered",
        f"{ENDED}/archive": "request.answered",
        f"{ENDED}/unsubscribe": "request.answered",
    }
)
def what_ended_is_not_ended_again() -> None:
    """A request that ends something is answered once."""
    _lose_answers_after(1)


@bug(
    reds={
        "threads/archive-again": "request.answered",
        "threads/archive-then-turn": "request.answered",
        "threads/name-odd": "request.answered",
    }
)
def what_is_refused_is_refused_in_silence() -> None:
    """A request about a thread that cannot be granted gets no answer."""

    def drop(kind: str, message: Message) -> list[Message]:
        return [] if kind.startswith("error:") else [message]

    sent(drop)


@bug(
    reds={
        "threads/archive-mid-turn": "scenario.timeout: an answer",
        "threads/unsubscribe-mid-turn": "scenario.timeout: an answer",
    }
)
def a_turn_is_waited_for_for_ever() -> None:
    """A request that would end a turn waits forever for its end."""

    async def never(thread: Any) -> None:
        await anyio.sleep_forever()

    instead("reference_server.session.thread:LoadedThread.end_turn", never)


@bug(
    reds={"threads/archive-unloaded": "scenario.expectation: thread/archive was answered by an err"}
)
def only_what_is_loaded_is_archived() -> None:
    """A thread must be loaded to be archived."""

    async def refuse(threads: Any, thread_id: str) -> None:
        await threads.get_loaded(thread_id)

    instead(f"{REGISTRY}:Threads.archive_stored", refuse)


@bug(reds={"threads/archive-restart": "scenario.expectation: thread/list was answered by a result"})
def the_archive_is_emptied_at_the_start() -> None:
    """A server that starts takes every thread out of the archive."""

    def keep(original: Any) -> Any:
        def changed(store: Any, home: Any) -> None:
            for path in home.archived_sessions.rglob("*.jsonl"):
                place = home.sessions / path.relative_to(home.archived_sessions)
                place.parent.mkdir(parents=True, exist_ok=True)
                os.rename(path, place)
            original(store, home)

        return changed

    swap("reference_server.rollout.store:RolloutStore.__init__", keep)


@bug(reds={"threads/archive-resume": "scenario.expectation: thread/resume was answered by an err"})
def what_was_archived_once_is_not_loaded() -> None:
    """A thread that was taken out of the archive counts as archived until the server ends."""

    archived: set[str] = set()
    refusal: Any = import_module("reference_server.refusal")

    def noting(original: Any) -> Any:
        async def changed(threads: Any, thread_id: str, *places: Path) -> None:
            archived.add(thread_id)
            await original(threads, thread_id, *places)

        return changed

    def keep(original: Any) -> Any:
        def changed(threads: Any, thread_id: str, path: Path) -> None:
            if thread_id in archived:
                raise refusal.invalid_request("it is archived")
            original(threads, thread_id, path)

        return changed

    swap(f"{REGISTRY}:Threads._move", noting)
    swap(f"{REGISTRY}:Threads.refuse_archived", keep)


@bug(reds={"threads/name-restart": "name.shown"})
def a_name_lasts_as_long_as_the_process() -> None:
    """The name of a thread is not recorded."""
    swap("reference_server.session.thread:LoadedThread.record", _without_names)


def _without_names(original: Any) -> Any:
    def changed(thread: Any, record: Any, *more: Any) -> Any:
        if type(record).__name__ == "NameRecord":
            return None
        return original(thread, record, *more)

    return changed


@bug(reds={"threads/loaded-list": "loaded.lists-loaded"})
def the_last_of_a_page_is_lost() -> None:
    """The list of loaded threads lacks the last one of each page."""
    replied("thread/loaded/list", lambda result: result["data"].pop())


@bug(reds={"threads/ephemeral": "ephemeral.not-stored"})
def an_ephemeral_thread_is_put_down_all_the_same() -> None:
    """The records of an ephemeral thread are written to a file."""

    def keep(original: Any) -> Any:
        def changed(recorder: Any, record: Any) -> None:
            with open(Path(os.environ["AGENT_HOME"]) / "ephemeral.txt", "a") as file:
                file.write(f"{record.model_dump_json()}\n")
            original(recorder, record)

        return changed

    swap("reference_server.rollout.writer:MemoryRecorder.append", keep)


@bug(reds={"threads/rollout-file": "rollout.at-its-path"})
def a_path_names_no_file() -> None:
    """The path of a thread has another suffix than its file."""

    def rename(result: Message) -> None:
        result["thread"]["path"] = f"{result['thread']['path']}.zip"

    replied("thread/read", rename)
