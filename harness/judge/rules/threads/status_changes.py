"""Rules on the content of thread/status/changed.

All of it is SHOULD or less, since the specification shows neither the transitions nor the position
of these messages among others.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Any, Final

from harness.judge.base import (
    Monitor,
    Outcomes,
    Violation,
    Witness,
    on,
    on_answer,
    on_kind,
    on_mark,
    on_sent,
    rule,
)
from harness.judge.rules.shared.state_tracking import FAILED, RUNNING, needs_turn, status_after
from harness.judge.rules.shared.view_queries import began_here, item_in, thread_members, threads_in
from harness.judge.rules.shared.violations import Member, member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.spec.machines import THREAD_STATUS
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import ClientLeft, Closed, ModelEnd
from harness.trace.trace import Mark

# The status of an idle thread after a turn began.
ACTIVE: Final = status_after(RUNNING, "idle")

SYSTEM_ERROR: Final = "systemError"

# Requests after which a thread may have been silently unloaded and loaded again.
RELOADING: Final = methods_with("may-reload")


@rule(
    "status.active-while-turn",
    title="A thread with a turn is reported active",
    level=Level.SHOULD,
)
class ActiveWhileTurn(Monitor):
    """Judges that a turn's thread is reported active by the turn's end, and not forever.

    Derived from "active: has an active turn" and "emitted whenever the status changes". A report
    since the thread's last turn ended, or a last report of `active`, is enough; its position among
    the turn's messages is open. At the end of a quiescent trace, a thread whose turns have all
    ended must have been reported as something else. Judged only for turns that this client saw
    completely.
    """

    def begin(self) -> None:
        self._active: dict[str, Frame] = {}
        self._last: dict[str, str] = {}

    @on("thread/status/changed")
    def on_thread_status_changed(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        thread_id, status = text(params.get("threadId")), text(dig(params, "status", "type"))
        self._last[thread_id] = status
        if needs_turn(status):
            self._active[thread_id] = frame
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or len(turn.completions) > 1 or not began_here(self.conversation, turn):
            return None
        active_report = self._active.get(turn.thread_id)
        if not needs_turn(self._last.get(turn.thread_id, "")):
            self._active.pop(turn.thread_id, None)
        subject = f"thread {turn.thread_id}"
        if active_report is not None:
            return [Witness(subject, (active_report, frame))]
        expected = f"thread/status/changed of {subject} to {ACTIVE} during turn {turn.id}"
        return [Violation(subject, (frame,), expected, "none came")]

    def finish(self) -> Outcomes:
        for thread_id, status in self._last.items():
            turns = self.conversation.thread(thread_id).turns.values()
            own_turns = [turn for turn in turns if began_here(self.conversation, turn)]
            if (
                not needs_turn(status)
                or not own_turns
                or not all(turn.completions for turn in turns)
            ):
                continue
            frames = (own_turns[-1].completions[-1], self._active[thread_id])
            field = member(self._active[thread_id], "status", "type")
            expected = "thread/status/changed to another status after the last turn ended"
            yield Violation(
                f"thread {thread_id}",
                frames,
                expected,
                f"none came; the last one has {field}",
                places=(field.place,),
            )


class _Successive(Monitor):
    """Base of rules on successive statuses; `last` drops those that may have changed silently."""

    def begin(self) -> None:
        self.last: dict[str, tuple[Any, Frame]] = {}

    @on_sent(*RELOADING)
    def on_reloading_sent(self, frame: Frame) -> Outcomes:
        self.last.pop(text(obj(frame.params).get("threadId")), None)
        return None

    @on_answer(*RELOADING)
    def on_reloading_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        return None if request is None else self.on_reloading_sent(request)


@rule("status.changed-is-change", title="A status change changes the status", level=Level.SHOULD)
class ChangedIsChange(_Successive):
    """Judges that two successive thread/status/changed of a thread differ, flags included.

    Left open: the first one (the status before it is uncertain), and those on both sides of a
    request that can unload or load the thread.
    """

    @on("thread/closed")
    def on_thread_closed(self, frame: Frame) -> Outcomes:
        # The payload is not shown, so it may be any thread.
        self.last.clear()
        return None

    @on("thread/status/changed")
    def on_thread_status_changed(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        thread_id, status = text(params.get("threadId")), params.get("status")
        if not isinstance(status, dict):
            return None
        before = self.last.get(thread_id)
        self.last[thread_id] = (status, frame)
        if before is None:
            return None
        frames, subject = (before[1], frame), f"thread {thread_id}"
        if before[0] != status:
            return [Witness(subject, frames)]
        clauses = ("thread-status.changed-is-change",)
        field, expected = member(frame, "status"), "another than in the change before"
        also = (member(before[1], "status"),)
        return [wrong(subject, frames, field, expected, also=also, clauses=clauses)]


@rule(
    "status.system-error-met",
    title="A thread in systemError had an error",
    level=Level.INFO,
)
class SystemErrorMet(Monitor):
    """Judges, at the end of a quiescent trace, that a thread in systemError met an error.

    A finding: a thread that was started here is reported as systemError, by an answer or a
    notification, though nothing in the whole trace went wrong: no failed turn, no error, no
    rejected request, no failed model call or item. INFO, though the state is specified: the error
    may be invisible, and then the server is right. A witness needs a failed turn or an error of
    that thread. Left open: traces of several connections, or in which a process ended.
    """

    def begin(self) -> None:
        self._error_reports: dict[str, Frame] = {}
        self._had_trouble = False

    @on("thread/status/changed")
    def on_thread_status_changed(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        return self._note(text(params.get("threadId")), params.get("status"), frame)

    @on_answer("thread/start", "thread/read", "thread/list", "thread/resume")
    def on_thread_answer(self, frame: Frame) -> Outcomes:
        for thread in threads_in(frame):
            self._note(text(thread.get("id")), thread.get("status"), frame)
        return None

    def _note(self, thread_id: str, status: Any, frame: Frame) -> None:
        if text(dig(status, "type")) == SYSTEM_ERROR:
            self._error_reports.setdefault(thread_id, frame)

    @on_kind(Kind.ERROR)
    def on_error(self, frame: Frame) -> Outcomes:
        self._had_trouble = True
        return None

    @on_mark(ModelEnd, Closed, ClientLeft)
    def on_model_end_or_leaving(self, mark: Mark[ModelEnd | Closed | ClientLeft]) -> Outcomes:
        well = isinstance(mark.body, ModelEnd) and mark.body.is_complete
        self._had_trouble = self._had_trouble or not well
        return None

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        if item_in(frame).get("status") not in (None, "completed"):
            self._had_trouble = True
        return None

    def finish(self) -> Outcomes:
        turns = self.conversation.turns.values()
        failed = [turn for turn in turns if turn.errors or turn.status == FAILED]
        for thread_id, frame in self._error_reports.items():
            thread = self.conversation.threads.get(thread_id)
            if thread is None or thread.reply is None or self._has_several_clients():
                continue
            met = [turn for turn in failed if turn.thread_id == thread_id]
            if met:
                evidence = (met[0].errors or met[0].completions)[0]
                yield Witness(thread.subject, (evidence, frame))
            elif not failed and not self._had_trouble:
                expected = f"another than {SYSTEM_ERROR}, since nothing went wrong"
                yield wrong(thread.subject, (frame,), _status_of(frame, thread_id), expected)

    def _has_several_clients(self) -> bool:
        return len({frame.connection for frame in self.trace.frames}) > 1


def _status_of(frame: Frame, thread_id: str) -> Member:
    """Return the member that has the status of a thread."""
    for field in thread_members(frame):
        if obj(field.value).get("id") == thread_id:
            return field.part("status", "type")
    return member(frame, "status", "type")


@rule(
    "status.known-move", title="A status changes as in the table of transitions", level=Level.INFO
)
class KnownMove(_Successive):
    """Records a thread/status/changed with a transition that is not in the book's table.

    The specification does not show the transitions; the table is derived from the meaning of the
    states: INFO. A change of flags alone is not a transition. Left open: the first status of a
    thread that was not started here, those on both sides of a request that can unload or load it,
    words that are not a status (shapes).
    """

    once = True

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> Outcomes:
        self.last[text(dig(frame.result, "thread", "id"))] = (
            text(dig(frame.result, "thread", "status", "type")),
            frame,
        )
        return None

    @on("thread/status/changed")
    def on_thread_status_changed(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        thread_id, status = text(params.get("threadId")), text(dig(params, "status", "type"))
        before = self.last.pop(thread_id, None)
        if status not in THREAD_STATUS.states:
            return None
        self.last[thread_id] = (status, frame)
        if before is None or before[0] == status or before[0] not in THREAD_STATUS.states:
            return None
        frames, subject = (before[1], frame), f"move from {before[0]} to {status}"
        if status in THREAD_STATUS.next_states(before[0]):
            return [Witness(f"thread {thread_id}", frames)]
        next_states = ", ".join(THREAD_STATUS.next_states(before[0])) or "none"
        field, expected = (
            member(frame, "status", "type"),
            f"one of {next_states}, since {before[0]} was before",
        )
        return [wrong(subject, frames, field, expected)]
