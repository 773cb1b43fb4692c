"""Rules on thread status in answers.

A finding is MUST only if its time is certain: a request takes effect between its sending and its
answer.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness.judge.base import (
    Monitor,
    Outcome,
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
from harness.judge.rules.shared.state_tracking import COMPLETED, RUNNING, needs_turn
from harness.judge.rules.shared.view_queries import (
    began_here,
    has_other_clients,
    opened_here,
    thread_members,
    was_away,
    was_completed_before,
)
from harness.judge.rules.shared.violations import Member, absent, member, wrong
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

# Requests that may begin work outside the turns of turn/start, or end a known turn.
OTHER_WORK: Final = methods_with("may-work-outside-turns")


# The statuses of a loaded thread.
LOADED: Final = ("idle", "active", "systemError")
IDLE: Final = LOADED[0]


@dataclass(frozen=True, slots=True)
class _StatusReport:
    """A status in an answer, with its request and its member."""

    status: str
    request: Frame
    answer: Frame
    field: Member


@dataclass(slots=True)
class _IdleStatus:
    """A status `idle` of a thread with a running turn, and the later progress of the turn.

    `calls` are the model calls that were open from the request to the answer. `at_work` means that
    the turn was certainly active in between; `progress` is its next message, and `is_certain`
    whether that came after the turn had been at work.
    """

    turn: TurnView
    report: _StatusReport
    calls: set[int]
    at_work: bool = False
    progress: Frame | None = None
    is_certain: bool = False


class _Answered(Monitor):
    """Base of rules on the statuses of loaded threads that this client opened."""

    def shown_statuses(self, frame: Frame) -> Iterator[tuple[ThreadView, _StatusReport]]:
        """Yield the opened threads in an answer with their status, except notLoaded (uncertain)."""
        request = self.conversation.request_of(frame)
        if request is None:
            return
        for field in thread_members(frame):
            thread = self.conversation.threads.get(text(obj(field.value).get("id")))
            status = text(dig(field.value, "status", "type"))
            if thread is not None and opened_here(thread) and status in LOADED:
                yield thread, _StatusReport(status, request, frame, field.part("status", "type"))


@rule(
    "status.read-matches-turns",
    title="An idle or active status that is read fits the turns",
    level=Level.MUST,
)
class ReadMatchesTurns(_Answered):
    """Judges shown statuses of threads: active means an active turn, idle that there is none.

    Messages about a turn may wait behind an answer, so `idle` is certainly wrong only if a turn had
    been announced before the request was sent, and was at work after the answer: its model was
    called or still answering, or it waited for an answer of the client, and then it continued. If
    it merely continued, the finding is SHOULD. `active` is wrong on a thread started in the trace
    if every turn belongs to this client and had ended before the request was sent, and none was
    being started. Since the status may change just after the turn's end, it is MUST if
    thread/status/changed had reported another status before, or a later read shows active again
    without such a message; else SHOULD, unless a change is reported after the answer. In one answer
    `idle` and a turn that is `inProgress` contradict each other: SHOULD for a turn that did not
    begin in this trace, since a crash may have cut it off. `active` contradicts turns of which none
    is `inProgress`, in the answer to thread/fork (SHOULD if it has no turns at all) and in a read
    with turns of a fork that was given no turn. Left open: every other moment, traces of several
    connections (for active), notLoaded (by the specification, list and read show it), systemError,
    threads with other work that was requested (compaction, rollback, a review) or that the server
    began (a compaction).
    """

    def begin(self) -> None:
        self._idle: dict[str, _IdleStatus] = {}
        self._active_reads: dict[str, list[_StatusReport]] = {}
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
        running = [t for t in self.conversation.turns.values() if t.starts and not t.completions]
        scripted = mark.body.is_scripted
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
            if call in idle.calls and mark.body.is_complete:
                idle.at_work = True
        return None

    @on_sent("thread/read")
    def on_thread_read_sent(self, frame: Frame) -> Outcomes:
        self._calls_at[frame] = set(self._calls)
        return None

    @on_answer("thread/read")
    def on_thread_read_answer(self, frame: Frame) -> Outcomes:
        for thread, report in self.shown_statuses(frame):
            if needs_turn(report.status) is None or self._other_work:
                continue
            judged = self._judge_active if needs_turn(report.status) else self._judge_idle
            yield from judged(thread, report) or ()

    @on_answer("thread/read", "thread/resume", "thread/rollback")
    def on_history(self, frame: Frame) -> Outcomes:
        """Judge that one answer does not show an idle thread with a turn in progress."""
        thread = obj(dig(frame.result, "thread"))
        thread_id, status = text(thread.get("id")), text(dig(thread, "status", "type"))
        if needs_turn(status) is not False:
            return
        for index, stored in enumerate(turns_of(thread)):
            if stored.get("status") == RUNNING:
                turn = self.conversation.turn_at(thread_id, text(stored.get("id")))
                here = turn is not None and began_here(self.conversation, turn)
                field = member(frame, "thread", "turns", index, "status")
                also = (member(frame, "thread", "status", "type"),)
                expected, clauses = "another status", ("thread-status.idle",)
                subject = f"turn {text(stored.get('id')) if turn is None else turn.key}"
                level = None if here else Level.SHOULD
                frames = (frame,)
                yield wrong(
                    subject, frames, field, expected, level=level, also=also, clauses=clauses
                )

    @on_answer("thread/fork", "thread/read")
    def on_fork_shown(self, frame: Frame) -> Outcomes:
        """Judge that a fork without a turn of its own is active only with a turn in progress."""
        request = self.conversation.request_of(frame)
        thread = self.conversation.threads.get(text(dig(frame.result, "thread", "id")))
        turns, status = (
            dig(frame.result, "thread", "turns"),
            dig(frame.result, "thread", "status", "type"),
        )
        if request is None or thread is None or status != ACTIVE or not isinstance(turns, list):
            return
        if any(turn.get("status") == RUNNING for turn in turns_of(dig(frame.result, "thread"))):
            return
        is_fork = request.method == "thread/fork"
        if not is_fork and not (
            obj(request.params).get("includeTurns") is True and self._was_only_forked(thread, frame)
        ):
            return
        field, also = member(frame, "thread", "status", "type"), (member(frame, "thread", "turns"),)
        expected = f"another than {ACTIVE}, since no turn of it is in progress"
        level, clauses = None if turns or not is_fork else Level.SHOULD, ("thread-status.active",)
        yield wrong(
            thread.subject,
            (request, frame),
            field,
            expected,
            level=level,
            also=also,
            clauses=clauses,
        )

    def _was_only_forked(self, thread: ThreadView, answer: Frame) -> bool:
        """Return whether a thread was forked here, and nobody can have begun work on it."""
        methods = [
            getattr(self.conversation.request_of(opening), "method", "")
            for opening in thread.opening_answers
        ]
        is_quiet = not thread.turns and not self._starting.get(thread.id) and not self._other_work
        return methods == ["thread/fork"] and is_quiet and not has_other_clients(self.trace, answer)

    def _judge_idle(self, thread: ThreadView, report: _StatusReport) -> Outcomes:
        ended = [turn for turn in thread.turns.values() if turn.completions]
        if self._is_at_rest(thread, report.request) and ended:
            return [
                Witness(
                    thread.subject,
                    (ended[-1].completions[0], report.request, report.answer),
                )
            ]
        for turn in thread.turns.values():
            has_begun = (
                bool(turn.starts) and self.trace.before(turn.starts[0], report.request) is True
            )
            if has_begun and not turn.completions and thread.id not in self._idle:
                calls = self._calls_at.get(report.request, set()) & self._calls
                self._idle[thread.id] = _IdleStatus(
                    turn, report, calls if self._runs_alone(turn) else set()
                )
        return None

    def _runs_alone(self, turn: TurnView) -> bool:
        """Return whether only this turn runs, so that model calls belong to it."""
        other_turns = self.conversation.turns.values()
        return all(other is turn or other.completions or not other.starts for other in other_turns)

    @on_harness_message
    def on_client_answer(self, frame: Frame) -> Outcomes:
        """Note that a turn was waiting for an answer from the client."""
        question = self.conversation.request_of(frame)
        turn = self.conversation.turn_of(question) if question is not None else None
        idle = self._idle.get(turn.thread_id) if turn is not None else None
        if question is None or idle is None or idle.turn is not turn:
            return None
        if self.trace.before(question, idle.report.request) is True:
            idle.at_work = True
        return None

    @on("item/started", "item/agentMessage/delta")
    def on_progress(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        idle = self._idle.get(turn.thread_id) if turn is not None else None
        if idle is None or idle.turn is not turn:
            return None
        if idle.progress is None or (idle.at_work and not idle.is_certain):
            idle.progress, idle.is_certain = frame, idle.at_work
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        idle = self._idle.get(turn.thread_id) if turn is not None else None
        if turn is None or idle is None or idle.turn is not turn:
            return None
        del self._idle[turn.thread_id]
        return self._was_active(idle)

    def _was_active(self, idle: "_IdleStatus") -> Outcomes:
        turn, report = idle.turn, idle.report
        if idle.progress is None or self._other_work:
            return None
        frames = (turn.starts[0], report.request, report.answer, idle.progress)
        expected = f"{literal(ACTIVE)}, since {turn.subject} went on after it"
        subject, clauses = f"thread {turn.thread_id}", ("thread-status.idle",)
        level = None if idle.is_certain else Level.SHOULD
        return [wrong(subject, frames, report.field, expected, level=level, clauses=clauses)]

    def _judge_active(self, thread: ThreadView, report: _StatusReport) -> Outcomes:
        if self._is_at_rest(thread, report.request):
            # A turn may have begun on another connection, and not been reported here yet.
            if has_other_clients(self.trace, report.answer):
                return None
            before = [s for s in thread.statuses if self.trace.before(s, report.request) is True]
            if before and text(dig(before[-1].params, "status", "type")) != ACTIVE:
                return [
                    self._active_violation(
                        thread,
                        report,
                        (before[-1], report.request, report.answer),
                    )
                ]
            self._active_reads.setdefault(thread.id, []).append(report)
            return None
        running = [t for t in thread.turns.values() if t.starts and not t.completions]
        if not running:
            return None
        return [Witness(thread.subject, (running[0].starts[0], report.request, report.answer))]

    def _active_violation(
        self,
        thread: ThreadView,
        report: _StatusReport,
        frames: tuple[Frame, ...],
        level: Level | None = None,
    ) -> Violation:
        expected = f"another than {ACTIVE}, since no turn of {thread.subject} is active"
        clauses = ("thread-status.active",)
        return wrong(thread.subject, frames, report.field, expected, level=level, clauses=clauses)

    def _is_at_rest(self, thread: ThreadView, request: Frame) -> bool:
        """Return whether no turn can have been active since the request was sent."""
        if thread.reply is None or self._starting.get(thread.id):
            return False
        return all(
            turn.reply is not None
            and was_completed_before(self.trace, turn, request)
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
            if any(came_before(first.answer, notification) for notification in thread.statuses):
                continue
            again = self.trace.before(first.answer, last.request) is True
            frames = (first.request, first.answer, *((last.answer,) if again else ()))
            yield self._active_violation(thread, first, frames, None if again else Level.SHOULD)


@rule("status.change-notified", title="A change of status is notified", level=Level.MUST)
class ChangeNotified(_Answered):
    """Judges, at the end of a quiescent trace, that a change of a thread's status was notified.

    Answers to thread/start, thread/read and thread/list show a thread in two statuses, of idle,
    active and systemError; some thread/status/changed of the thread must have come since the first
    request. Its position and content are open. A thread that was reported or shown as idle before a
    turn, which was completed without an error, has been active: that must have been reported until
    the next turn/start, or as often as there were turns. Left open: statuses on both sides of a
    request that can unload or load the thread, threads that this client left or that were archived
    or closed, and notLoaded (by the specification, list and read show it).
    """

    def begin(self) -> None:
        self._last: dict[str, _StatusReport] = {}
        self._may_have_left = False
        self._changes: list[tuple[ThreadView, _StatusReport, _StatusReport]] = []
        # The last message that showed or reported a status, for turns that begin after it.
        self._known: dict[str, tuple[str, Frame]] = {}
        self._before_turn: dict[Frame, Frame] = {}

    @on("thread/status/changed")
    def on_thread_status_changed(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        status = text(dig(params, "status", "type"))
        self._known[text(params.get("threadId"))] = (status, frame)
        return None

    @on_sent("turn/start")
    def on_turn_start_sent(self, frame: Frame) -> Outcomes:
        known = self._known.get(text(obj(frame.params).get("threadId")))
        if known is not None and known[0] == IDLE:
            self._before_turn[frame] = known[1]
        return None

    @on_sent(*RELOADING)
    def on_reloading_sent(self, frame: Frame) -> Outcomes:
        thread_id = text(obj(frame.params).get("threadId"))
        self._last.pop(thread_id, None)
        self._known.pop(thread_id, None)
        # The params of thread/unsubscribe are not shown, so it may have left any thread.
        self._may_have_left = self._may_have_left or frame.method == "thread/unsubscribe"
        return None

    @on_answer(*RELOADING)
    def on_reloading_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        return None if request is None else self.on_reloading_sent(request)

    @on_answer("thread/start", "thread/read", "thread/list")
    def on_thread_answer(self, frame: Frame) -> Outcomes:
        for thread, report in self.shown_statuses(frame):
            before = self._last.get(thread.id)
            self._last[thread.id] = report
            self._known[thread.id] = (report.status, frame)
            changed = before is not None and before.status != report.status
            if before and changed and not self._may_have_left and not was_away(thread, frame):
                self._changes.append((thread, before, report))
        return None

    def finish(self) -> Outcomes:
        yield from self._judge_turns()
        for thread, before, report in self._changes:
            notifications = [
                frame for frame in thread.statuses if came_before(before.request, frame)
            ]
            if notifications:
                yield Witness(thread.subject, (before.answer, notifications[0], report.answer))
            else:
                expected = f"thread/status/changed for {thread.subject}, since it was "
                expected += f"{before.status} and then {report.status}"
                frames = (before.answer, report.answer)
                places = (before.field.place, report.field.place)
                yield Violation(
                    thread.subject, frames, expected, "none came between the two", places=places
                )

    def _judge_turns(self) -> Iterator[Outcome]:
        for thread in self.conversation.threads.values():
            turns = [turn for turn in thread.turns.values() if self._was_active_well(turn)]
            reports = [
                frame
                for frame in thread.statuses
                if text(dig(frame.params, "status", "type")) == ACTIVE
            ]
            for place, turn in enumerate(turns):
                begin = turn.request
                idle_frame = self._before_turn.get(begin) if begin is not None else None
                if begin is None or idle_frame is None:
                    continue
                since = [frame for frame in reports if came_before(idle_frame, frame)]
                following = [
                    other.request
                    for other in thread.turns.values()
                    if other.request is not None and came_before(begin, other.request)
                ]
                in_time = [
                    frame
                    for frame in since
                    if all(came_before(frame, request) for request in following)
                ]
                frames = (idle_frame, begin, turn.completions[0])
                if not in_time and len(since) < len(turns) - place:
                    expected = f"thread/status/changed of {thread.subject} to {ACTIVE}"
                    expected += f", since it was idle and then had {turn.subject}"
                    field = member(begin, "threadId")
                    yield absent(thread.subject, frames, expected, "none came", field)

    def _was_active_well(self, turn: TurnView) -> bool:
        """Return whether this client saw a whole turn of its own without an error."""
        return (
            turn.request is not None
            and turn.status == COMPLETED
            and not turn.errors
            and bool(turn.starts)
            and began_here(self.conversation, turn)
        )
