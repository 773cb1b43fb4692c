"""Rules on the reported cause of a failed turn, by the scripted model's marks.

The specification lists the classes without their meanings, so findings are only recorded.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from abc import abstractmethod
from collections.abc import Iterable, Iterator

from harness.judge.base import Outcome, Outcomes, Violation, Witness, on, on_mark, rule
from harness.judge.rules.shared.state_tracking import FAILED
from harness.judge.rules.shared.turn_calls import Calls, TurnCalls
from harness.judge.rules.shared.view_queries import turn_in
from harness.judge.rules.shared.violations import member, wrong
from harness.judge.rules.turns.errors import given_word, info_name
from harness.judge.verdict import Level
from harness.protocol.values import dig, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import CallEnd, MarkBody, ModelCall, ModelEnd, ModelListens
from harness.trace.order import marked_before
from harness.trace.trace import Mark

# The specified error class for each failure of the model. A code takes precedence over a status.
CODES = {
    "context_length_exceeded": "ContextWindowExceeded",
    "usage_limit_reached": "UsageLimitExceeded",
    "usage_limit_exceeded": "UsageLimitExceeded",
    "insufficient_quota": "UsageLimitExceeded",
    "billing_hard_limit_reached": "UsageLimitExceeded",
    "invalid_api_key": "Unauthorized",
    "authentication_error": "Unauthorized",
    "invalid_request": "BadRequest",
    "invalid_request_error": "BadRequest",
    "invalid_prompt": "BadRequest",
    "server_error": "InternalServerError",
    "server_is_overloaded": "InternalServerError",
}
STATUSES = {
    400: "BadRequest",
    401: "Unauthorized",
    402: "UsageLimitExceeded",
    403: "Unauthorized",
    413: "BadRequest",
    422: "BadRequest",
    **dict.fromkeys(range(500, 600), "InternalServerError"),
}
CUT_OFF = "ResponseStreamDisconnected"
UNREACHABLE = "HttpConnectionFailed"


def word_for(end: ModelEnd) -> str | None:
    """Return the specified error class for the end of a model call, None if there is none."""
    if end.code in CODES:
        return CODES[end.code]
    if end.outcome is CallEnd.DISCONNECTED:
        return CUT_OFF
    return STATUSES.get(end.status) if end.outcome is CallEnd.STATUS else None


class _FailedTurns(Calls):
    """Base of rules on failed turns, kept until the end of each model call is known."""

    def begin(self) -> None:
        super().begin()
        self._failed_turns: list[tuple[TurnCalls, Frame]] = []

    def on_turn_end(self, turn_calls: TurnCalls, end: Frame) -> Iterable[Outcome]:
        if dig(turn_in(end), "status") == FAILED:
            self._failed_turns.append((turn_calls, end))
            # A call that has not ended may be mistaken for one of the next turn.
            self._unclear = len(turn_calls.ends) < len(turn_calls.calls)
        return ()

    def finish(self) -> Outcomes:
        for turn_calls, end in self._failed_turns:
            if turn_calls.ends:
                yield from self.judge_failure(turn_calls, turn_calls.ends[-1], end)

    @abstractmethod
    def judge_failure(self, turn_calls: TurnCalls, last: ModelEnd, end: Frame) -> Iterator[Outcome]:
        """Judge a failed turn by the outcome of its last call."""


@rule(
    "turn-error.info-fits",
    title="A failed turn is classified by the word that names its cause",
    level=Level.INFO,
)
class InfoFits(_FailedTurns):
    """Records whether agentErrorInfo of a failed turn is the word for the model's failure.

    The specification gives the words without their causes; the mapping is this project's
    (docs/failures.md has the table): INFO. The letters are compared, not the spelling. Left open:
    causes without a word, errors without a classification or with another word, several threads or
    turns at once.
    """

    def begin(self) -> None:
        super().begin()
        self._refusing_since: Mark[ModelListens] | None = None
        self._listening_since: Mark[ModelListens] | None = None
        self._unreached_turns: list[tuple[str, Frame, Frame]] = []

    @on_mark(ModelListens)
    def on_model_listens(self, mark: Mark[ModelListens]) -> Outcomes:
        if mark.body.listening:
            self._listening_since = self._listening_since or mark
        else:
            self._refusing_since, self._listening_since = mark, None
        return None

    @on_mark(ModelCall)
    def on_model_call(self, mark: Mark[ModelCall]) -> Outcomes:
        self._refusing_since = None
        return None

    def on_missed_mark(self, mark: Mark[MarkBody]) -> None:
        super().on_missed_mark(mark)
        self._refusing_since = None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        """Note a turn that failed without a call, and began while the model's address was refused.

        It counts even if the address accepts connections again when the failure is reported.
        """
        turn = self.conversation.turn_of(frame)
        if (
            self._refusing_since is None
            or turn is None
            or turn.request is None
            or turn.status != FAILED
        ):
            return
        opened_before = self._listening_since is not None and marked_before(
            self._listening_since, turn.request
        )
        if marked_before(self._refusing_since, turn.request) and not opened_before:
            self._unreached_turns.append((turn.subject, turn.request, frame))

    def judge_failure(self, turn_calls: TurnCalls, last: ModelEnd, end: Frame) -> Iterator[Outcome]:
        word = word_for(last)
        if word is not None:
            yield from _compare(turn_calls.subject, word, turn_calls.request, end)

    def finish(self) -> Outcomes:
        yield from super().finish() or ()
        for subject, request, end in self._unreached_turns:
            yield from _compare(subject, UNREACHABLE, request, end)


def _compare(subject: str, word: str, request: Frame, end: Frame) -> Iterator[Outcome]:
    name = info_name(dig(turn_in(end), "error", "agentErrorInfo"))
    listed_word = given_word(name)
    if listed_word is None:
        return
    if listed_word == word:
        yield Witness(subject, (request, end))
    else:
        field = member(end, "turn", "error", "agentErrorInfo")
        expected = f"{literal(word)}, the word for what the model's side did"
        yield wrong(subject, (request, end), field, expected)


@rule(
    "turn-error.tells-cause",
    title="The model's error text is reported",
    level=Level.INFO,
)
class TellsCause(_FailedTurns):
    """Records whether the error of a failed turn has the text of the model's failure.

    It may be in the message or in additionalDetails, which the specification only calls additional
    context: INFO. Left open: calls that failed without a text, several threads or turns at once.
    """

    def judge_failure(self, turn_calls: TurnCalls, last: ModelEnd, end: Frame) -> Iterator[Outcome]:
        words = last.said
        if not words:
            return
        keys, frames = ("message", "additionalDetails"), (turn_calls.request, end)
        fields = [member(end, "turn", "error", key) for key in keys]
        if any(words in text(field.value) for field in fields):
            yield Witness(turn_calls.subject, frames)
        else:
            expected = f"the words of the model's side, {literal(words)}, in one of these members"
            actual, places = "; ".join(map(str, fields)), tuple(field.place for field in fields)
            yield Violation(turn_calls.subject, frames, expected, actual, places=places)
