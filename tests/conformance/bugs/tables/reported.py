"""Bugs like those that people reported of shipping servers (docs/reported.md)."""

from __future__ import annotations

from tests.conformance.bugs.planting import Message, received, sent
from tests.conformance.bugs.registry import bug
from tests.conformance.bugs.tables.history import FORK, RESUME


def unanswered_after_an_interrupt(method: str) -> None:
    """Requests of this method are not answered once a turn has been interrupted."""
    interrupted: list[Message] = []

    def edit(kind: str, message: Message) -> list[Message]:
        if kind == "turn/completed" and message["params"]["turn"]["status"] == "interrupted":
            interrupted.append(message)
        is_answer = kind in (f"reply:{method}", f"error:{method}")
        return [] if is_answer and interrupted else [message]

    sent(edit)


@bug(reds={"reported/interrupted-again": "request.answered"})
def a_second_interrupt_waits_for_an_end_that_has_been() -> None:
    """An interrupt that comes after the end of an interrupted turn is never answered."""
    unanswered_after_an_interrupt("turn/interrupt")


@bug(reds={"reported/resumed-after-an-interrupt": "request.answered"})
def a_thread_stays_busy_after_an_interrupt() -> None:
    """thread/resume is never answered once a turn of the thread was interrupted."""
    unanswered_after_an_interrupt(RESUME)


@bug(
    reds={
        "reported/limits-in-fractions": "scenario.expectation: thread/fork was answered by an err"
    }
)
def a_resumed_thread_cannot_be_forked() -> None:
    """thread/fork of a thread that was resumed is refused."""
    resumed: set[str] = set()

    def edit(method: str, message: Message) -> Message:
        if method == RESUME:
            resumed.add(message["params"]["threadId"])
        if method == FORK and message["params"]["threadId"] in resumed:
            message["params"]["threadId"] = "thr_404404404"
        return message

    received(edit)


@bug(reds={"reported/tools-of-an-ephemeral-thread": "turn.completes"})
def no_turn_with_a_tool_of_the_client_ends() -> None:
    """The end of a turn that called a tool of the client is not sent."""
    called: set[str] = set()

    def edit(kind: str, message: Message) -> list[Message]:
        if kind == "item/tool/call":
            called.add(message["params"]["turnId"])
        is_lost = kind == "turn/completed" and message["params"]["turn"]["id"] in called
        return [] if is_lost else [message]

    sent(edit)


@bug(reds={"reported/abandoned-command": "turn.completed-last"})
def a_command_is_completed_when_its_turn_has_ended() -> None:
    """The item/completed of a command follows the turn/completed of its turn."""
    held: list[Message] = []

    def edit(kind: str, message: Message) -> list[Message]:
        if kind == "item/completed" and message["params"]["item"]["type"] == "commandExecution":
            held.append(message)
            return []
        if kind == "turn/completed":
            return [message, *held]
        return [message]

    sent(edit)


@bug(reds={"reported/config-of-one-thread": "turn.completes"})
def no_turn_of_a_thread_with_settings_of_its_own_ends() -> None:
    """The end of a turn is not sent once a thread was started with `config`."""
    started: list[Message] = []

    def receive(method: str, message: Message) -> Message:
        if method == "thread/start" and "config" in message["params"]:
            started.append(message)
        return message

    def edit(kind: str, message: Message) -> list[Message]:
        return [] if kind == "turn/completed" and started else [message]

    received(receive)
    sent(edit)
