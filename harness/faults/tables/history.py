"""Faults of threads that are resumed, forked and rolled back."""

from typing import Any

from harness.faults.base import Fault
from harness.faults.changes import first
from harness.faults.operators import drop, duplicate, edit, edit_by, insert_by, refuse, remove
from harness.faults.queue import FrameQueue
from harness.faults.selectors import Selector, answer_to, notification, read_with_turns
from harness.faults.site import FaultSite, NotApplied
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame
from harness.trace.views import TurnView, items_of, turns_of

THREAD = ("result", "thread")
TURNS = ("result", "thread", "turns")


def completed_before(site: FaultSite, frame: Frame) -> dict[str, TurnView]:
    """Return this client's turns of the requested thread that completed before the request."""
    request = site.request_of(frame)
    return {
        turn.id: turn
        for turn in site.conversation.turns.values()
        if request is not None
        and turn.thread_id == obj(request.params).get("threadId")
        and site.is_our_turn(turn)
        and turn.status == "completed"
        and turn.completions[0].seq < request.seq
    }


def of_a_used_thread(method: str) -> Selector:
    """Select an answer about a thread with a completed turn, before any rollback."""

    def has_completed_turn(site: FaultSite, frame: Frame) -> bool:
        cut_back = any(other.method == "thread/rollback" for other in site.frames)
        return bool(completed_before(site, frame)) and not cut_back

    return answer_to(method).where(has_completed_turn, "of a thread with a completed turn")


def that_shows_it(method: str) -> Selector:
    """Select an answer as by `of_a_used_thread` that shows the completed turn with its items."""
    return of_a_used_thread(method).where(
        lambda site, frame: shown_turn(site, frame) is not None, "that is shown with items"
    )


def shown_turn(site: FaultSite, frame: Frame) -> int | None:
    """Return the index of the first turn with items that completed before the request, or None.

    A fork may give its turns other ids; all that it shows of a thread at rest had ended.
    """
    completed = completed_before(site, frame)
    request = site.request_of(frame)
    forked = request is not None and request.method == FORK
    for place, turn in enumerate(turns_of(dig(frame.result, "thread"))):
        if (forked or turn.get("id") in completed) and items_of(turn):
            return place
    return None


def place_of(site: FaultSite, frame: Frame) -> int:
    """Return the index that `shown_turn` finds, 0 if it finds none."""
    place = shown_turn(site, frame)
    return 0 if place is None else place


def without_items(queue: FrameQueue, frame: Frame) -> None:
    """Remove the items of the completed turn from the answer."""
    edit(*TURNS, place_of(queue.site, frame), "items", to=[])(queue, frame)


def without_the_turn(queue: FrameQueue, frame: Frame) -> None:
    """Remove the completed turn from the answer."""
    remove(*TURNS, place_of(queue.site, frame))(queue, frame)


def without_a_message(queue: FrameQueue, frame: Frame) -> None:
    """Remove the agent's messages from the completed turn in the answer."""
    place = place_of(queue.site, frame)
    items = items_of(turns_of(dig(frame.result, "thread"))[place])
    remaining = [item for item in items if item.get("type") != "agentMessage"]
    edit(*TURNS, place, "items", to=remaining)(queue, frame)


def with_a_message(site: FaultSite, frame: Frame) -> bool:
    """Return whether the completed turn in the answer has an agentMessage."""
    items = items_of(turns_of(dig(frame.result, "thread"))[place_of(site, frame)])
    return any(item.get("type") == "agentMessage" for item in items)


def several_turns(_: FaultSite, frame: Frame) -> bool:
    """Return whether an answer shows more than one turn."""
    return len(arr(dig(frame.result, "thread", "turns"))) > 1


def requested_thread(site: FaultSite, frame: Frame) -> Any:
    """Return the thread id in the request that a frame answers."""
    return site.params_of(frame).get("threadId")


def announcement(_: FaultSite, frame: Frame) -> Any:
    """Return a thread/started notification, without turns, for the thread in the answer."""
    thread: dict[str, Any] = {**obj(dig(frame.result, "thread")), "turns": []}
    return {"method": "thread/started", "params": {"thread": thread}}


def announced_before(site: FaultSite, frame: Frame) -> bool:
    """Return whether the thread of an answer was announced before the request."""
    request = site.request_of(frame)
    thread = site.conversation.thread(text(dig(frame.result, "thread", "id")))
    return request is not None and any(start.seq < request.seq for start in thread.starts)


def of_a_fork(site: FaultSite, frame: Frame) -> bool | None:
    """Return whether a thread/started is of a fork; None while a thread/fork is unanswered."""
    thread = site.conversation.thread(text(dig(frame.params, "thread", "id")))
    requests = [site.request_of(answer) for answer in thread.opening_answers]
    if any(request is not None and request.method == "thread/fork" for request in requests):
        return True
    return None if site.has_open_request("thread/fork") else False


