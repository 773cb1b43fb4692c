"""Bugs about messages and connections: missing answers, crashes, lost threads."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conformance.bugs.planting import Message, received, replied, sent, swap
from tests.conformance.bugs.registry import bug


@bug(reds={"language/answer-later": "request.answered"})
def one_read_at_a_time_is_answered() -> None:
    """A thread/read that comes right after another is not answered."""
    count = 0

    def edit(method: str, message: Message) -> list[Message]:
        nonlocal count
        count += method == "reply:thread/read"
        return [] if method == "reply:thread/read" and count == 2 else [message]

    sent(edit)


def _cannot_start_where(file: str, words: Callable[[str], bool]) -> None:
    """End a server that starts over a home with a file whose text `words` picks."""

    def recover(original: Any) -> Any:
        def changed(home: Any) -> None:
            if any(words(one.read_text()) for one in Path(home.root).rglob(file)):
                os._exit(70)
            original(home)

        return changed

    swap("reference_server.cli.app_server:recover", recover)


@bug(reds={"language/disconnect": "scenario.crash: exit status 70"})
def a_client_that_leaves_within_a_turn_leaves_the_home_locked() -> None:
    """A server does not start if a client disconnected during a turn before."""

    def end(original: Any) -> Any:
        async def lock(server: Any) -> None:
            if any(thread.turn for thread in server.services.threads.loaded_threads):
                (Path(server._home.root) / "is.locked").write_text("locked")
            await original(server)

        return lock

    swap("reference_server.server:Server.end_turns", end)
    _cannot_start_where("is.locked", bool)


@bug(reds={"language/kill-mid-turn": "scenario.crash: exit status 70"})
def a_home_with_half_a_turn_cannot_be_used() -> None:
    """A server does not start where one was killed within a turn."""

    def is_half(text: str) -> bool:
        return text.count('"type":"turn-started"') > text.count('"type":"turn-completed"')

    _cannot_start_where("rollout-*.jsonl", is_half)


@bug(
    reds={
        "language/malformed-line": "scenario.crash: exit status 70",
        "language/no-text": "scenario.crash: exit status 70",
        "clients/malformed-by-another": "scenario.crash: exit status 70",
    }
)
def a_line_that_is_no_message_ends_the_server() -> None:
    """The server stops at a line that is not a valid message."""
    swap(
        "reference_server.connection:Connection._send_error", lambda _: lambda *words: os._exit(70)
    )


@bug(reds={"clients/no-text-by-another": "scenario.crash: exit status 70"})
def a_frame_that_is_no_text_ends_the_server() -> None:
    """The server stops at a text frame of a WebSocket that is not UTF-8."""

    def is_text(original: Any) -> Any:
        return lambda message: original(message) or os._exit(70)

    swap("reference_server.transport.websocket:_is_text", is_text)


@bug(reds={"language/notify": "notification.not-answered"})
def a_notification_is_answered() -> None:
    """A notification of the client is answered with an error."""

    def accept(original: Any) -> Any:
        async def changed(connection: Any, message: Any, receiver: Any) -> None:
            await original(connection, message, receiver)
            if b'"id"' not in bytes(message):
                connection._send_error(-32600, "nothing was asked for")

        return changed

    swap("reference_server.connection:Connection._accept", accept)


@bug(reds={"language/raw-request": "scenario.timeout: a message where id: 404404"})
def a_large_id_is_cut() -> None:
    """An answer has its request's id as far as sixteen bits go."""

    def edit(method: str, message: Message) -> list[Message]:
        if method.startswith(("reply:", "error:")) and isinstance(message["id"], int):
            message["id"] &= 0xFFFF
        return [message]

    sent(edit)


@bug(reds={"language/requests": "read.thread-id"})
def what_is_read_has_another_id() -> None:
    """A thread/read shows its thread under an unknown id."""
    replied("thread/read", lambda result: result["thread"].update(id="thr_77"))


@bug(reds={"language/restart": "scenario.expectation: thread/read was answered by an error"})
def a_restart_forgets_all_threads() -> None:
    """All stored threads are deleted when the server is started again."""

    def recover(original: Any) -> Any:
        def changed(home: Any) -> None:
            for file in Path(home.root).rglob("rollout-*.jsonl"):
                file.unlink()
            original(home)

        return changed

    swap("reference_server.cli.app_server:recover", recover)


@bug(reds={"language/slow-reader": "delta.rebuilds-reply"})
def an_outbox_takes_three_deltas_at_most() -> None:
    """The server drops every delta after the third."""
    # How many wait at once depends on the load of the machine, so they are counted.
    taken: Counter[int] = Counter()

    def put(original: Any) -> Any:
        def changed(outbox: Any, prefix: bytes, line: bytes) -> None:
            taken[id(outbox)] += 1
            if taken[id(outbox)] <= 3:
                original(outbox, prefix, line)

        return changed

    swap("reference_server.outbox:Outbox.put_delta", put)


@bug(reds={"threads/listed-words": "word.taken"})
def one_word_for_a_policy_is_not_known() -> None:
    """A thread/start under the approval policy on-failure is refused."""

    def receive(method: str, message: Message) -> Message:
        if method == "thread/start" and message["params"].get("approvalPolicy") == "on-failure":
            message["params"]["approvalPolicy"] = "onfailure"
        return message

    received(receive)


@bug(reds={"threads/sandbox-words": "thread.sandbox-taken"})
def one_word_for_a_sandbox_is_not_known() -> None:
    """A thread/start that asks for a read-only sandbox is refused."""

    def receive(method: str, message: Message) -> Message:
        if method == "thread/start" and message["params"].get("sandbox") == "read-only":
            message["params"]["sandbox"] = "readonly"
        return message

    received(receive)


@bug(reds={"threads/sandbox-word-of-the-example": "request.answered"})
def the_word_of_the_example_gets_no_answer() -> None:
    """A thread/start with the word of the example is neither taken nor refused."""
    theirs: set[Any] = set()

    def receive(method: str, message: Message) -> Message:
        if method == "thread/start" and message["params"].get("sandbox") == "workspaceWrite":
            theirs.add(message["id"])
        return message

    def edit(method: str, message: Message) -> list[Message]:
        return [] if method == "reply:thread/start" and message["id"] in theirs else [message]

    received(receive)
    sent(edit)
