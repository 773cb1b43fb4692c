"""Faults of threads, their status, and thread/read."""

from typing import Any

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.trace.frame import Frame
from harness.trace.trace import Trace
from harness.trace.values import arr, dig, obj, text
from harness.trace.views import items_of

MILLISECONDS = 1000
ACTIVE: dict[str, Any] = {"type": "active", "activeFlags": []}


def _read(scene: Scene, *, turns: bool) -> Frame:
    """A thread/read of the thread of an ended turn, with or without includeTurns.

    The turn is `scene.turn()`, and where turns are asked for it is among those stored. Reads after
    a rollback are left out: what must be there then is not known.
    """
    ended = scene.turn()
    rollbacks = [f.seq for f in scene.trace.frames if f.method == "thread/rollback"]

    def fits(answer: Frame) -> bool:
        request = scene.request_of(answer)
        asked = obj(request.params).get("includeTurns") is True
        stored = [obj(turn).get("id") for turn in arr(dig(answer.result, "thread", "turns"))]
        return (
            request.seq > ended.completed[0].seq
            and obj(request.params).get("threadId") == ended.thread_id
            and asked is turns
            and (ended.id in stored if turns else not stored)
            and not any(seq < answer.seq for seq in rollbacks)
        )

    return scene.answers("thread/read", fits)[-1]


def _stored_turn(scene: Scene, answer: Frame) -> tuple[int, dict[str, Any]]:
    """The stored form of the ended turn that `_read` speaks of, and its index."""
    wanted = scene.turn().id
    for place, turn in enumerate(arr(dig(answer.result, "thread", "turns"))):
        if obj(turn).get("id") == wanted:
            return place, obj(turn)
    raise NotApplied(f"turn {wanted} is not stored")


@fault(
    "thread-not-announced",
    rule="thread.started-announced",
    on="plain-turn",
    reason="thread/start emits thread/started.",
)
def unannounced(scene: Scene) -> Trace:
    """No thread/started."""
    return op.drop(scene.trace, scene.announced_thread())


@fault(
    "thread-announced-twice",
    rule="thread.started-announced",
    on="plain-turn",
    reason="A thread starts once, so it is announced once.",
)
def announced_twice(scene: Scene) -> Trace:
    """thread/started again."""
    return op.duplicate(scene.trace, scene.announced_thread())


@fault(
    "thread-announced-by-another-id",
    rule="thread.started-announced",
    on="plain-turn",
    reason="The thread announced is the one that the reply names.",
)
def announced_other(scene: Scene) -> Trace:
    """thread/started with an id of its own."""
    path = ("params", "thread", "id")
    return op.edit(scene.trace, scene.announced_thread(), path, "thr_987654321")


@fault(
    "thread-starts-active",
    rule="thread.starts-idle",
    on="plain-turn",
    reason="A newly started thread is returned as idle.",
)
def starts_active(scene: Scene) -> Trace:
    """A reply to thread/start with status active."""
    answer = scene.answers("thread/start")[0]
    return op.edit(scene.trace, answer, ("result", "thread", "status"), ACTIVE)


@fault(
    "thread-id-given-twice",
    rule="thread.ids-unique",
    on="two-threads",
    reason="A thread's id is unique.",
)
def same_thread_id(scene: Scene) -> Trace:
    """The second thread gets the first one's id in its reply."""
    answers = scene.answers("thread/start")
    if len(answers) < 2:
        raise NotApplied("one thread only")
    first = text(dig(answers[0].result, "thread", "id"))
    return op.edit(scene.trace, answers[1], ("result", "thread", "id"), first)


@fault(
    "thread-times-in-milliseconds",
    rule="thread.timestamps-seconds",
    on="plain-turn",
    reason="createdAt is in Unix seconds.",
)
def milliseconds(scene: Scene) -> Trace:
    """A timestamp a thousand times too large."""
    answer = scene.answers("thread/start")[0]
    created = dig(answer.result, "thread", "createdAt")
    if not isinstance(created, int | float) or created < 1_000_000_000:
        raise NotApplied("no timestamp of our days")
    path = ("result", "thread", "createdAt")
    return op.edit(scene.trace, answer, path, created * MILLISECONDS)


