"""Rules on thread status, as thread/status/changed tells it.

Here: that the status follows the turns, and that a change is a change. All SHOULD: the transitions
are not shown, and the place of these notifications among others is open.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Any

from harness.rules.base import Monitor, Outcomes, Violation, Witness, on, on_answer, on_sent, rule
from harness.rules.subjects import began_here
from harness.rules.verdict import Level
from harness.trace.frame import Frame
from harness.trace.values import dig, obj, text

# Requests after which a thread may have been unloaded and loaded again without a word to us.
RELOADING = ("thread/unsubscribe", "thread/resume", "thread/archive", "thread/unarchive")


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
