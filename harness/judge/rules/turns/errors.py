"""Rules on errors inside turns: the turn they name, their class, the cause at the end."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from typing import Any

from harness.judge.base import (
    Monitor,
    Outcomes,
    Violation,
    Witness,
    on,
    on_answer,
    on_harness_message,
    on_kind,
    rule,
)
from harness.judge.rules.shared.view_queries import (
    is_own_turn,
    named_by_answer,
    thread_members,
    turn_id_of,
    turn_in,
)
from harness.judge.rules.shared.violations import Member, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.views import ThreadView, TurnView, turns_of

# "TurnError": the values given; the complete list is not shown.
GIVEN = (
    "ContextWindowExceeded",
    "UsageLimitExceeded",
    "HttpConnectionFailed",
    "ResponseStreamDisconnected",
    "Unauthorized",
    "BadRequest",
    "InternalServerError",
    "Other",
)
_BY_LETTERS = {value.lower(): value for value in GIVEN}


def given_word(name: str) -> str | None:
    """The given value that has these letters, None where there is none."""
    return _BY_LETTERS.get(name.replace("_", "").replace("-", "").lower())


def info_name(info: Any) -> str:
    """The name of a classification: a string, or the one key of an object."""
    members = obj(info)
    if len(members) == 1:
        return next(iter(members))
    return text(info)


@rule("turn-error.info-spelling", title="agentErrorInfo is spelled as given", level=Level.MUST)
class InfoSpelling(Monitor):
    """Judges that a classification that is one of the values given is spelled as the text does.

    A finding: the letters of a given value in another spelling (contextWindowExceeded), as a
    string. As the one key of an object it is INFO: no form of an object is shown. Left open: other
    values (the list is open), null or nothing.
    """

    @on("error", "turn/completed")
    def notification(self, frame: Frame) -> Outcomes:
        where = member(frame, "turn") if turn_in(frame) else member(frame)
        return self._judge(turn_id_of(frame), where.part("error"))

    @on_answer("thread/read", "thread/resume", "thread/fork", "thread/rollback")
    def answer(self, frame: Frame) -> Outcomes:
        for thread in thread_members(frame):
            for at, turn in enumerate(turns_of(thread.value)):
                yield from self._judge(text(turn.get("id")), thread.part("turns", at, "error"))

    def _judge(self, turn_id: str, error: Member) -> Iterator[Violation | Witness]:
        info = obj(error.value).get("agentErrorInfo")
        name = info_name(info)
        given = given_word(name)
        if given is None:
            return
        subject = f"error of turn {turn_id}"
        if name == given:
            yield Witness(subject, (error.frame,))
        else:
            expected = f"{literal(given)}, in this spelling"
            level = None if isinstance(info, str) else Level.INFO
            where = error.part("agentErrorInfo")
            yield wrong(subject, (error.frame,), where, expected, level=level)


@rule("error.terminal-carries-cause", title="A turn that gave up says why", level=Level.SHOULD)
class TerminalCarriesCause(Monitor):
    """Judges the end of a turn that reported an error it will not retry, and of a failed turn.

    After `error` with willRetry false the turn should end failed, and the error of a failed turn
    should have a message to read. Derived: the text says that willRetry tells whether the turn goes
    on, and that a turn which ends in error has an error with a message. Left open: such a turn that
    was interrupted, whether the two messages are equal, and an error that is not there at all
    (turn.error-iff-failed, shapes).
    """

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or len(turn.completed) > 1 or not is_own_turn(self.conversation, turn):
            return None
        gave_up = [e for e in turn.errors if obj(e.params).get("willRetry") is False]
        if turn.status == "completed" and gave_up:
            frames = (gave_up[0], frame)
            also = (member(gave_up[0], "willRetry"),)
            where = member(frame, "turn", "status")
            return [wrong(turn.subject, frames, where, '"failed"', also=also)]
        if turn.status != "failed":
            return None
        message = dig(turn_in(frame), "error", "message")
        if not isinstance(message, str):
            return None
        if message.strip():
            return [Witness(turn.subject, (*gave_up[:1], frame))]
        where = member(frame, "turn", "error", "message")
        return [wrong(turn.subject, (frame,), where, "words that say why the turn failed")]


@rule("error.names-turn", title="An error names a turn that is running", level=Level.MUST)
class NamesTurn(Monitor):
    """Judges that the turnId of an `error` is of a turn that had begun and had not ended.

    A turn that is never announced is judged at the end of a quiescent trace, since the place of
    errors among the messages is open: on threads that were started or forked within the trace, and
    at SHOULD on one that was resumed, where the answer shows turns and this one is not among them.
    For that reason too an error after turn/completed weighs SHOULD; so does one of no announced
    turn where work was asked for that need be no turn, such as a compaction. Left open: turns that
    items or turn/completed name (item.known-turn, turn.started-first), turns of others, ids that
    are missing (shapes), an error that names another thread than its turn (turn.known-thread).
    """

    once = True

    def begin(self) -> None:
        self._early: dict[str, Frame] = {}
        self._answered: set[str] = set()
        self._level: Level | None = None

    @on_harness_message
    def harness_message(self, frame: Frame) -> Outcomes:
        if frame.kind is Kind.REQUEST and _is_other_work(self.book.method(frame.method), frame):
            self._level = Level.SHOULD
        return None

    @on_kind(Kind.RESPONSE)
    def on_response(self, frame: Frame) -> Outcomes:
        self._answered.update(named_by_answer(self.conversation, frame))
        return None

    @on("error")
    def on_error(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None:
            return None
        if not self._known(turn):
            self._early.setdefault(turn.key, frame)
            return None
        return self._judge(turn, frame)

    def finish(self) -> Outcomes:
        for key, frame in self._early.items():
            turn = self.conversation.turns[key]
            thread = self.conversation.threads.get(text(obj(frame.params).get("threadId")))
            level = self._weight(thread, turn.id)
            if self._known(turn) or level is None:
                continue
            expected, where = "the id of a turn that was announced", member(frame, "turnId")
            yield wrong(turn.subject, (frame,), where, expected, level=self._level or level)

    def _weight(self, thread: ThreadView | None, turn_id: str) -> Level | None:
        """Return the level of an unknown turn, None if the thread may have had it before."""
        if thread is None or not thread.opened:
            return None
        for answer in thread.opened:
            turns = dig(answer.result, "thread", "turns")
            request = self.conversation.request_of(answer)
            if (
                request is not None
                and request.method == "thread/resume"
                and not isinstance(turns, list)
            ):
                return None
            if any(text(obj(turn).get("id")) == turn_id for turn in arr(turns)):
                return None
        first = self.conversation.request_of(thread.opened[0])
        resumed = first is None or first.method == "thread/resume"
        return Level.SHOULD if resumed else Level.MUST

    def _known(self, turn: TurnView) -> bool:
        named = turn.reply or turn.started or turn.completed or turn.items
        return bool(named) or turn.id in self._answered

    def _judge(self, turn: TurnView, frame: Frame) -> Outcomes:
        begun = [turn.started[0]] if turn.started else [turn.reply] if turn.reply else []
        if not begun or not is_own_turn(self.conversation, turn):
            return None
        if turn.completed:
            frames = (turn.completed[0], frame)
            expected = f"errors of {turn.subject} only while it runs"
            actual, level = "error came after its turn/completed", Level.SHOULD
            places = (member(frame, "turnId").place,)
            return [Violation(turn.subject, frames, expected, actual, level, places=places)]
        return [Witness(turn.subject, (*begun, frame))]


def _is_other_work(row: Any, request: Frame) -> bool:
    """Return whether a request asks for work that need be no turn.

    Such is a compaction, or work that is not shown.
    """
    return row is None or request.method == "thread/compact/start"
