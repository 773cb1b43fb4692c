"""Rules on what the end of a failed turn says about its cause, by the scripted model's marks.

The text lists the classes and does not say what each means, so findings are only recorded.
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

# What the model's side did -> the given word that names it. A code says more than a status does.
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


def named_by(end: ModelEnd) -> str | None:
    """The given word for what became of a call, None where no word is given for it."""
    if end.code in CODES:
        return CODES[end.code]
    if end.outcome is CallEnd.DISCONNECTED:
        return CUT_OFF
    return STATUSES.get(end.status) if end.outcome is CallEnd.STATUS else None


class _FailedTurns(Calls):
    """Keeps the failed turns whose calls are known until every end of a call is known too."""

    def begin(self) -> None:
        super().begin()
        self._failed: list[tuple[TurnCalls, Frame]] = []

    def ended(self, asked: TurnCalls, end: Frame) -> Iterable[Outcome]:
        if dig(turn_in(end), "status") == FAILED:
            self._failed.append((asked, end))
            # With all its calls over, no late one can be taken for a call of the next turn.
            self._unclear = len(asked.ends) < len(asked.calls)
        return ()

    def finish(self) -> Outcomes:
        for asked, end in self._failed:
            if asked.ends:
                yield from self.judge(asked, asked.ends[-1], end)

    @abstractmethod
    def judge(self, asked: TurnCalls, last: ModelEnd, end: Frame) -> Iterator[Outcome]:
        """Judge a failed turn by what became of its last call."""


@rule(
    "turn-error.info-fits",
    title="A failed turn is classified by the word that names its cause",
    level=Level.INFO,
)
class InfoFits(_FailedTurns):
    """Records whether agentErrorInfo of a failed turn is the given word for what its model did.

    The text gives the words and not their causes; which cause each names is our reading of them
    (docs/failures.md has the table): INFO. The letters are compared, not the spelling. Left open:
    causes for which no word is given, errors without a classification or with a word that is not
    given, several threads or turns at once.
    """

    def begin(self) -> None:
        super().begin()
        self._shut: Mark[ModelListens] | None = None
        self._opened: Mark[ModelListens] | None = None
        self._unreached: list[tuple[str, Frame, Frame]] = []

    @on_mark(ModelListens)
    def on_model_listens(self, mark: Mark[ModelListens]) -> Outcomes:
        if mark.body.listening:
            self._opened = self._opened or mark
        else:
            self._shut, self._opened = mark, None
        return None

    @on_mark(ModelCall)
    def on_model_call(self, mark: Mark[ModelCall]) -> Outcomes:
        self._shut = None
        return None

    def misses(self, mark: Mark[MarkBody]) -> None:
        super().misses(mark)
        self._shut = None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        """Note a turn that began while the model's address refused connections, and called nobody.

        When the address takes connections again, the turn may have failed and not told it yet.
        """
        turn = self.conversation.turn_of(frame)
        if self._shut is None or turn is None or turn.request is None or turn.status != FAILED:
            return
        opened_before = self._opened is not None and marked_before(self._opened, turn.request)
        if marked_before(self._shut, turn.request) and not opened_before:
            self._unreached.append((turn.subject, turn.request, frame))

    def judge(self, asked: TurnCalls, last: ModelEnd, end: Frame) -> Iterator[Outcome]:
        word = named_by(last)
        if word is not None:
            yield from _compare(asked.subject, word, asked.request, end)

    def finish(self) -> Outcomes:
        yield from super().finish() or ()
        for subject, request, end in self._unreached:
            yield from _compare(subject, UNREACHABLE, request, end)


def _compare(subject: str, word: str, request: Frame, end: Frame) -> Iterator[Outcome]:
    name = info_name(dig(turn_in(end), "error", "agentErrorInfo"))
    given = given_word(name)
    if given is None:
        return
    if given == word:
        yield Witness(subject, (request, end))
    else:
        where = member(end, "turn", "error", "agentErrorInfo")
        expected = f"{literal(word)}, the word for what the model's side did"
        yield wrong(subject, (request, end), where, expected)


@rule(
    "turn-error.tells-cause",
    title="What the model's side said of a failure is told",
    level=Level.INFO,
)
class TellsCause(_FailedTurns):
    """Records whether the error of a failed turn holds the words in which its model failed.

    In the message or in additionalDetails, which the text calls additional context and no more:
    INFO. Left open: calls that failed without words, several threads or turns at once.
    """

    def judge(self, asked: TurnCalls, last: ModelEnd, end: Frame) -> Iterator[Outcome]:
        said = last.said
        if not said:
            return
        keys, frames = ("message", "additionalDetails"), (asked.request, end)
        told = [member(end, "turn", "error", key) for key in keys]
        if any(said in text(one.value) for one in told):
            yield Witness(asked.subject, frames)
        else:
            expected = f"the words of the model's side, {literal(said)}, in one of these members"
            actual, places = "; ".join(map(str, told)), tuple(one.place for one in told)
            yield Violation(asked.subject, frames, expected, actual, places=places)
