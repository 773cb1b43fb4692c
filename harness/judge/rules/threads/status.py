"""Rules on thread status as answers show it.

Answers are judged as MUST where the time is certain: a request takes effect between its sending and
its answer.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness.judge.base import (
    Monitor,
    Outcomes,
    Violation,
    Witness,
    on,
    on_answer,
    on_harness_message,
    on_mark,
    on_sent,
    rule,
)
from harness.judge.rules.shared.state_tracking import RUNNING, needs_turn
from harness.judge.rules.shared.view_queries import (
    began_here,
    completed_before,
    opened_here,
    thread_members,
    was_away,
)
from harness.judge.rules.shared.violations import Member, member, wrong
from harness.judge.rules.threads.status_changes import ACTIVE, RELOADING
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall, ModelEnd
from harness.trace.order import came_before
from harness.trace.trace import Mark
from harness.trace.views import ThreadView, TurnView, turns_of

# Requests that may begin work which is no turn of turn/start, or end what was seen.
OTHER_WORK: Final = methods_with("may-work-outside-turns")


# The statuses of a thread that is loaded.
LOADED: Final = ("idle", "active", "systemError")


@dataclass(frozen=True, slots=True)
class _Shown:
    """A status that an answer showed, the request it answers, and where it stands there."""

    status: str
    request: Frame
    answer: Frame
    where: Member


@dataclass(slots=True)
class _Idle:
    """A status `idle` that was shown of a thread whose turn had begun, and what became of the turn.

    `calls` are the calls of the model that were being answered before the request and after the
    answer. `at_work` says that the turn was certainly active in between; `news` is what then came
    of it, `sure` whether that was after the turn had been at work.
    """

    turn: TurnView
    shown: _Shown
    calls: set[int]
    at_work: bool = False
    news: Frame | None = None
    sure: bool = False


class _Answered(Monitor):
    """The statuses that answers show of threads that this client opened and that stay loaded."""

    def shown(self, frame: Frame) -> Iterator[tuple[ThreadView, _Shown]]:
        """Give the threads in an answer with their status; notLoaded says nothing certain."""
        request = self.conversation.request_of(frame)
        if request is None:
            return
        for where in thread_members(frame):
            thread = self.conversation.threads.get(text(obj(where.value).get("id")))
            status = text(dig(where.value, "status", "type"))
            if thread is not None and opened_here(thread) and status in LOADED:
                yield thread, _Shown(status, request, frame, where.part("status", "type"))


@rule(
    "status.read-matches-turns",
    title="An idle or active status that is read fits the turns",
    level=Level.MUST,
)
class ReadMatchesTurns(_Answered):
    """Judges idle and active in thread/read: active means an active turn, idle that there is none.

    Messages about a turn may wait behind an answer, so `idle` is wrong for certain only where a
    turn had been announced before the request was sent, and was at work after the answer: its model
    was called or still answering it, or it waited for our answer to a question, and then it went
    on. Where it merely went on, the finding is SHOULD. `active` is wrong on a thread started within
    the trace where every turn is of this client and had ended before the request was sent, and none
    was being started. Since the status may change just after the turn's end, it is MUST where
    thread/status/changed had told another status before, or a later read shows active again and
    none told of a change, and else SHOULD, unless a change is told after the answer. In one answer
    `idle` and a turn that is `inProgress` contradict each other: SHOULD for a turn that did not
    begin in this trace, since the text does not say what becomes of one that a crash cut off. Left
    open: every other moment, traces of several connections (for active), notLoaded (the text has
    list and read show it), systemError, threads on which other work was asked for (compaction,
    rollback, a review) or is being done (a compaction that the server began).
    """

    def begin(self) -> None:
        self._idle: dict[str, _Idle] = {}
        self._active_reads: dict[str, list[_Shown]] = {}
        self._starting: dict[str, set[Frame]] = {}
        self._calls: set[int] = set()
        self._calls_at: dict[Frame, set[int]] = {}
        self._other_work = False

    @on_sent(*OTHER_WORK)
    def on_other_work_sent(self, frame: Frame) -> Outcomes:
        self._other_work = True
        return None

    @on_sent("turn/start")
    def on_turn_start_sent(self, frame: Frame) -> Outcomes:
        thread_id = text(obj(frame.params).get("threadId"))
        self._starting.setdefault(thread_id, set()).add(frame)
        return None

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is not None:
            thread_id = text(obj(request.params).get("threadId"))
            self._starting.get(thread_id, set()).discard(request)
        return None

    @on_mark(ModelCall)
    def on_model_call(self, mark: Mark[ModelCall]) -> Outcomes:
        running = [t for t in self.conversation.turns.values() if t.started and not t.completed]
        scripted = mark.body.scripted
        if scripted:
            self._calls.add(mark.body.call)
        for idle in self._idle.values():
            idle.at_work = idle.at_work or (scripted and running == [idle.turn])
        return None

    @on_mark(ModelEnd)
    def on_model_end(self, mark: Mark[ModelEnd]) -> Outcomes:
        call = mark.body.call
        self._calls.discard(call)
        for idle in self._idle.values():
            if call in idle.calls and mark.body.completed:
                idle.at_work = True
        return None

    @on_sent("thread/read")
    def on_thread_read_sent(self, frame: Frame) -> Outcomes:
        self._calls_at[frame] = set(self._calls)
        return None

    @on_answer("thread/read")
    def on_thread_read_answer(self, frame: Frame) -> Outcomes:
        for thread, shown in self.shown(frame):
            if needs_turn(shown.status) is None or self._other_work:
                continue
            judged = self._active if needs_turn(shown.status) else self._none_active
            yield from judged(thread, shown) or ()

    @on_answer("thread/read", "thread/resume", "thread/rollback")
    def contradicts_itself(self, frame: Frame) -> Outcomes:
        """In one answer the thread is idle, and a turn of it in progress."""
        thread = obj(dig(frame.result, "thread"))
        thread_id, status = text(thread.get("id")), text(dig(thread, "status", "type"))
        if needs_turn(status) is not False:
            return
        for at, stored in enumerate(turns_of(thread)):
            if stored.get("status") == RUNNING:
                turn = self.conversation.turn_at(thread_id, text(stored.get("id")))
                here = turn is not None and began_here(self.conversation, turn)
                where = member(frame, "thread", "turns", at, "status")
                also = (member(frame, "thread", "status", "type"),)
                expected, clauses = "another status", ("thread-status.idle",)
                subject = f"turn {text(stored.get('id')) if turn is None else turn.key}"
                level = None if here else Level.SHOULD
                frames = (frame,)
                yield wrong(
                    subject, frames, where, expected, level=level, also=also, clauses=clauses
                )

    def _none_active(self, thread: ThreadView, shown: _Shown) -> Outcomes:
        ended = [turn for turn in thread.turns.values() if turn.completed]
        if self._at_rest(thread, shown.request) and ended:
            return [Witness(thread.subject, (ended[-1].completed[0], shown.request, shown.answer))]
        for turn in thread.turns.values():
            begun = bool(turn.started) and self.trace.before(turn.started[0], shown.request) is True
            if begun and not turn.completed and thread.id not in self._idle:
                calls = self._calls_at.get(shown.request, set()) & self._calls
                self._idle[thread.id] = _Idle(turn, shown, calls if self._alone(turn) else set())
        return None

    def _alone(self, turn: TurnView) -> bool:
        """Return whether this turn alone runs, so that what the model is asked is asked for it."""
        others = self.conversation.turns.values()
        return all(one is turn or one.completed or not one.started for one in others)

    @on_harness_message
    def answered(self, frame: Frame) -> Outcomes:
        """An answer of ours to a question shows that the turn had been waiting for it."""
        question = self.conversation.request_of(frame)
        turn = self.conversation.turn_of(question) if question is not None else None
        idle = self._idle.get(turn.thread_id) if turn is not None else None
        if question is None or idle is None or idle.turn is not turn:
            return None
        if self.trace.before(question, idle.shown.request) is True:
            idle.at_work = True
        return None

    @on("item/started", "item/agentMessage/delta")
    def goes_on(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        idle = self._idle.get(turn.thread_id) if turn is not None else None
        if idle is None or idle.turn is not turn:
            return None
        if idle.news is None or (idle.at_work and not idle.sure):
            idle.news, idle.sure = frame, idle.at_work
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        idle = self._idle.get(turn.thread_id) if turn is not None else None
        if turn is None or idle is None or idle.turn is not turn:
            return None
        del self._idle[turn.thread_id]
        return self._was_active(idle)

    def _was_active(self, idle: "_Idle") -> Outcomes:
        turn, shown = idle.turn, idle.shown
        if idle.news is None or self._other_work:
            return None
        frames = (turn.started[0], shown.request, shown.answer, idle.news)
        expected = f"{literal(ACTIVE)}, since {turn.subject} went on after it"
        subject, clauses = f"thread {turn.thread_id}", ("thread-status.idle",)
        level = None if idle.sure else Level.SHOULD
        return [wrong(subject, frames, shown.where, expected, level=level, clauses=clauses)]

    def _active(self, thread: ThreadView, shown: _Shown) -> Outcomes:
        if self._at_rest(thread, shown.request):
            # On another connection a turn may have begun that this one has not heard of yet.
            if any(frame.connection != shown.answer.connection for frame in self.trace.frames):
                return None
            before = [s for s in thread.statuses if self.trace.before(s, shown.request) is True]
            if before and text(dig(before[-1].params, "status", "type")) != ACTIVE:
                return [self._not_active(thread, shown, (before[-1], shown.request, shown.answer))]
            self._active_reads.setdefault(thread.id, []).append(shown)
            return None
        running = [t for t in thread.turns.values() if t.started and not t.completed]
        if not running:
            return None
        return [Witness(thread.subject, (running[0].started[0], shown.request, shown.answer))]

    def _not_active(
        self,
        thread: ThreadView,
        shown: _Shown,
        frames: tuple[Frame, ...],
        level: Level | None = None,
    ) -> Violation:
        expected = f"another than {ACTIVE}, since no turn of {thread.subject} is active"
        clauses = ("thread-status.active",)
        return wrong(thread.subject, frames, shown.where, expected, level=level, clauses=clauses)

    def _at_rest(self, thread: ThreadView, request: Frame) -> bool:
        """Return whether no turn of the thread can have been active when the request was sent or
        later.
        """
        if thread.reply is None or self._starting.get(thread.id):
            return False
        return all(
            turn.reply is not None
            and completed_before(self.trace, turn, request)
            and not any(i.is_open for i in turn.items.values() if i.type == "contextCompaction")
            for turn in thread.turns.values()
        )

    def finish(self) -> Outcomes:
        for idle in self._idle.values():
            yield from self._was_active(idle) or ()
        if self._other_work:
            return
        for thread_id, reads in self._active_reads.items():
            thread = self.conversation.thread(thread_id)
            first, last = reads[0], reads[-1]
            if any(came_before(first.answer, told) for told in thread.statuses):
                continue
            again = self.trace.before(first.answer, last.request) is True
            frames = (first.request, first.answer, *((last.answer,) if again else ()))
            yield self._not_active(thread, first, frames, None if again else Level.SHOULD)


@rule("status.change-notified", title="A change of status is notified", level=Level.MUST)
class ChangeNotified(_Answered):
    """Judges, at the end of a quiescent trace, that a change which answers show was notified.

    Answers to thread/start, thread/read and thread/list show a thread in two statuses, of idle,
    active and systemError; some thread/status/changed of the thread must have come since the first
    of the two was asked for. Its place, and what it says, are open. Left open: statuses on both
    sides of a request that can unload or load the thread, threads that this client has left or that
    were archived or closed, and notLoaded (the text has list and read show it).
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
    def on_reloading_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        return None if request is None else self.reloading(request)

    @on_answer("thread/start", "thread/read", "thread/list")
    def answer(self, frame: Frame) -> Outcomes:
        for thread, shown in self.shown(frame):
            before = self._last.get(thread.id)
            self._last[thread.id] = shown
            changed = before is not None and before.status != shown.status
            if before and changed and not self._left and not was_away(thread, frame):
                self._changes.append((thread, before, shown))
        return None

    def finish(self) -> Outcomes:
        for thread, before, shown in self._changes:
            told = [frame for frame in thread.statuses if came_before(before.request, frame)]
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
