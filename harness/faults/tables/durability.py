"""Faults of turns that were cut off by the end of an earlier server process."""

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


def _cut_turn_index(site: FaultSite, frame: Frame) -> int | None:
    """Return the index of a stored, interrupted turn whose end this client did not get, or None."""
    for index, turn in enumerate(turns_of(dig(frame.result, "thread"))):
        live_turn = site.conversation.turns.get(text(turn.get("id")))
        if turn.get("status") == CUT and (live_turn is None or not live_turn.completions):
            return index
    return None


def _cut_turn(site: FaultSite, frame: Frame) -> tuple[int, list[dict[str, Any]]]:
    index = _cut_turn_index(site, frame)
    if index is None:
        raise ValueError(f"frame {frame.seq} shows no turn that was cut off")
    return index, items_of(turns_of(dig(frame.result, "thread"))[index])


def cut_turn_read(*, holding: str) -> Selector:
    """Select an answer to thread/read that shows a cut-off turn with an item of a type."""

    def reads(site: FaultSite, frame: Frame) -> Verdict:
        if _cut_turn_index(site, frame) is None:
            return False
        return holding in [item.get("type") for item in _cut_turn(site, frame)[1]]

    return read_with_turns().where(reads, f"that shows a turn cut off, with a {holding}")


def edit_turn(name: str, value: Callable[[list[dict[str, Any]]], Any]) -> Any:
    """Return an operator that sets a member of the cut-off turn, computed from its items."""

    def operate(queue: FrameQueue, frame: Frame) -> None:
        index, items = _cut_turn(queue.site, frame)
        edit_by(*TURNS, index, name, value=lambda _, __: value(items))(queue, frame)

    return operate


def _without_messages(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item for item in items if item.get("type") != "agentMessage"]


def _with_other_texts(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**item, "text": "…"} if "text" in item else item for item in items]


def _still_running(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**item, "status": "inProgress"} if "status" in item else item for item in items]


def _resumed_here(site: FaultSite, frame: Frame) -> bool:
    """Return whether the thread of an answered turn/start was opened with a cut-off turn."""
    thread_id = text(site.params_of(frame).get("threadId"))
    thread = site.conversation.threads.get(thread_id)
    return thread is not None and any(
        turn.get("status") == CUT
        for answer in thread.opening_answers
        for turn in turns_of(dig(answer.result, "thread"))
    )


FAULTS: tuple[Fault, ...] = (
    Fault(
        "cut-turn-loses-a-message",
        rule="durable.messages-kept",
        on="cut-off",
        reason="A thread persists on disk, and a message that was completed is final.",
        change=first(cut_turn_read(holding="agentMessage"), edit_turn("items", _without_messages)),
    ),
    Fault(
        "cut-turn-says-something-else",
        rule="durable.messages-kept",
        on="cut-off",
        reason="A thread persists on disk, and a message that was completed is final.",
        change=first(cut_turn_read(holding="agentMessage"), edit_turn("items", _with_other_texts)),
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
        change=first(cut_turn_read(holding="commandExecution"), edit_turn("items", _still_running)),
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