def was_not_loaded(site: FaultSite, frame: Frame) -> bool:
    """Return whether the thread was last reported as notLoaded before the request."""
    request = site.request_of(frame)
    statuses = site.conversation.thread(text(site.params_of(frame).get("threadId"))).statuses
    earlier = [status for status in statuses if request is not None and status.seq < request.seq]
    return bool(earlier) and dig(earlier[-1].params, "status", "type") == "notLoaded"


def rollback_answer() -> Selector:
    """Select an answer to thread/rollback of a thread with a completed turn."""
    return answer_to("thread/rollback").where(
        lambda site, frame: len(site.params_of(frame)) > 1 and bool(completed_before(site, frame)),
        "of a thread with a completed turn",
    )


def shows_turns(_: FaultSite, frame: Frame) -> bool:
    """Return whether an answer shows turns."""
    return bool(turns_of(dig(frame.result, "thread")))


def dropped_turn(site: FaultSite, frame: Frame) -> TurnView | None:
    """Return the last turn before the last rollback if the answer does not show it, else None."""
    cuts = [other for other in site.frames if other.method == "thread/rollback"]
    shown_ids = [turn.get("id") for turn in turns_of(dig(frame.result, "thread"))]
    ended = [
        turn
        for turn in site.conversation.turns.values()
        if cuts and turn.completions and turn.completions[0].seq < cuts[-1].seq and turn.reply
    ]
    return ended[-1] if ended and ended[-1].id not in shown_ids else None


def add_the_dropped_turn(queue: FrameQueue, frame: Frame) -> None:
    """Add the dropped turn to the answer. Raises `NotApplied` if there is none."""
    turn = dropped_turn(queue.site, frame)
    if turn is None:
        raise NotApplied("no turn that was dropped")
    turn_object: dict[str, Any] = {"id": turn.id, "items": [], "status": "completed", "error": None}
    turns = [*arr(dig(frame.result, "thread", "turns")), turn_object]
    edit(*TURNS, to=turns)(queue, frame)


def read_after_a_rollback() -> Selector:
    """Select an answer to thread/read with turns, after a rollback that dropped a turn."""

    def after(site: FaultSite, frame: Frame) -> bool:
        cuts = [other for other in site.frames if rollback_answer().fits(site, other)]
        return bool(cuts) and dropped_turn(site, frame) is not None

    return read_with_turns().where(after, "after a rollback")


def read_thread(site: FaultSite) -> str:
    """Return the id of the last read thread, "" if there is none or this client resumed it."""
    reads = [frame for frame in site.frames if frame.method == "thread/read"]
    thread_id = text(obj(reads[-1].params).get("threadId")) if reads else ""
    thread = site.conversation.threads.get(thread_id)
    return "" if thread is not None and thread.resume_requests else thread_id


def after_a_read(site: FaultSite, frame: Frame) -> bool:
    """Return whether a thread was read between two thread/loaded/list, and is in neither."""
    request, thread_id = site.request_of(frame), read_thread(site)
    lists = [f for f in site.frames if answer_to("thread/loaded/list").fits(site, f)]
    if request is None or not thread_id or len(lists) < 2:
        return False
    ids = [arr(dig(page.result, "data")) for page in lists[-2:]]
    reads = [f for f in site.frames if f.method == "thread/read"]
    between = lists[-2].seq < reads[-1].seq < request.seq
    return between and not any(thread_id in page_ids for page_ids in ids)


def turn_of_another_id(queue: FrameQueue, frame: Frame) -> None:
    """Change the id of the completed turn in the answer."""
    edit(*TURNS, place_of(queue.site, frame), "id", to="turn_987654321")(queue, frame)


def item_of_another_id(queue: FrameQueue, frame: Frame) -> None:
    """Change the id of the first item of the completed turn in the answer."""
    edit(*TURNS, place_of(queue.site, frame), "items", 0, "id", to="item-1")(queue, frame)


def without_a_command(queue: FrameQueue, frame: Frame) -> None:
    """Remove the commands from the completed turn in the answer."""
    place = place_of(queue.site, frame)
    items = items_of(turns_of(dig(frame.result, "thread"))[place])
    remaining = [item for item in items if item.get("type") != "commandExecution"]
    edit(*TURNS, place, "items", to=remaining)(queue, frame)


def with_a_command(site: FaultSite, frame: Frame) -> bool:
    """Return whether the completed turn in the answer has a command."""
    place = shown_turn(site, frame)
    turns = turns_of(dig(frame.result, "thread"))
    return place is not None and any(
        item.get("type") == "commandExecution" for item in items_of(turns[place])
    )


