"""Rules on turn objects in any message."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import re
from collections.abc import Iterator
from typing import Any

from harness.judge.base import Monitor, Outcomes, Witness, on, on_answer, rule
from harness.judge.rules.shared.state_tracking import ENDINGS, FAILED
from harness.judge.rules.shared.view_queries import thread_members, turn_in
from harness.judge.rules.shared.violations import Member, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import MISSING, arr, obj, text
from harness.trace.frame import Frame, Kind

_TURN_ID = re.compile(r"turn_\d+")


def _turns(frame: Frame) -> Iterator[tuple[Member, dict[str, Any]]]:
    """Yield every turn object of a frame with its member, including those of its threads."""
    own = turn_in(frame)
    if own:
        yield member(frame, "turn"), own
    for field in thread_members(frame):
        for index, turn in enumerate(arr(obj(field.value).get("turns"))):
            if isinstance(turn, dict):
                yield field.part("turns", index), obj(turn)


@rule("turn.items-empty", title="Turns have no items outside the history", level=Level.MUST)
class ItemsEmpty(Monitor):
    """Judges that turn objects have no items outside the history ("Turn", items).

    The history is the answers to thread/resume and thread/fork, where items are filled. In
    thread/read with includeTurns and in thread/rollback items may be filled or empty: there the
    specific clause beats the general one (reading 1). Left open: the turn/start reply
    (turn.start-reply), a missing or null member (shapes), and messages with unspecified methods.
    """

    @on("turn/started", "turn/completed", "thread/started")
    def on_notification(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    @on_answer("thread/start", "thread/list", "thread/unarchive")
    def on_thread_answer(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    @on_answer("thread/read")
    def on_thread_read_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is not None and obj(request.params).get("includeTurns") is True:
            return None
        return self._judge(frame)

    def _judge(self, frame: Frame) -> Outcomes:
        for field, turn in _turns(frame):
            items, subject = turn.get("items"), f"turn {text(turn.get('id'))}"
            if not isinstance(items, list):
                continue
            if items:
                expected = f"[], since {frame.method or 'this answer'} is no history"
                yield wrong(subject, (frame,), field.part("items"), expected)
            else:
                yield Witness(subject, (frame,))


@rule("turn.error-iff-failed", title="A turn has an error exactly when failed", level=Level.MUST)
class ErrorIffFailed(Monitor):
    """Judges that `error` is filled if the status is failed, and only then ("Turn", error).

    Judged for every turn object, stored ones too. Left open: the turn/start reply
    (turn.start-reply), a missing error instead of null, and a status of another type (shapes).
    """

    @on("turn/started", "turn/completed", "thread/started")
    def on_notification(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    @on_answer("thread/read", "thread/resume", "thread/fork", "thread/rollback")
    def on_history(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    def _judge(self, frame: Frame) -> Outcomes:
        for field, turn in _turns(frame):
            status, error = turn.get("status"), turn.get("error")
            if not isinstance(status, str):
                continue
            subject = f"turn {text(turn.get('id'))}"
            if (status == FAILED) is (error is not None):
                yield Witness(subject, (frame,))
                continue
            failed = status == FAILED
            clauses = ("turn.fails", "errors.failed-turn")
            yield wrong(
                subject,
                (frame,),
                field.part("error"),
                "an error" if failed else "null",
                also=(field.part("status"),),
                clauses=clauses if failed else ("turn.error-only-failed",),
            )


@rule("turn.terminal-status", title="turn/completed carries a final status", level=Level.MUST)
class TerminalStatus(Monitor):
    """Judges that the turn in turn/completed is completed, interrupted or failed ("Turn status").

    Left open: which of the three (other rules), and a status that is not a string (shapes).
    """

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = turn_in(frame)
        status = turn.get("status", MISSING)
        if not isinstance(status, str):
            return None
        subject = f"turn {text(turn.get('id'))}"
        if status in ENDINGS:
            return [Witness(subject, (frame,))]
        expected = f"one of {', '.join(ENDINGS)}"
        return [wrong(subject, (frame,), member(frame, "turn", "status"), expected)]


@rule("turn.id-shape", title="Turn ids look like turn_<n>", level=Level.SHOULD)
class TurnIdShape(Monitor):
    """Judges that ids of turns that this client started look like turn_<n>; one finding per trace.

    The shape is only in a note on the field, and ids are opaque to clients: SHOULD.
    """

    once = True

    @on_answer("turn/start")
    def on_turn_start_answer(self, frame: Frame) -> Outcomes:
        turn_id = text(turn_in(frame).get("id"))
        if frame.kind is not Kind.RESPONSE or not turn_id:
            return None
        if _TURN_ID.fullmatch(turn_id):
            return [Witness("turn ids", (frame,))]
        return [wrong("turn ids", (frame,), member(frame, "turn", "id"), "turn_<n>")]
