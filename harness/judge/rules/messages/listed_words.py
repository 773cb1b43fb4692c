"""Rules on specified values of params, and specified methods, which a server must accept."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from harness.judge.base import (
    Monitor,
    Outcomes,
    Violation,
    Witness,
    on_harness_message,
    on_kind,
    on_sent,
    rule,
)
from harness.judge.rules.shared.view_queries import (
    is_failure,
    request_subject,
    was_completed_before,
)
from harness.judge.rules.shared.violations import member, refusal_member, unexpected_member
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.obligations import ObligationKind
from harness.trace.trace import Trace
from harness.trace.views import Conversation

# The request and the param that takes a listed value -> its enumeration ("Enumerations").
LISTED_WORDS: Final = {
    ("thread/start", "approvalPolicy"): "ApprovalPolicy",
    ("thread/start", "personality"): "Personality",
    ("thread/resume", "personality"): "Personality",
    ("thread/list", "sortKey"): "ThreadSortKey",
    ("turn/start", "approvalPolicy"): "ApprovalPolicy",
    ("turn/start", "effort"): "ReasoningEffort",
    ("turn/start", "summary"): "ReasoningSummary",
}
# Settings of the model, which a model may not support.
_MODEL_SETTINGS: Final = ("personality", "effort", "summary")

# Methods that may change whether a request is accepted.
CHANGING_METHODS: Final = methods_with("may-change-what-is-taken")

# Words of a refusal for a method that is unknown, not one that is temporarily unavailable.
_UNKNOWN_METHOD: Final = re.compile(
    r"((unknown|unsupported|no such) method|method (is )?(not (found|supported|known)|unknown))"
    r"(?!\s+(for|on|in|at|with|while|when|during|before|after|until|unless|yet)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A refused request with a listed word, and its other params."""

    request: Frame
    answer: Frame
    name: str
    other_params: str
    accepted_before: bool