@fault(
    "thread-id-of-another-shape",
    rule="thread.id-shape",
    on="plain-turn",
    reason="Thread ids have the shape thr_<n>.",
)
def thread_shape(scene: Scene) -> Trace:
    """A UUID everywhere in place of the id."""
    thread_id = text(dig(scene.answers("thread/start")[0].result, "thread", "id"))
    uuid = "0199aaaa-0000-7000-8000-000000000001"
    return op.rename(scene.trace, scene.trace.frames, thread_id, uuid)


@fault(
    "status-never-active",
    rule="status.active-while-turn",
    on="plain-turn",
    reason="A thread with an active turn is active, and each change of status is notified.",
)
def never_active(scene: Scene) -> Trace:
    """No report of an active thread."""
    scene.turn()
    return op.drop(scene.trace, *scene.statuses("active"))


@fault(
    "status-stays-active",
    rule="status.active-while-turn",
    on="plain-turn",
    reason="A thread whose turns have ended is not active any more, and that change is notified.",
)
def stays_active(scene: Scene) -> Trace:
    """The last word on the thread's status is active."""
    last = scene.statuses("active")[-1]
    later = [frame for frame in scene.statuses() if frame.seq > last.seq]
    if not later:
        raise NotApplied("no status after active")
    turns = scene.conversation.thread(text(obj(last.params).get("threadId"))).turns.values()
    if not turns or not all(turn.completed for turn in turns):
        raise NotApplied("a turn that goes on")
    return op.drop(scene.trace, *later)


@fault(
    "status-change-without-change",
    rule="status.changed-is-change",
    on="plain-turn",
    reason="thread/status/changed is emitted when the status changes.",
)
def no_change(scene: Scene) -> Trace:
    """The same status again."""
    return op.duplicate(scene.trace, scene.statuses("active")[0])


@fault(
    "read-of-another-thread",
    rule="read.thread-id",
    on="two-turns-read",
    reason="thread/read returns the thread that was asked for.",
)
def other_thread(scene: Scene) -> Trace:
    """A thread with another id."""
    answer = scene.answers("thread/read")[-1]
    return op.edit(scene.trace, answer, ("result", "thread", "id"), "thr_987654321")


@fault(
    "read-without-the-turns",
    rule="read.includes-turns",
    on="two-turns-read",
    reason="includeTurns true includes the turns of the history.",
)
def turns_left_out(scene: Scene) -> Trace:
    """No turns although they were asked for."""
    path = ("result", "thread", "turns")
    return op.edit(scene.trace, _read(scene, turns=True), path, [])


@fault(
    "read-with-turns-unasked",
    rule="read.omits-turns",
    on="two-turns-read",
    reason="turns are populated only when explicitly requested.",
)
def turns_unasked(scene: Scene) -> Trace:
    """A turn in an answer that should have none."""
    turn: dict[str, Any] = {
        "id": scene.turn().id,
        "items": [],
        "status": "completed",
        "error": None,
    }
    path = ("result", "thread", "turns")
    return op.edit(scene.trace, _read(scene, turns=False), path, [turn])


@fault(
    "read-with-a-turn-missing",
    rule="read.stored-equals-live",
    on="two-turns-read",
    reason="The turns read are those of the history, all that ended before.",
)
def turn_missing(scene: Scene) -> Trace:
    """One of several turns is gone from the history."""
    answer = _read(scene, turns=True)
    if len(arr(dig(answer.result, "thread", "turns"))) < 2:
        raise NotApplied("one turn only")
    place, _ = _stored_turn(scene, answer)
    return op.remove(scene.trace, answer, ("result", "thread", "turns", place))


@fault(
    "read-with-a-text-cut",
    rule="read.stored-equals-live",
    on="two-turns-read",
    reason="The items read are those that were streamed.",
)
def text_cut(scene: Scene) -> Trace:
    """A stored message that lost its end."""
    answer = _read(scene, turns=True)
    place, turn = _stored_turn(scene, answer)
    for index, item in enumerate(items_of(turn)):
        if item.get("type") == "agentMessage":
            path = ("result", "thread", "turns", place, "items", index, "text")
            return op.edit(scene.trace, answer, path, "…")
    raise NotApplied("no stored agentMessage")


