"""The session's news of a turn that was played twice, for rules of agreement."""

from collections import Counter
from typing import Final

from harness.protocol.spec.exec_events import exec_events
from harness.trace.marks import ToldBySession
from harness.trace.trace import Trace

MESSAGE: Final = "agent_message"
# What the session has as something else than an item, or has no word for.
_NOT_COMPARED: Final = ("todo_list", "error", "reasoning")


def session_told(trace: Trace, turn: str) -> ToldBySession | None:
    """Return what the session told of this turn of the scenario, None if nobody noted it."""
    told = (mark.body for mark in trace.marks_of(ToldBySession))
    return next((one for one in told if one.turn == turn), None)


def compared() -> set[str]:
    """The item types that are counted; messages are compared by their texts."""
    return {*exec_events().items} - {*_NOT_COMPARED, MESSAGE}


def counted_words(counted: Counter[str]) -> str:
    """A number of items of each type, in words."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counted.items())) or "none"
