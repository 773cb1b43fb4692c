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
    thread_members,
    turn_id_of,
    turn_ids_in_answer,
    turn_in,
)
from harness.judge.rules.shared.violations import Member, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.views import ThreadView, TurnView, turns_of

# The values of agentErrorInfo in the specification ("TurnError"); the list is not complete.
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
    """Return the specified value with the same letters in any case, None if there is none."""
    return _BY_LETTERS.get(name.replace("_", "").replace("-", "").lower())


def info_name(info: Any) -> str:
    """Return the name of an agentErrorInfo: a string, or the only key of an object; else ""."""
    members = obj(info)
    if len(members) == 1:
        return next(iter(members))
    return text(info)


@rule("turn-error.info-spelling", title="agentErrorInfo is spelled as given", level=Level.MUST)
class InfoSpelling(Monitor):
    """Judges that an agentErrorInfo with a specified value is spelled as in the specification.

    A finding: the letters of a specified value in another spelling (contextWindowExceeded), as a
    string. As the only key of an object it is INFO: no form of an object is shown. Left open: other
    values (the list is open), null, and a missing member.
    """

    @on("error", "turn/completed")
    def on_notification(self, frame: Frame) -> Outcomes:
        field = member(frame, "turn") if turn_in(frame) else member(frame)
        return self._judge(turn_id_of(frame), field.part("error"))

    @on_answer("thread/read", "thread/resume", "thread/fork", "thread/rollback")
    def on_history(self, frame: Frame) -> Outcomes:
        for thread in thread_members(frame):
            for index, turn in enumerate(turns_of(thread.value)):
                yield from self._judge(text(turn.get("id")), thread.part("turns", index, "error"))

    def _judge(self, turn_id: str, error: Member) -> Iterator[Violation | Witness]:
        info = obj(error.value).get("agentErrorInfo")
        name = info_name(info)
        listed_word = given_word(name)
        if listed_word is None:
            return
        subject = f"error of turn {turn_id}"
        if name == listed_word:
            yield Witness(subject, (error.frame,))
        else:
            expected = f"{literal(listed_word)}, in this spelling"
            level = None if isinstance(info, str) else Level.INFO
            field = error.part("agentErrorInfo")
            yield wrong(subject, (error.frame,), field, expected, level=level)


@rule(
    "error.terminal-carries-cause",
    title="A turn that gave up has an error message",
    level=Level.SHOULD,
)
class TerminalCarriesCause(Monitor):
    """Judges the end of a turn with an error that it will not retry, and of a failed turn.

    After `error` with willRetry false the turn should end failed, and the error of a failed turn
    should have a nonempty message. Derived: the specification says that willRetry tells whether the
    turn continues, and that a turn which ends in error has an error with a message. Left open: such
    a turn that was interrupted, whether the two messages are equal, and a missing error
    (turn.error-iff-failed, shapes).
    """

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or len(turn.completions) > 1 or not is_own_turn(self.conversation, turn):
            return None
        gave_up = [e for e in turn.errors if obj(e.params).get("willRetry") is False]
        if turn.status == "completed" and gave_up:
            frames = (gave_up[0], frame)
            also = (member(gave_up[0], "willRetry"),)
            field = member(frame, "turn", "status")
            return [wrong(turn.subject, frames, field, '"failed"', also=also)]
        if turn.status != "failed":
            return None
        message = dig(turn_in(frame), "error", "message")
        if not isinstance(message, str):
            return None
        if message.strip():
            return [Witness(turn.subject, (*gave_up[:1], frame))]
        field = member(frame, "turn", "error", "message")
        return [wrong(turn.subject, (frame,), field, "words that say why the turn failed")]


@rule("error.names-turn", title="An error names a turn that is running", level=Level.MUST)
class NamesTurn(Monitor):
    """Judges that the turnId of an `error` belongs to a turn that had begun and had not ended.

    An unannounced turn is judged at the end of a quiescent trace, since the position of errors
    among the messages is open: on threads that were started or forked in the trace, and as SHOULD
    on a resumed one whose answer shows turns without this one. For the same reason an error after
    turn/completed is SHOULD; so is one of an unannounced turn if work outside turns, such as a
    compaction, was requested. Left open: turns that items or turn/completed name (item.known-turn,
    turn.started-first), turns of other clients, missing ids (shapes), an error with the id of
    another thread (turn.known-thread).
    """

    once = True

    def begin(self) -> None:
        self._unannounced: dict[str, Frame] = {}
        self._answered_ids: set[str] = set()
        self._level: Level | None = None

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        if frame.kind is Kind.REQUEST and _is_other_work(self.book.method(frame.method), frame):
            self._level = Level.SHOULD
        return None

    @on_kind(Kind.RESPONSE)
    def on_response(self, frame: Frame) -> Outcomes:
        self._answered_ids.update(turn_ids_in_answer(self.conversation, frame))
        return None

    @on("error")
    def on_error(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None:
            return None
        if not self._is_known(turn):
            self._unannounced.setdefault(turn.key, frame)
            return None
        return self._judge(turn, frame)

    def finish(self) -> Outcomes:
        for key, frame in self._unannounced.items():
            turn = self.conversation.turns[key]
            thread = self.conversation.threads.get(text(obj(frame.params).get("threadId")))
            level = self._weight(thread, turn.id)
            if self._is_known(turn) or level is None:
                continue
            expected, field = "the id of a turn that was announced", member(frame, "turnId")
            yield wrong(turn.subject, (frame,), field, expected, level=self._level or level)

    def _weight(self, thread: ThreadView | None, turn_id: str) -> Level | None:
        """Return the level for an unannounced turn, None if the thread may have had it before."""
        if thread is None or not thread.opening_answers:
            return None
        for answer in thread.opening_answers:
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
        first = self.conversation.request_of(thread.opening_answers[0])
        resumed = first is None or first.method == "thread/resume"
        return Level.SHOULD if resumed else Level.MUST

    def _is_known(self, turn: TurnView) -> bool:
        evidence = turn.reply or turn.starts or turn.completions or turn.items
        return bool(evidence) or turn.id in self._answered_ids

    def _judge(self, turn: TurnView, frame: Frame) -> Outcomes:
        first_frames = [turn.starts[0]] if turn.starts else [turn.reply] if turn.reply else []
        if not first_frames or not is_own_turn(self.conversation, turn):
            return None
        if turn.completions:
            frames = (turn.completions[0], frame)
            expected = f"errors of {turn.subject} only while it runs"
            actual, level = "error came after its turn/completed", Level.SHOULD
            places = (member(frame, "turnId").place,)
            return [Violation(turn.subject, frames, expected, actual, level, places=places)]
        return [Witness(turn.subject, (*first_frames, frame))]


def _is_other_work(row: Any, request: Frame) -> bool:
    """Return whether a request may begin work outside turns: a compaction, or an unknown method."""
    return row is None or request.method == "thread/compact/start"
