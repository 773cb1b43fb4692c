"""Faults of threads, their status, and thread/read."""

from typing import Any

from harness.faults.base import Condition, Fault
from harness.faults.changes import every, first, rename_id, requires, wait_for
from harness.faults.operators import drop, duplicate, edit, edit_by, remove
from harness.faults.queue import FrameQueue, Steps
from harness.faults.selectors import (
    Fits,
    Selector,
    Verdict,
    answer_to,
    read_with_turns,
    status,
    thread_announced,
    turn_completed,
)
from harness.faults.site import FaultSite
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame
from harness.trace.trace import Trace
from harness.trace.views import TurnView, items_of

MILLISECONDS = 1000
OUR_DAYS = 1_000_000_000
ACTIVE: dict[str, Any] = {"type": "active", "activeFlags": []}
THREAD = ("result", "thread")
TURNS = ("result", "thread", "turns")


def read_of_an_ended_turn(*, turns: bool) -> Selector:
    """Select an answer to thread/read, with turns or without, of a thread with an ended turn.

    If turns are requested, that turn is among those shown. Reads after a rollback do not count:
    their turns are unknown.
    """

    def reads(site: FaultSite, frame: Frame) -> Verdict:
        params = site.params_of(frame)
        if (params.get("includeTurns") is True) is not turns:
            return False
        if any(other.method == "thread/rollback" for other in site.frames):
            return False
        stored = stored_turns(frame)
        return any(turn.id in stored if turns else not stored for turn in ended_before(site, frame))

    description = (
        "with a turn that ended before" if turns else "without turns, after the end of a turn"
    )
    return answer_to("thread/read").where(reads, description)


def ended_before(site: FaultSite, frame: Frame) -> list[TurnView]:
    """Return this client's turns of the read thread that had ended before the request."""
    request = site.request_of(frame)
    return [
        turn
        for turn in site.conversation.turns.values()
        if request is not None
        and turn.thread_id == obj(request.params).get("threadId")
        and site.is_our_turn(turn)
        and turn.completions
        and turn.completions[0].seq < request.seq
    ]


def stored_turns(frame: Frame) -> list[Any]:
    """Return the ids of the turns in an answer to thread/read."""
    return [obj(turn).get("id") for turn in arr(dig(frame.result, "thread", "turns"))]


def stored_turn(site: FaultSite, frame: Frame) -> tuple[int, dict[str, Any]]:
    """Return the index and the object of the first turn shown that ended before the request."""
    stored = stored_turns(frame)
    place = next(stored.index(turn.id) for turn in ended_before(site, frame) if turn.id in stored)
    return place, obj(arr(dig(frame.result, "thread", "turns"))[place])


def several_turns(_: FaultSite, frame: Frame) -> bool:
    """Return whether an answer shows more than one turn."""
    return len(stored_turns(frame)) > 1


def without_a_turn(queue: FrameQueue, frame: Frame) -> None:
    """Remove the first turn that ended before the request from the answer."""
    place, _ = stored_turn(queue.site, frame)
    remove(*TURNS, place)(queue, frame)


def stored_message(site: FaultSite, frame: Frame) -> int | None:
    """Return the index of the first agentMessage in the turn of `stored_turn`, or None."""
    _, turn = stored_turn(site, frame)
    types = [item.get("type") for item in items_of(turn)]
    return types.index("agentMessage") if "agentMessage" in types else None


def cut_text(queue: FrameQueue, frame: Frame) -> None:
    """Replace the agent's text in the turn of `stored_turn` by an ellipsis."""
    place, _ = stored_turn(queue.site, frame)
    message = stored_message(queue.site, frame)
    if message is not None:
        edit(*TURNS, place, "items", message, "text", to="…")(queue, frame)


def other_status(queue: FrameQueue, frame: Frame) -> None:
    """Change the status of the turn of `stored_turn`."""
    place, turn = stored_turn(queue.site, frame)
    other = "completed" if turn.get("status") == "interrupted" else "interrupted"
    edit(*TURNS, place, "status", to=other)(queue, frame)


def a_turn_unasked(site: FaultSite, frame: Frame) -> list[dict[str, Any]]:
    """Return a turn for an answer that should have none."""
    turn = ended_before(site, frame)[0]
    return [{"id": turn.id, "items": [], "status": "completed", "error": None}]


def status_read(kind: str, when: Fits, description: str) -> Selector:
    """Select an answer to thread/read that shows a status, and for which `when` holds."""
    return (
        answer_to("thread/read")
        .where(lambda _, f: dig(f.result, "thread", "status", "type") == kind, kind)
        .where(when, description)
    )


def turn_runs(site: FaultSite, frame: Frame) -> bool:
    """Return whether a turn of the read thread ran at the request."""
    request = site.request_of(frame)
    return request is not None and any(
        turn.starts[0].seq < request.seq and not turn.completions
        for turn in turns_of_the_thread(site, frame)
    )


