"""Rules on thread status as answers show it.

Here: that it is that of the thread's turns (as the machines of the book couple the two), and that a
change of it is notified. What an answer says is MUST, where its moment is certain: a request takes
effect between its sending and its answer. Not here: what the notifications say (status_changes).
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from dataclasses import dataclass
from typing import Final

from harness.rules.base import Monitor, Outcomes, Violation, Witness, on, on_answer, on_sent, rule
from harness.rules.status_changes import ACTIVE, RELOADING
from harness.rules.subjects import completed_before, opened_here
from harness.rules.telling import Member, member, wrong
from harness.rules.verdict import Level
from harness.rules.walks import needs_turn
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.values import dig, obj, text
from harness.trace.views import ThreadView

# Requests that may begin work which is no turn of turn/start, or end what was seen.
OTHER_WORK: Final = ("thread/compact/start", "thread/rollback", "review/start")


@dataclass(frozen=True, slots=True)
class _Shown:
    """A status that an answer showed, one that speaks of turns, and the request it answers."""

    status: str
    request: Frame
    answer: Frame

    @property
    def where(self) -> Member:
        """Where the answer shows it."""
        return member(self.answer, "thread", "status", "type")


class _Answered(Monitor):
    """The statuses that answers show of threads that this client opened and that stay loaded."""

    def shown(self, frame: Frame) -> tuple[ThreadView, _Shown] | None:
        """What a thread/start or thread/read answer says, None where it says nothing certain."""
        request = self.conversation.request_of(frame)
        thread = self.conversation.threads.get(text(dig(frame.result, "thread", "id")))
        status = text(dig(frame.result, "thread", "status", "type"))
        if request is None or thread is None or not opened_here(thread):
            return None
        speaks = needs_turn(status) is not None
        return (thread, _Shown(status, request, frame)) if speaks else None


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
        if needs_turn(shown.status):
            return self._active(thread, shown)
        self._idle[thread.id] = shown
        return self._none_active(thread, shown)

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
            expected = f"another than {ACTIVE}, since no turn of {thread.subject} is active"
            clauses = ("thread-status.active",)
            return [wrong(thread.subject, frames, shown.where, expected, clauses=clauses)]
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
        expected = f"{literal(ACTIVE)}, since {turn.subject} went on after it"
        subject, clauses = f"thread {turn.thread_id}", ("thread-status.idle",)
        return [wrong(subject, frames, shown.where, expected, clauses=clauses)]


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
                expected = f"thread/status/changed for {thread.subject}, since it was "
                expected += f"{before.status} and then {shown.status}"
                frames = (before.answer, shown.answer)
                places = (before.where.place, shown.where.place)
                yield Violation(
                    thread.subject, frames, expected, "none came between the two", places=places
                )
