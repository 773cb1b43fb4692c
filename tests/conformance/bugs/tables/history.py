"""Bugs about threads that are resumed, forked, rolled back and read."""

from __future__ import annotations

from typing import Any

from tests.conformance.bugs.planting import Message, received, sent
from tests.conformance.bugs.registry import bug

RESUME, FORK, ROLLBACK, READ = (f"thread/{verb}" for verb in ("resume", "fork", "rollback", "read"))
AFTER = ["command", "failed", "interrupted", "patch", "plan", "reasoning", "steered"]


def unanswered(method: str) -> None:
    """A request of this method is never answered."""

    def edit(kind: str, message: Message) -> list[Message]:
        return [] if kind in (f"reply:{method}", f"error:{method}") else [message]

    sent(edit)


def lost_after(method: str, lost: str) -> None:
    """After an answer to this method, no notification of that name comes any more."""
    answered: list[str] = []

    def edit(kind: str, message: Message) -> list[Message]:
        if kind == f"reply:{method}":
            answered.append(kind)
        return [] if kind == lost and answered else [message]

    sent(edit)


@bug(
    reds={
        **{f"threads/resume-after/{row}": "resume.same-thread" for row in AFTER},
        "threads/resume-left": "resume.same-thread",
    }
)
def a_resumed_thread_comes_back_as_another() -> None:
    """The answer to thread/resume has the id of another thread."""

    def edit(kind: str, message: Message) -> list[Message]:
        if kind == f"reply:{RESUME}":
            message["result"]["thread"]["id"] = "thr_987654321"
        return [message]

    sent(edit)


@bug(reds={"threads/resume-personality": "scenario.expectation: thread/resume was answered by an"})
def a_thread_is_not_resumed_with_a_personality() -> None:
    """thread/resume with a personality is refused."""

    def edit(kind: str, message: Message) -> Message:
        if kind == RESUME and "personality" in message["params"]:
            message["params"]["threadId"] = "thr_987654321"
        return message

    received(edit)


@bug(
    reds={
        "threads/resume-loaded": "turn.completes",
        "threads/attach/before-the-first-item": "turn.completes",
    }
)
def who_resumes_a_loaded_thread_hears_no_end() -> None:
    """After thread/resume of a loaded thread the end of its turn is not reported."""
    lost_after(RESUME, "turn/completed")


@bug(
    reds={
        "threads/resume-unknown": "request.answered",
        "reported/resumed-without-a-turn": "request.answered",
    }
)
def a_thread_that_is_not_there_is_never_found() -> None:
    """thread/resume of a thread that does not exist is never answered."""
    unanswered(RESUME)


@bug(reds={"threads/fork-stored": "fork.announced", "threads/fork-of-a-fork": "fork.announced"})
def a_fork_is_not_announced() -> None:
    """No thread/started comes of a fork."""
    lost_after(FORK, "thread/started")


@bug(reds={"threads/fork-running": "turn.completes"})
def a_fork_ends_the_turn_that_runs_without_a_word() -> None:
    """The end of a turn is not reported if its thread is forked during it."""
    lost_after(FORK, "turn/completed")


@bug(reds={"threads/fork-ephemeral": "request.answered"})
def what_cannot_be_forked_is_left_unanswered() -> None:
    """thread/fork of an ephemeral thread is never answered."""
    unanswered(FORK)


@bug(reds={"threads/rollback-all": "rollback.drops", "threads/rollback-lasts": "rollback.drops"})
def a_rollback_shows_what_it_dropped() -> None:
    """The answer to thread/rollback shows every turn that there ever was."""
    ended: list[dict[str, Any]] = []

    def edit(kind: str, message: Message) -> list[Message]:
        if kind == "turn/completed":
            ended.append(message["params"]["turn"])
        elif kind == f"reply:{ROLLBACK}":
            message["result"]["thread"]["turns"] = list(ended)
        return [message]

    sent(edit)