def turns_ended(site: FaultSite, frame: Frame) -> bool:
    """Return whether a turn of the read thread had ended before the request."""
    request = site.request_of(frame)
    return request is not None and any(
        turn.completions and turn.completions[0].seq < request.seq
        for turn in turns_of_the_thread(site, frame)
    )


def turns_of_the_thread(site: FaultSite, frame: Frame) -> list[TurnView]:
    """Return this client's turns of the thread that an answer shows."""
    thread_id = dig(frame.result, "thread", "id")
    turns = site.conversation.turns.values()
    return [turn for turn in turns if turn.thread_id == thread_id and site.is_our_turn(turn)]


def thread_id_of_another_shape(queue: FrameQueue) -> Steps:
    """Replace the id of a thread by a UUID everywhere."""
    answer = yield from wait_for(queue, answer_to("thread/start"))
    thread_id = text(dig(answer.result, "thread", "id"))
    yield from rename_id(queue, answer, thread_id, "0199aaaa-0000-7000-8000-000000000001")


def after_active(site: FaultSite, frame: Frame) -> bool:
    """Return whether the thread of a notification was active before."""
    thread = site.conversation.thread(text(obj(frame.params).get("threadId")))
    earlier = [status for status in thread.statuses if status.seq < frame.seq]
    return any(dig(status_frame.params, "status", "type") == "active" for status_frame in earlier)


def all_turns_ended(trace: Trace) -> bool:
    """Return whether there are turns, and all of them ended."""
    turns = FaultSite.of_trace(trace).conversation.turns.values()
    return bool(turns) and all(turn.completions for turn in turns)


def after_another_thread(site: FaultSite, frame: Frame) -> bool:
    """Return whether an earlier thread/start was answered."""
    return first_thread_id(site, frame) != text(dig(frame.result, "thread", "id"))


def first_thread_id(site: FaultSite, _: Frame) -> str:
    """Return the id of the first thread that this client started."""
    answers = (frame for frame in site.frames if answer_to("thread/start").fits(site, frame))
    return text(dig(next(answers).result, "thread", "id"))


def created_at(_: FaultSite, frame: Frame) -> Any:
    """Return the createdAt of the thread that an answer shows."""
    return dig(frame.result, "thread", "createdAt")


def updated_at(_: FaultSite, frame: Frame) -> Any:
    """Return the updatedAt of the thread that an answer shows."""
    return dig(frame.result, "thread", "updatedAt")


def asked_for_a_folder(site: FaultSite, frame: Frame) -> bool:
    """Return whether the answered thread/start named a folder."""
    return bool(text(site.params_of(frame).get("cwd")))