@fault(
    "read-with-another-status",
    rule="read.stored-equals-live",
    on="two-turns-read",
    reason="A turn that ended completed is read as completed.",
)
def other_status(scene: Scene) -> Trace:
    """A stored turn with another end than the live one."""
    answer = _read(scene, turns=True)
    place, turn = _stored_turn(scene, answer)
    other = "completed" if turn.get("status") == "interrupted" else "interrupted"
    return op.edit(scene.trace, answer, ("result", "thread", "turns", place, "status"), other)


@fault(
    "thread-changed-before-it-was-created",
    rule="thread.updated-not-before-created",
    on="plain-turn",
    reason="The last change of a thread is not before its creation.",
)
def changed_too_early(scene: Scene) -> Trace:
    """A creation after the last change."""
    answer = scene.answers("thread/start")[0]
    updated = dig(answer.result, "thread", "updatedAt")
    if not isinstance(updated, int | float):
        raise NotApplied("no updatedAt")
    return op.edit(scene.trace, answer, ("result", "thread", "createdAt"), updated + 1)


@fault(
    "thread-starts-in-another-folder",
    rule="thread.settings-echo",
    on="plain-turn",
    reason="The reply to thread/start names the folder that was asked for.",
)
def other_folder(scene: Scene) -> Trace:
    """Another cwd than asked for, in the reply and in the thread."""
    answer = scene.answers("thread/start", lambda a: _asked_for(scene, a, "cwd"))[0]
    moved = op.edit(scene.trace, answer, ("result", "cwd"), "/elsewhere")
    return op.edit(moved, moved.frames[answer.seq], ("result", "thread", "cwd"), "/elsewhere")


@fault(
    "thread-of-another-provider-than-the-reply",
    rule="thread.settings-echo",
    on="plain-turn",
    reason="The reply to thread/start and the thread within it speak of one provider.",
)
def other_provider(scene: Scene) -> Trace:
    """The thread names a provider of its own."""
    answer = scene.answers("thread/start")[0]
    return op.edit(scene.trace, answer, ("result", "thread", "modelProvider"), "another")


def _asked_for(scene: Scene, answer: Frame, key: str) -> bool:
    return bool(text(obj(scene.request_of(answer).params).get(key)))


@fault(
    "preview-of-something-else",
    rule="thread.preview-first-message",
    on="two-turns-read",
    reason="The preview is usually the first user message of the thread.",
)
def other_preview(scene: Scene) -> Trace:
    """A preview that nobody said."""
    answer = _read(scene, turns=False)
    return op.edit(scene.trace, answer, ("result", "thread", "preview"), "nobody said this")


def _status_read(scene: Scene, kind: str, *, ended: bool) -> Frame:
    """A thread/read that shows this status while the turn streams, or after its end."""
    turn = scene.turn(where=lambda t: any(i.last_delta for i in t.items.values()))
    last = max(i.last_delta.seq for i in turn.items.values() if i.last_delta)
    began, end = turn.started[0].seq, turn.completed[0].seq

    def fits(answer: Frame) -> bool:
        asked = scene.request_of(answer).seq
        during = asked > end if ended else began < asked and answer.seq < last
        same = dig(answer.result, "thread", "id") == turn.thread_id
        return during and same and dig(answer.result, "thread", "status", "type") == kind

    return scene.answers("thread/read", fits)[0]


@fault(
    "read-idle-while-a-turn-runs",
    rule="status.read-matches-turns",
    on="read-while-active",
    reason="idle means that the thread has no active turn.",
)
def idle_too_early(scene: Scene) -> Trace:
    """Idle in the middle of a turn."""
    answer = _status_read(scene, "active", ended=False)
    return op.edit(scene.trace, answer, ("result", "thread", "status"), {"type": "idle"})


@fault(
    "read-active-after-the-last-turn",
    rule="status.read-matches-turns",
    on="read-while-active",
    reason="active means that the thread has an active turn.",
)
def active_too_long(scene: Scene) -> Trace:
    """Active after all turns have ended."""
    answer = _status_read(scene, "idle", ended=True)
    return op.edit(scene.trace, answer, ("result", "thread", "status"), ACTIVE)


@fault(
    "status-changes-without-a-word",
    rule="status.change-notified",
    on="read-while-active",
    reason="thread/status/changed is emitted whenever the status of a loaded thread changes.",
)
def silent_change(scene: Scene) -> Trace:
    """No report of any status, though answers show that it changed."""
    _status_read(scene, "active", ended=False)
    return op.drop(scene.trace, *scene.statuses())