RESUME, FORK = "thread/resume", "thread/fork"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "resume-refused",
        rule="resume.reopens",
        on="resumed",
        reason="thread/resume reopens an existing thread.",
        change=first(
            of_a_used_thread(RESUME).where(was_not_loaded, "that is not loaded"),
            refuse("no such thread"),
        ),
    ),
    Fault(
        "resume-of-another-thread",
        rule="resume.same-thread",
        on="resumed",
        reason="thread/resume returns the thread that was asked for.",
        change=first(answer_to(RESUME), edit(*THREAD, "id", to="thr_987654321")),
    ),
    Fault(
        "resume-announced",
        rule="resume.not-announced",
        on="resumed",
        reason="thread/started is for threads that start or fork.",
        change=first(
            answer_to(RESUME).where(announced_before, "of a thread announced before"),
            insert_by(announcement),
        ),
    ),
    Fault(
        "resume-without-turns",
        rule="thread.history-shown",
        on="resumed",
        reason="The answer to thread/resume fills the items of turns, so it has turns.",
        change=first(that_shows_it(RESUME), edit(*TURNS, to=[])),
    ),
    Fault(
        "fork-without-turns",
        rule="thread.history-shown",
        on="forked",
        reason="The answer to thread/fork has the copied history.",
        change=first(that_shows_it(FORK), edit(*TURNS, to=[])),
    ),
    Fault(
        "resume-without-items",
        rule="turn.items-filled",
        on="resumed",
        reason="The items of turns are populated in thread/resume.",
        change=first(that_shows_it(RESUME), without_items),
    ),
    Fault(
        "fork-without-items",
        rule="turn.items-filled",
        on="forked",
        reason="The items of turns are populated in thread/fork.",
        change=first(that_shows_it(FORK), without_items),
    ),
    Fault(
        "resume-without-a-message",
        rule="resume.stored-equals-live",
        on="resumed",
        reason="The items of a resumed thread are those that were streamed.",
        change=first(
            that_shows_it(RESUME).where(with_a_message, "with an agentMessage"), without_a_message
        ),
    ),
    Fault(
        "resume-without-a-turn",
        rule="resume.stored-equals-live",
        on="resumed",
        reason="A resumed thread has all its turns.",
        change=first(that_shows_it(RESUME).where(several_turns, "and others"), without_the_turn),
    ),
    Fault(
        "fork-under-the-old-id",
        rule="fork.new-id",
        on="forked",
        reason="A fork has a new id.",
        change=first(answer_to(FORK), edit_by(*THREAD, "id", value=requested_thread)),
    ),
    Fault(
        "fork-not-announced",
        rule="fork.announced",
        on="forked",
        reason="thread/fork emits thread/started for the new thread.",
        change=first(notification("thread/started").where(of_a_fork, "of a fork"), drop),
    ),
    Fault(
        "fork-announced-twice",
        rule="fork.announced",
        on="forked",
        reason="A fork begins once, so it is announced once.",
        change=first(notification("thread/started").where(of_a_fork, "of a fork"), duplicate),
    ),
    Fault(
        "fork-without-a-message",
        rule="fork.copies-history",
        on="forked",
        reason="A fork has a copy of the history.",
        change=first(
            that_shows_it(FORK).where(with_a_message, "with an agentMessage"), without_a_message
        ),
    ),
    Fault(
        "fork-without-a-turn",
        rule="fork.copies-history",
        on="forked",
        reason="A fork has a copy of the history, all of it.",
        change=first(that_shows_it(FORK).where(several_turns, "and others"), without_the_turn),
    ),
    Fault(
        "rollback-drops-nothing",
        rule="rollback.drops",
        on="rolled-back",
        reason="thread/rollback drops the last turns.",
        change=first(rollback_answer(), add_the_dropped_turn),
    ),
    Fault(
        "rollback-shows-no-turns",
        rule="rollback.drops",
        on="rolled-back",
        reason="thread/rollback returns the thread with its turns, those that were left.",
        change=first(rollback_answer().where(shows_turns, "and shows turns"), edit(*TURNS, to=[])),
    ),
    Fault(
        "rolled-back-turn-is-read",
        rule="rollback.remaining",
        on="rolled-back",
        reason="A turn that was dropped is not among the turns of the thread any more.",
        change=first(read_after_a_rollback(), add_the_dropped_turn),
    ),
    Fault(
        "read-loads-the-thread",
        rule="read.not-resumed",
        on="read-unloaded",
        reason="thread/read does not resume the thread.",
        change=first(
            answer_to("thread/loaded/list").where(after_a_read, "after a read of a thread left"),
            edit_by("result", "data", value=lambda site, _: [read_thread(site)]),
        ),
    ),
    Fault(
        "turn-in-another-thread",
        rule="turn.in-its-thread",
        on="two-turns-read",
        reason="A turn is among those of the thread that it was started on.",
        change=first(
            read_with_turns().where(lambda site, f: shown_turn(site, f) is not None, "of a turn"),
            turn_of_another_id,
        ),
    ),
    Fault(
        "read-without-a-command",
        rule="history.items-as-told",
        on="read-unloaded",
        reason="The turns that are read hold the items that were streamed.",
        change=first(read_with_turns().where(with_a_command, "with a command"), without_a_command),
    ),
    Fault(
        "item-of-another-id-in-the-history",
        rule="history.item-ids",
        on="two-turns-read",
        reason="Worth recording: the ids of items in the history are not those of the stream.",
        change=first(
            read_with_turns().where(lambda site, f: shown_turn(site, f) is not None, "of a turn"),
            item_of_another_id,
        ),
    ),
)