FAULTS: tuple[Fault, ...] = (
    Fault(
        "thread-not-announced",
        rule="thread.started-announced",
        on="plain-turn",
        reason="thread/start emits thread/started.",
        change=first(thread_announced(), drop),
    ),
    Fault(
        "thread-announced-twice",
        rule="thread.started-announced",
        on="plain-turn",
        reason="A thread starts once, so it is announced once.",
        change=first(thread_announced(), duplicate),
    ),
    Fault(
        "thread-announced-by-another-id",
        rule="thread.started-announced",
        on="plain-turn",
        reason="The thread announced is the one that the reply names.",
        change=first(thread_announced(), edit("params", "thread", "id", to="thr_987654321")),
    ),
    Fault(
        "thread-starts-active",
        rule="thread.starts-idle",
        on="plain-turn",
        reason="A newly started thread is returned as idle.",
        change=first(answer_to("thread/start"), edit(*THREAD, "status", to=ACTIVE)),
    ),
    Fault(
        "thread-id-given-twice",
        rule="thread.ids-unique",
        on="two-threads",
        reason="A thread's id is unique.",
        change=first(
            answer_to("thread/start").where(after_another_thread, "after another one"),
            edit_by(*THREAD, "id", value=first_thread_id),
        ),
    ),
    Fault(
        "thread-times-in-milliseconds",
        rule="thread.timestamps-seconds",
        on="plain-turn",
        reason="createdAt is in Unix seconds.",
        change=first(
            answer_to("thread/start").where(
                lambda site, f: (
                    isinstance(created_at(site, f), int | float) and created_at(site, f) >= OUR_DAYS
                ),
                "with a time of our days",
            ),
            edit_by(*THREAD, "createdAt", value=lambda site, f: created_at(site, f) * MILLISECONDS),
        ),
    ),
    Fault(
        "thread-id-of-another-shape",
        rule="thread.id-shape",
        on="plain-turn",
        reason="Thread ids have the shape thr_<n>.",
        change=thread_id_of_another_shape,
    ),
    Fault(
        "status-never-active",
        rule="status.active-while-turn",
        on="plain-turn",
        reason="A thread with an active turn is active, and each change of status is notified.",
        change=every(status("active"), drop),
        condition=requires(turn_completed()),
    ),
    Fault(
        "status-stays-active",
        rule="status.active-while-turn",
        on="plain-turn",
        reason="A thread whose turns have ended is not active any more, and that change is "
        "notified.",
        change=every(status().where(after_active, "after active"), drop),
        condition=Condition("conversation whose turns have all ended", all_turns_ended),
    ),
    Fault(
        "status-change-without-change",
        rule="status.changed-is-change",
        on="plain-turn",
        reason="thread/status/changed is emitted when the status changes.",
        change=first(status("active"), duplicate),
    ),
    Fault(
        "read-of-another-thread",
        rule="read.thread-id",
        on="two-turns-read",
        reason="thread/read returns the thread that was asked for.",
        change=first(read_with_turns(), edit(*THREAD, "id", to="thr_987654321")),
    ),
    Fault(
        "read-without-the-turns",
        rule="read.includes-turns",
        on="two-turns-read",
        reason="includeTurns true includes the turns of the history.",
        change=first(read_of_an_ended_turn(turns=True), edit(*TURNS, to=[])),
    ),
    Fault(
        "read-with-turns-unasked",
        rule="read.omits-turns",
        on="two-turns-read",
        reason="turns are populated only when explicitly requested.",
        change=first(read_of_an_ended_turn(turns=False), edit_by(*TURNS, value=a_turn_unasked)),
    ),
    Fault(
        "read-with-a-turn-missing",
        rule="read.stored-equals-live",
        on="two-turns-read",
        reason="The turns read are those of the history, all that ended before.",
        change=first(
            read_of_an_ended_turn(turns=True).where(several_turns, "and others"), without_a_turn
        ),
    ),
    Fault(
        "read-with-a-text-cut",
        rule="read.stored-equals-live",
        on="two-turns-read",
        reason="The items read are those that were streamed.",
        change=first(
            read_of_an_ended_turn(turns=True).where(
                lambda site, f: stored_message(site, f) is not None, "with an agentMessage"
            ),
            cut_text,
        ),
    ),
    Fault(
        "read-with-another-status",
        rule="read.stored-equals-live",
        on="two-turns-read",
        reason="A turn that ended completed is read as completed.",
        change=first(read_of_an_ended_turn(turns=True), other_status),
    ),
    Fault(
        "thread-changed-before-it-was-created",
        rule="thread.updated-not-before-created",
        on="plain-turn",
        reason="The last change of a thread is not before its creation.",
        change=first(
            answer_to("thread/start").where(
                lambda site, f: isinstance(updated_at(site, f), int | float), "with updatedAt"
            ),
            edit_by(*THREAD, "createdAt", value=lambda site, f: updated_at(site, f) + 1),
        ),
    ),
    Fault(
        "thread-starts-in-another-folder",
        rule="thread.settings-echo",
        on="plain-turn",
        reason="The reply to thread/start names the folder that was asked for.",
        change=first(
            answer_to("thread/start").where(asked_for_a_folder, "with a folder"),
            edit("result", "cwd", to="/elsewhere"),
            edit(*THREAD, "cwd", to="/elsewhere"),
        ),
    ),
    Fault(
        "thread-of-another-provider-than-the-reply",
        rule="thread.settings-echo",
        on="plain-turn",
        reason="The reply to thread/start and the thread within it speak of one provider.",
        change=first(answer_to("thread/start"), edit(*THREAD, "modelProvider", to="another")),
    ),
    Fault(
        "preview-of-something-else",
        rule="thread.preview-first-message",
        on="two-turns-read",
        reason="The preview is usually the first user message of the thread.",
        change=first(
            read_of_an_ended_turn(turns=False), edit(*THREAD, "preview", to="nobody said this")
        ),
    ),
    Fault(
        "read-idle-while-a-turn-runs",
        rule="status.read-matches-turns",
        on="read-while-active",
        reason="idle means that the thread has no active turn.",
        change=first(
            status_read("active", turn_runs, "while a turn runs"),
            edit(*THREAD, "status", to={"type": "idle"}),
        ),
    ),
    Fault(
        "read-active-after-the-last-turn",
        rule="status.read-matches-turns",
        on="read-while-active",
        reason="active means that the thread has an active turn.",
        change=first(
            status_read("idle", turns_ended, "after the end of a turn"),
            edit(*THREAD, "status", to=ACTIVE),
        ),
    ),
    Fault(
        "status-changes-without-a-word",
        rule="status.change-notified",
        on="read-while-active",
        reason="thread/status/changed is emitted whenever the status of a loaded thread changes.",
        change=every(status(), drop),
        condition=requires(status_read("active", turn_runs, "while a turn runs")),
    ),
)