@bug(reds={"threads/rollback-too-many": "request.answered"})
def a_rollback_by_too_many_is_left_unanswered() -> None:
    """thread/rollback by more turns than there are is never answered."""
    unanswered(ROLLBACK)


@bug(reds={"threads/rollback-after-compaction": "scenario.expectation: contains 'Two.'"})
def a_rollback_drops_nothing_after_a_compaction() -> None:
    """thread/rollback returns the thread, but drops no turn."""

    def edit(kind: str, message: Message) -> Message:
        if kind != ROLLBACK:
            return message
        return {**message, "method": READ, "params": {"threadId": message["params"]["threadId"]}}

    received(edit)


@bug(reds={"threads/read-turns": "read.includes-turns"})
def turns_are_not_read() -> None:
    """thread/read with includeTurns has no turns."""

    def edit(kind: str, message: Message) -> list[Message]:
        if kind == f"reply:{READ}":
            message["result"]["thread"]["turns"] = []
        return [message]

    sent(edit)


@bug(reds={"threads/read-unloaded": "read.not-resumed"})
def a_thread_that_is_read_is_loaded() -> None:
    """thread/read loads the thread, as thread/resume does."""

    def edit(kind: str, message: Message) -> Message:
        if kind != READ:
            return message
        return {**message, "method": RESUME, "params": {"threadId": message["params"]["threadId"]}}

    received(edit)


@bug(reds={"threads/attach/in-a-message": "attach.text-continues"})
def half_a_message_is_shown_empty() -> None:
    """The message that is in progress is shown without its text so far."""

    def edit(kind: str, message: Message) -> list[Message]:
        if kind == f"reply:{RESUME}":
            for turn in message["result"]["thread"]["turns"]:
                for item in turn["items"]:
                    if item["type"] == "agentMessage":
                        item["text"] = ""
        return [message]

    sent(edit)


@bug(reds={"threads/attach/during-a-command": "attach.no-duplicate"})
def who_resumes_a_thread_is_told_again() -> None:
    """Items that ended before thread/resume are reported again after its answer."""
    ended: list[Message] = []

    def edit(kind: str, message: Message) -> list[Message]:
        if kind == "item/completed":
            ended.append(message)
        return [message, *ended] if kind == f"reply:{RESUME}" else [message]

    sent(edit)


@bug(reds={"clients/joined-between-messages": "attach.no-gap"})
def who_comes_in_is_not_shown_what_was_said() -> None:
    """A client that resumes a running turn is shown only the last of its messages."""

    def edit(kind: str, message: Message) -> list[Message]:
        if kind == f"reply:{RESUME}":
            for turn in message["result"]["thread"]["turns"]:
                said = [one for one in turn["items"] if one["type"] == "agentMessage"]
                if turn["status"] == "inProgress":
                    turn["items"] = [one for one in turn["items"] if one not in said[:-1]]
        return [message]

    sent(edit)


@bug(
    reds={
        "threads/killed/in-a-message": "durable.turn-over",
        "threads/killed/during-a-command": "durable.turn-over",
    }
)
def a_turn_outlives_its_server() -> None:
    """A turn that was cut off is read as if it still ran."""

    def edit(kind: str, message: Message) -> list[Message]:
        if kind == f"reply:{READ}":
            for turn in message["result"]["thread"]["turns"]:
                if turn["status"] != "completed":
                    turn["status"] = "inProgress"
        return [message]

    sent(edit)


@bug(reds={"threads/killed/at-a-question": "durable.goes-on"})
def a_thread_that_was_killed_takes_no_turn() -> None:
    """No turn begins on a thread that was resumed."""
    resumed: list[str] = []

    def edit(kind: str, message: Message) -> Message:
        if kind == RESUME:
            resumed.append(message["params"]["threadId"])
        if kind == "turn/start" and resumed:
            message["params"]["threadId"] = "thr_987654321"
        return message

    received(edit)
