"""Rules on what a server must accept because the text lists it: values of params, and methods."""
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
from harness.judge.rules.shared.view_queries import completed_before, failed, request_subject
from harness.judge.rules.shared.violations import instead, member, refusal
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.owed import Owes
from harness.trace.trace import Trace
from harness.trace.views import Conversation

# The request and the param that takes a listed value -> its enumeration ("Enumerations").
LISTED: Final = {
    ("thread/start", "approvalPolicy"): "ApprovalPolicy",
    ("thread/start", "personality"): "Personality",
    ("thread/resume", "personality"): "Personality",
    ("thread/list", "sortKey"): "ThreadSortKey",
    ("turn/start", "approvalPolicy"): "ApprovalPolicy",
    ("turn/start", "effort"): "ReasoningEffort",
    ("turn/start", "summary"): "ReasoningSummary",
}
# Settings of the model, which a model may not support.
_OF_THE_MODEL: Final = ("personality", "effort", "summary")

# What may change whether anything is taken: by a thread, for want of room, before a handshake.
CHANGING: Final = methods_with("may-change-what-is-taken")

# Words of a refusal for a method that is unknown, not one that is temporarily unavailable.
_UNKNOWN_METHOD: Final = re.compile(
    r"((unknown|unsupported|no such) method|method (is )?(not (found|supported|known)|unknown))"
    r"(?!\s+(for|on|in|at|with|while|when|during|before|after|until|unless|yet)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Refused:
    """A request with a listed word that was refused, and the same without the word."""

    request: Frame
    answer: Frame
    name: str
    rest: str
    before: bool


@rule("word.taken", title="A word that the text lists is taken", level=Level.MUST)
class ListedWordTaken(Monitor):
    """Judges that no request is refused for one of the words that the text lists for a parameter.

    For approvalPolicy (thread/start, turn/start), sortKey (thread/list), effort and summary
    (turn/start), personality (thread/start, thread/resume). A refusal is for the word where the
    same request without it, or with another, is taken next; where that was taken before only, it
    may be for something else: SHOULD. So are effort, summary and personality, which a model may not
    have. Left open: refusals while another request waits, or a turn of the thread may run, or after
    an archive or its like; input that is not text.
    """

    def begin(self) -> None:
        self._taken: set[str] = set()
        self._refused: list[_Refused] = []
        self._busy: set[Frame] = set()

    @on_harness_message
    def sent(self, frame: Frame) -> Outcomes:
        # This request itself is owed an answer too.
        if frame.kind is Kind.REQUEST and len(self.owed.open(Owes.ANSWER)) > 1:
            self._busy.add(frame)
        return None

    @on_sent(*CHANGING)
    def on_changing_sent(self, frame: Frame) -> Outcomes:
        yield from self._told(self._refused, MISSING)
        self._refused.clear()
        self._taken.clear()

    @on_kind(Kind.RESPONSE, Kind.ERROR)
    def on_response(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate:
            return
        params = obj(request.params)
        if request.method == "turn/start" and not is_plain_text(params.get("input")):
            return
        for method, name in LISTED:
            if method == request.method:
                yield from self._judge(request, frame, name)

    def _judge(self, request: Frame, answer: Frame, name: str) -> Iterator[Witness | Violation]:
        rest = f"{request.method} {name} {without(obj(request.params), name, 'input')}"
        word = obj(request.params).get(name)
        reference = f"enums.json#/$defs/{LISTED[request.method, name]}"
        listed = isinstance(word, str) and self.book.schemas.is_valid(reference, word)
        if failed(answer):
            if listed and request not in self._busy and self._free(request):
                refused = _Refused(request, answer, name, rest, rest in self._taken)
                self._refused.append(refused)
            return
        self._taken.add(rest)
        same = [one for one in self._refused if one.rest == rest]
        yield from self._told([one for one in same if not _has(one, word)], word)
        self._refused = [one for one in self._refused if one.rest != rest]
        if listed:
            yield Witness(f"{request.method} with {name} {word}", (request, answer))

    def finish(self) -> Outcomes:
        yield from self._told(self._refused, MISSING)

    def _told(self, refused: list[_Refused], taken: Any) -> Iterator[Violation]:
        """The findings; `taken` is what was taken instead of the word, MISSING for nothing yet."""
        for one in refused:
            if taken is MISSING and not one.before:
                continue
            sure = taken is not MISSING and one.name not in _OF_THE_MODEL
            frames, word = (one.request, one.answer), member(one.request, one.name)
            expected = f"{one.request.method} with {word}, since it is taken without"
            subject = f"{one.request.method} with {one.name} {word.value}"
            level = None if sure else Level.SHOULD
            clauses = (_CLAUSES[one.name],)
            where = refusal(one.answer)
            yield instead(subject, frames, where, expected, level=level, clauses=clauses)

    def _free(self, request: Frame) -> bool:
        return request.method != "turn/start" or is_idle(self.conversation, self.trace, request)


_CLAUSES: Final = {
    "approvalPolicy": "approval-policy.accepted",
    "personality": "personality.accepted",
    "sortKey": "sort-key.accepted",
    "effort": "effort.accepted",
    "summary": "summary.accepted",
}


def _has(refused: _Refused, word: Any) -> bool:
    """Return whether a request that was taken has the very word that was refused."""
    return obj(refused.request.params).get(refused.name) == word


def is_idle(conversation: Conversation, trace: Trace, request: Frame) -> bool:
    """Return whether every turn of the thread that a turn/start names had certainly ended."""
    thread = conversation.threads.get(text(obj(request.params).get("threadId")))
    return thread is not None and all(
        completed_before(trace, turn, request) for turn in thread.turns.values()
    )


def is_plain_text(said: Any) -> bool:
    """Return whether an input is words alone, so that nothing in it can be refused."""
    parts = [obj(part) for part in arr(said)]
    return bool(parts) and all(
        part.get("type") == "text" and text(part.get("text")).strip() for part in parts
    )


def without(params: dict[str, Any], *names: str) -> str:
    """The other params as one text."""
    rest = {name: value for name, value in params.items() if name not in names}
    return json.dumps(rest, sort_keys=True)


@rule("method.offered", title="A method of the text is known to the server", level=Level.MUST)
class MethodOffered(Monitor):
    """Judges that no method is refused as unknown that the text has and the server offers.

    Offered is what every server must have (starting and reading threads, starting and interrupting
    turns) and what the profile of the trace declares. Where another method of the same kind
    was served, it is SHOULD: nobody said that the two go together. Judged by the words of the
    refusal, since no codes are shown. Left open: methods under development, a method that was
    served at another time, and refusals in words that do not say so.
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
        if not failed(frame):
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
            kin = [one for one in self._served if self._capability_of[one] == capability]
            if capability not in offered and not kin:
                continue
            level = None if capability in offered else Level.SHOULD
            expected = f"no refusal of {method} as unknown, since the text has it"
            subject, frames = request_subject(request), (request, answer)
            yield instead(subject, frames, refusal(answer), expected, level=level)


def _says_unknown(answer: Frame, method: str) -> bool:
    """Return whether a failed answer says in words that there is no such method."""
    said = text(dig(answer.error, "message")) or json.dumps(answer.failure)
    named = re.escape(method)
    is_unknown = rf"unknown (\w+ )?\W?{named}\b|{named}\W{{0,3}}(is )?(unknown|not known)\W*$"
    return bool(_UNKNOWN_METHOD.search(said) or re.search(is_unknown, said, re.IGNORECASE))
