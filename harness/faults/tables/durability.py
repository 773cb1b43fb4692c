"""Faults of what a server shows of a turn that the end of another one cut off."""

from collections.abc import Callable
from typing import Any

from harness.faults.base import Fault
from harness.faults.changes import first
from harness.faults.operators import edit_by, refuse
from harness.faults.queue import FrameQueue
from harness.faults.selectors import Selector, Verdict, answer_to, read_with_turns
from harness.faults.site import FaultSite
from harness.protocol.values import dig, text
from harness.trace.frame import Frame
from harness.trace.views import items_of, turns_of

TURNS = ("result", "thread", "turns")
CUT = "interrupted"


def _place(site: FaultSite, frame: Frame) -> int | None:
    """The index of a stored turn that was cut off, and of which this client was told no end."""
    for at, turn in enumerate(turns_of(dig(frame.result, "thread"))):
        told = site.conversation.turns.get(text(turn.get("id")))
        if turn.get("status") == CUT and (told is None or not told.completed):
            return at
    return None


def _held(site: FaultSite, frame: Frame) -> tuple[int, list[dict[str, Any]]]:
    at = _place(site, frame)
    if at is None:
        raise ValueError(f"frame {frame.seq} shows no turn that was cut off")
    return at, items_of(turns_of(dig(frame.result, "thread"))[at])


def cut_turn_read(*, holding: str) -> Selector:
    """An answer to thread/read that shows a turn which was cut off, with an item of a type."""

    def reads(site: FaultSite, frame: Frame) -> Verdict:
        if _place(site, frame) is None:
            return False
        return holding in [item.get("type") for item in _held(site, frame)[1]]

    return read_with_turns().where(reads, f"that shows a turn cut off, with a {holding}")


def edit_turn(name: str, value: Callable[[list[dict[str, Any]]], Any]) -> Any:
    """Set a member of the turn to one made of its items."""

    def operate(queue: FrameQueue, frame: Frame) -> None:
        at, items = _held(queue.site, frame)
        edit_by(*TURNS, at, name, value=lambda _, __: value(items))(queue, frame)

    return operate


def _silent(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item for item in items if item.get("type") != "agentMessage"]


def _unsaid(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**item, "text": "…"} if "text" in item else item for item in items]


def _at_work(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**item, "status": "inProgress"} if "status" in item else item for item in items]


def _resumed_here(site: FaultSite, frame: Frame) -> bool:
    """Return whether the thread of a turn that is answered was resumed, with a turn that was cut
    off.
    """
    asked = text(site.asked(frame).get("threadId"))
    thread = site.conversation.threads.get(asked)
    return thread is not None and any(
        turn.get("status") == CUT
        for answer in thread.opened
        for turn in turns_of(dig(answer.result, "thread"))
    )


FAULTS: tuple[Fault, ...] = (
    Fault(
        "cut-turn-loses-a-message",
        rule="durable.messages-kept",
        on="cut-off",
        reason="A thread persists on disk, and a message that was completed is final.",
        change=first(cut_turn_read(holding="agentMessage"), edit_turn("items", _silent)),
    ),
    Fault(
        "cut-turn-says-something-else",
        rule="durable.messages-kept",
        on="cut-off",
        reason="A thread persists on disk, and a message that was completed is final.",
        change=first(cut_turn_read(holding="agentMessage"), edit_turn("items", _unsaid)),
    ),
    Fault(
        "cut-turn-still-runs",
        rule="durable.turn-over",
        on="cut-off",
        reason="A thread that is not in memory has no active turn.",
        change=first(
            cut_turn_read(holding="userMessage"), edit_turn("status", lambda _: "inProgress")
        ),
    ),
    Fault(
        "cut-item-still-runs",
        rule="durable.items-over",
        on="cut-off",
        reason="What became of an item whose server was killed is not shown; it is recorded.",
        change=first(cut_turn_read(holding="commandExecution"), edit_turn("items", _at_work)),
    ),
    Fault(
        "cut-thread-takes-no-turn",
        rule="durable.goes-on",
        on="cut-off",
        reason="A thread that was resumed takes a turn.",
        change=first(
            answer_to("turn/start").where(_resumed_here, "on a thread that was cut off"),
            refuse("no more turns"),
        ),
    ),
)
