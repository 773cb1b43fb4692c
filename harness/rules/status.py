"""Rules on thread status, as thread/status/changed tells it and answers show it.

Here: that the status follows the turns, and that a change is a change. What notifications say is
SHOULD, since the transitions are not shown and the place of these messages among others is open;
what an answer says is MUST, where its moment is certain: a request takes effect between its sending
and its answer.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from dataclasses import dataclass
from typing import Any, Final

from harness.rules.base import Monitor, Outcomes, Violation, Witness, on, on_answer, on_sent, rule
from harness.rules.subjects import began_here, completed_before, opened_here
from harness.rules.verdict import Level
from harness.trace.frame import Frame
from harness.trace.values import dig, obj, text
from harness.trace.views import ThreadView

# Requests after which a thread may have been unloaded and loaded again without a word to us.
RELOADING: Final = ("thread/unsubscribe", "thread/resume", "thread/archive", "thread/unarchive")
# Requests that may begin work which is no turn of turn/start, or end what was seen.
OTHER_WORK: Final = ("thread/compact/start", "thread/rollback", "review/start")


@rule(
    "status.active-while-turn",
    title="A thread with a turn is said to be active",
    level=Level.SHOULD,
)
class ActiveWhileTurn(Monitor):
    """Judges that a turn's thread is reported active by the turn's end, and not for ever.

    Derived from "active: has an active turn" and "emitted whenever the status changes". A report
    since the thread's last turn ended, or a last report of `active`, is enough; where it stands
    among the turn's messages is open. At the end of a quiescent trace, a thread whose turns have
    all ended must have been reported as something else. Judged only for turns whose whole life
    came to this client.
    """

    def begin(self) -> None:
        self._active: dict[str, Frame] = {}
        self._last: dict[str, str] = {}

    @on("thread/status/changed")
    def changed(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        thread_id, status = text(params.get("threadId")), text(dig(params, "status", "type"))
        self._last[thread_id] = status
        if status == "active":
            self._active[thread_id] = frame
        return None

    @on("turn/completed")
    def completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or len(turn.completed) > 1 or not began_here(self.conversation, turn):
            return None
        seen = self._active.get(turn.thread_id)
        if self._last.get(turn.thread_id) != "active":
            self._active.pop(turn.thread_id, None)
        subject = f"thread {turn.thread_id}"
        if seen is not None:
            return [Witness(subject, (seen, frame))]
        expected = f"thread/status/changed to active during turn {turn.id}"
        return [Violation(subject, (frame,), expected, "none came")]

    def finish(self) -> Outcomes:
        for thread_id, status in self._last.items():
            turns = self.conversation.thread(thread_id).turns.values()
            mine = [turn for turn in turns if began_here(self.conversation, turn)]
            if status != "active" or not mine or not all(turn.completed for turn in turns):
                continue
            frames = (mine[-1].completed[-1], self._active[thread_id])
            expected = "thread/status/changed to another status after the last turn ended"
            yield Violation(f"thread {thread_id}", frames, expected, "still active")


@rule("status.changed-is-change", title="A status change changes the status", level=Level.SHOULD)
class ChangedIsChange(Monitor):
    """Judges that two successive thread/status/changed of a thread differ, flags included.

    Left open: the first one (what was before is not known for certain), and those on both sides of
    a request that can unload or load the thread.
    """

    def begin(self) -> None:
        self._last: dict[str, tuple[Any, Frame]] = {}

    @on_sent(*RELOADING)
    def reloading(self, frame: Frame) -> Outcomes:
        self._last.pop(text(obj(frame.params).get("threadId")), None)
        return None

    @on_answer(*RELOADING)
    def reloaded(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        return None if request is None else self.reloading(request)

    @on("thread/closed")
    def closed(self, frame: Frame) -> Outcomes:
        # The payload is not shown, so it may be any thread.
        self._last.clear()
        return None

    @on("thread/status/changed")
    def changed(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        thread_id, status = text(params.get("threadId")), params.get("status")
        if not isinstance(status, dict):
            return None
        before = self._last.get(thread_id)
        self._last[thread_id] = (status, frame)
        if before is None:
            return None
        frames, subject = (before[1], frame), f"thread {thread_id}"
        if before[0] != status:
            return [Witness(subject, frames)]
        actual = f"{text(dig(params, 'status', 'type'))} again"
        return [Violation(subject, frames, "another status than before", actual)]


@dataclass(frozen=True, slots=True)
class _Shown:
    """A status that an answer showed, idle or active, and the request it answers."""

    status: str
    request: Frame
    answer: Frame


class _Answered(Monitor):
    """The statuses that answers show of threads that this client opened and that stay loaded."""

    def shown(self, frame: Frame) -> tuple[ThreadView, _Shown] | None:
        """What a thread/start or thread/read answer says, None where it says nothing certain."""
        request = self.conversation.request_of(frame)
        thread = self.conversation.threads.get(text(dig(frame.result, "thread", "id")))
        status = text(dig(frame.result, "thread", "status", "type"))
        if request is None or thread is None or not opened_here(thread):
            return None
        return (thread, _Shown(status, request, frame)) if status in ("idle", "active") else None


@rule(
    "status.read-matches-turns",
    title="An idle or active status that is read fits the turns",
    level=Level.MUST,
)
class ReadMatchesTurns(_Answered):
    """Judges idle and active in thread/read: active means an active turn, idle that there is none.

    `idle` is wrong where a turn had been announced before the request was sent and began an item or
    streamed a delta after the answer. `active` is wrong on a thread started within the trace where
    every turn is of this client and had ended before the request was sent, and none was being
    started. Left open: every other moment, traces of several connections (for active), notLoaded
    (the text has list and read show it), systemError, threads on which other work was asked for
    (compaction, rollback, a review).
    """

    def begin(self) -> None:
        self._idle: dict[str, _Shown] = {}
        self._starting: dict[str, set[int]] = {}
        self._other_work = False

    @on_sent(*OTHER_WORK)
    def other_work(self, frame: Frame) -> Outcomes:
        self._other_work = True
        return None

    @on_sent("turn/start")
    def starting(self, frame: Frame) -> Outcomes:
        thread_id = text(obj(frame.params).get("threadId"))
        self._starting.setdefault(thread_id, set()).add(frame.seq)
        return None

    @on_answer("turn/start")
    def started(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is not None:
            thread_id = text(obj(request.params).get("threadId"))
            self._starting.get(thread_id, set()).discard(request.seq)
        return None

    @on_answer("thread/read")
    def read(self, frame: Frame) -> Outcomes:
        found = self.shown(frame)
        if found is None or self._other_work:
            return None
        thread, shown = found
        if shown.status == "idle":
            self._idle[thread.id] = shown
            return self._none_active(thread, shown)
        return self._active(thread, shown)

    def _none_active(self, thread: ThreadView, shown: _Shown) -> Outcomes:
        ended = [turn for turn in thread.turns.values() if turn.completed]
        if not self._at_rest(thread, shown.request) or not ended:
            return None
        return [Witness(thread.subject, (ended[-1].completed[0], shown.request, shown.answer))]

    def _active(self, thread: ThreadView, shown: _Shown) -> Outcomes:
        if self._at_rest(thread, shown.request):
            # On another connection a turn may have begun that this one has not heard of yet.
            if any(frame.connection != shown.answer.connection for frame in self.trace.frames):
                return None
            frames = (shown.request, shown.answer)
            expected = "no status active, since no turn is"
            return [Violation(thread.subject, frames, expected, "status active")]
        running = [t for t in thread.turns.values() if t.started and not t.completed]
        if not running:
            return None
        return [Witness(thread.subject, (running[0].started[0], shown.request, shown.answer))]

    def _at_rest(self, thread: ThreadView, request: Frame) -> bool:
        """Whether no turn of the thread can have been active when the request was sent or later."""
        if thread.reply is None or self._starting.get(thread.id):
            return False
        return all(
            turn.reply is not None and completed_before(self.trace, turn, request)
            for turn in thread.turns.values()
        )

    @on("item/started", "item/agentMessage/delta")
    def goes_on(self, frame: Frame) -> Outcomes:
        if not self._idle:
            return None
        turn = self.conversation.turn_of(frame)
        shown = self._idle.get(turn.thread_id) if turn is not None else None
        if turn is None or shown is None or self._other_work or not turn.started:
            return None
        began = turn.started[0]
        if turn.completed or self.trace.before(began, shown.request) is not True:
            return None
        del self._idle[turn.thread_id]
        frames = (began, shown.request, shown.answer, frame)
        expected = f"status active, since turn {turn.id} is"
        return [Violation(f"thread {turn.thread_id}", frames, expected, "status idle")]


@rule("status.change-notified", title="A change of status is notified", level=Level.MUST)
class ChangeNotified(_Answered):
    """Judges, at the end of a quiescent trace, that a change which answers show was notified.

    Answers to thread/start and thread/read show a thread idle, then active, or the reverse; some
    thread/status/changed of the thread must have come since the first of the two was asked for.
    Its place, and what it says, are open. Left open: statuses on both sides of a request that can
    unload or load the thread, threads that this client has left, every status but idle and active.
    """

    def begin(self) -> None:
        self._last: dict[str, _Shown] = {}
        self._left = False
        self._changes: list[tuple[ThreadView, _Shown, _Shown]] = []

    @on_sent(*RELOADING)
    def reloading(self, frame: Frame) -> Outcomes:
        self._last.pop(text(obj(frame.params).get("threadId")), None)
        # The params of thread/unsubscribe are not shown, so it may have left any thread.
        self._left = self._left or frame.method == "thread/unsubscribe"
        return None

    @on_answer(*RELOADING)
    def reloaded(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        return None if request is None else self.reloading(request)

    @on_answer("thread/start", "thread/read")
    def answer(self, frame: Frame) -> Outcomes:
        found = self.shown(frame)
        if found is None or self._left:
            return None
        thread, shown = found
        before = self._last.get(thread.id)
        self._last[thread.id] = shown
        if before is not None and before.status != shown.status:
            self._changes.append((thread, before, shown))
        return None

    def finish(self) -> Outcomes:
        for thread, before, shown in self._changes:
            told = [frame for frame in thread.statuses if frame.seq > before.request.seq]
            if told:
                yield Witness(thread.subject, (before.answer, told[0], shown.answer))
            else:
                expected = f"thread/status/changed between {before.status} and {shown.status}"
                frames = (before.answer, shown.answer)
                yield Violation(thread.subject, frames, expected, "none came")