@rule("word.taken", title="A word that the text lists is accepted", level=Level.MUST)
class ListedWordTaken(Monitor):
    """Judges that no request is refused for one of the words that are specified for a param.

    For approvalPolicy (thread/start, turn/start), sortKey (thread/list), effort and summary
    (turn/start), personality (thread/start, thread/resume). A refusal is due to the word if the
    same request without it, or with another, is accepted next; if that was accepted only before, it
    may have another cause: SHOULD. SHOULD too for effort, summary and personality, which a model
    may not support. Left open: refusals while another request is pending, or a turn of the thread
    may run, or after an archive or a similar change; input other than text.
    """

    def begin(self) -> None:
        self._accepted: set[str] = set()
        self._refusals: list[_Refusal] = []
        self._busy: set[Frame] = set()

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        # This request itself is pending too.
        if (
            frame.kind is Kind.REQUEST
            and len(self.owed.open_obligations(ObligationKind.ANSWER)) > 1
        ):
            self._busy.add(frame)
        return None

    @on_sent(*CHANGING_METHODS)
    def on_changing_sent(self, frame: Frame) -> Outcomes:
        yield from self._violations(self._refusals, MISSING)
        self._refusals.clear()
        self._accepted.clear()

    @on_kind(Kind.RESPONSE, Kind.ERROR)
    def on_response(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate:
            return
        params = obj(request.params)
        if request.method == "turn/start" and not is_plain_text(params.get("input")):
            return
        for method, name in LISTED_WORDS:
            if method == request.method:
                yield from self._judge(request, frame, name)

    def _judge(self, request: Frame, answer: Frame, name: str) -> Iterator[Witness | Violation]:
        other_params = (
            f"{request.method} {name} {params_without(obj(request.params), name, 'input')}"
        )
        word = obj(request.params).get(name)
        reference = f"enums.json#/$defs/{LISTED_WORDS[request.method, name]}"
        listed = isinstance(word, str) and self.book.schemas.is_valid(reference, word)
        if is_failure(answer):
            if listed and request not in self._busy and self._is_free(request):
                refused = _Refusal(
                    request, answer, name, other_params, other_params in self._accepted
                )
                self._refusals.append(refused)
            return
        self._accepted.add(other_params)
        same_request = [
            refusal for refusal in self._refusals if refusal.other_params == other_params
        ]
        yield from self._violations(
            [refusal for refusal in same_request if not _has_same_word(refusal, word)], word
        )
        self._refusals = [
            refusal for refusal in self._refusals if refusal.other_params != other_params
        ]
        if listed:
            yield Witness(f"{request.method} with {name} {word}", (request, answer))

    def finish(self) -> Outcomes:
        yield from self._violations(self._refusals, MISSING)

    def _violations(self, refusals: list[_Refusal], accepted_word: Any) -> Iterator[Violation]:
        """Yield the violations; `accepted_word` was accepted instead, MISSING for none yet."""
        for refusal in refusals:
            if accepted_word is MISSING and not refusal.accepted_before:
                continue
            is_certain = accepted_word is not MISSING and refusal.name not in _MODEL_SETTINGS
            frames, word = (refusal.request, refusal.answer), member(refusal.request, refusal.name)
            expected = f"{refusal.request.method} with {word}, since it is taken without"
            subject = f"{refusal.request.method} with {refusal.name} {word.value}"
            level = None if is_certain else Level.SHOULD
            clauses = (_CLAUSES[refusal.name],)
            field = refusal_member(refusal.answer)
            yield unexpected_member(subject, frames, field, expected, level=level, clauses=clauses)

    def _is_free(self, request: Frame) -> bool:
        return request.method != "turn/start" or is_idle(self.conversation, self.trace, request)


_CLAUSES: Final = {
    "approvalPolicy": "approval-policy.accepted",
    "personality": "personality.accepted",
    "sortKey": "sort-key.accepted",
    "effort": "effort.accepted",
    "summary": "summary.accepted",
}


def _has_same_word(refusal: _Refusal, word: Any) -> bool:
    """Return whether an accepted request has the very word that was refused."""
    return obj(refusal.request.params).get(refusal.name) == word


def is_idle(conversation: Conversation, trace: Trace, request: Frame) -> bool:
    """Return whether every turn of a turn/start's thread had certainly ended; False if unknown."""
    thread = conversation.threads.get(text(obj(request.params).get("threadId")))
    return thread is not None and all(
        was_completed_before(trace, turn, request) for turn in thread.turns.values()
    )


def is_plain_text(input_parts: Any) -> bool:
    """Return whether the input is non-blank text only, which no server has a reason to reject."""
    parts = [obj(part) for part in arr(input_parts)]
    return bool(parts) and all(
        part.get("type") == "text" and text(part.get("text")).strip() for part in parts
    )


def params_without(params: dict[str, Any], *names: str) -> str:
    """Return the params except `names` as JSON text, equal for equal params."""
    other_params = {name: value for name, value in params.items() if name not in names}
    return json.dumps(other_params, sort_keys=True)


@rule("method.offered", title="A method of the text is known to the server", level=Level.MUST)
class MethodOffered(Monitor):
    """Judges that no specified method that the server offers is refused as unknown.

    A server offers the methods that every server must have (starting and reading threads, starting
    and interrupting turns) and those of the capabilities that the profile of the trace declares.
    SHOULD if another method of the same capability was served: the two need not go together. Judged
    by the words of the refusal, since no codes are shown. Left open: methods under development, a
    method that was served at another time, and refusals in other words.
    """

    def begin(self) -> None:
        self._unknown: dict[str, tuple[Frame, Frame]] = {}
        self._served: dict[str, tuple[Frame, Frame]] = {}
        self._capability_of: dict[str, str] = {}

    @on_kind(Kind.RESPONSE, Kind.ERROR)
    def on_response(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        row = None if request is None else self.book.method(request.method)
        if request is None or row is None or row.stability != "stable" or request.deliberate:
            return None
        self._capability_of[request.method] = row.capability
        if not is_failure(frame):
            self._served[request.method] = (request, frame)
            return [Witness(f"method {request.method}", (request, frame))]
        if _says_unknown(frame, request.method):
            self._unknown.setdefault(request.method, (request, frame))
        return None

    def finish(self) -> Outcomes:
        for method, (request, answer) in self._unknown.items():
            if method in self._served:
                continue
            capability = self._capability_of[method]
            offered = ("core", *self.trace.header.capabilities)
            kin = [served for served in self._served if self._capability_of[served] == capability]
            if capability not in offered and not kin:
                continue
            level = None if capability in offered else Level.SHOULD
            expected = f"no refusal of {method} as unknown, since the text has it"
            subject, frames = request_subject(request), (request, answer)
            yield unexpected_member(subject, frames, refusal_member(answer), expected, level=level)


def _says_unknown(answer: Frame, method: str) -> bool:
    """Return whether a failed answer says in words that the method is unknown."""
    message = text(dig(answer.error, "message")) or json.dumps(answer.failure)
    name = re.escape(method)
    is_unknown = rf"unknown (\w+ )?\W?{name}\b|{name}\W{{0,3}}(is )?(unknown|not known)\W*$"
    return bool(_UNKNOWN_METHOD.search(message) or re.search(is_unknown, message, re.IGNORECASE))
