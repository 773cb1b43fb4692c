"""Bugs in answers whose form the text leaves open."""

from __future__ import annotations

from tests.conformance.bugs.planting import Message, sent, untold
from tests.conformance.bugs.registry import bug


@bug(
    reds={
        "choices/odd-requests": "request.answered",
        "choices/not-loaded": "request.answered",
        "choices/active": "request.answered",
        "choices/empty-input": "request.answered",
        "choices/skills": "request.answered",
        "choices/odd-tools": "request.answered",
    }
)
def what_nobody_expects_is_not_answered() -> None:
    """A request that is refused gets no answer."""

    def drop(kind: str, message: Message) -> list[Message]:
        return [] if kind.startswith("error:") else [message]

    sent(drop)


@bug(reds={"choices/no-turns": "request.answered"})
def a_thread_without_turns_is_not_archived_in_words() -> None:
    """A thread/archive gets no answer."""

    def drop(kind: str, message: Message) -> list[Message]:
        return [] if kind == "reply:thread/archive" else [message]

    sent(drop)


@bug(
    reds={
        "choices/odd-input": "turn.completes",
        "choices/cut-message": "turn.completes",
        "choices/another-thread": "turn.completes",
    }
)
def the_end_of_a_turn_is_forgotten() -> None:
    """No turn/completed is sent."""
    untold("turn/completed")


@bug(reds={"choices/kept-settings": "request.answered"})
def a_thread_is_resumed_in_silence() -> None:
    """A thread/resume gets no answer."""

    def drop(kind: str, message: Message) -> list[Message]:
        return [] if kind == "reply:thread/resume" else [message]

    sent(drop)
