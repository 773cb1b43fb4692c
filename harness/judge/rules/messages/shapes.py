"""Rules that hold messages against the judge's book: members, types, enumerations.

The schemas allow extra members everywhere, and null for what is optional.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.judge.base import (
    Monitor,
    Outcomes,
    Violation,
    Witness,
    on_harness_message,
    on_kind,
    rule,
)
from harness.judge.rules.shared.view_queries import failed, request_subject
from harness.judge.rules.shared.violations import Member, member, several, whole, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.errors import SchemaError
from harness.protocol.values import Path, arr, at, obj
from harness.trace.frame import Frame, Kind

# The members that hold a policy: of thread/start and turn/start, and of what answers them.
POLICIES = ("approvalPolicy", "sandbox", "sandboxPolicy")
# So many schema errors are written out in one finding.
SHOWN_ERRORS = 3


def cited(errors: Sequence[SchemaError]) -> tuple[str, ...]:
    """The requirements that the errors speak of: for each the nearest, without repetition."""
    return tuple(dict.fromkeys(error.clauses[0] for error in errors if error.clauses))


def misshapen(
    subject: str, frames: tuple[Frame, ...], payload: Member, errors: Sequence[SchemaError]
) -> Violation:
    """The finding about a payload from the book's schema errors: the first few, by their paths."""
    misfits = [(payload.part(*error.path), error.expected) for error in errors]
    found = several(subject, frames, misfits[:SHOWN_ERRORS], clauses=cited(errors))
    more = len(errors) - SHOWN_ERRORS
    return replace(found, actual=f"{found.actual} (and {more} more)") if more > 0 else found


def judged(
    subject: str, frames: tuple[Frame, ...], payload: Member, errors: Sequence[SchemaError]
) -> list[Witness | Violation]:
    """Return witnesses and violations of a payload; hints (SHOULD) stand apart."""
    if not errors:
        return [Witness(subject, frames[-1:])]
    binding = [error for error in errors if not error.hint]
    hints = [error for error in errors if error.hint]
    found: list[Witness | Violation] = []
    if binding:
        found.append(misshapen(subject, frames, payload, binding))
    if hints:
        hint = misshapen(subject, frames, payload, hints)
        found.append(replace(hint, level=Level.SHOULD))
    return found


class Shapes(Monitor):
    """Knows what the client itself said, since to repeat it is not to say something wrong.

    A policy that the text does not have, or an input, may be taken by a server that knows more; it
    then stands in the messages of the server as the client wrote it.
    """

    def begin(self) -> None:
        """Nothing was said."""
        self._policies: list[Any] = []
        self._inputs: list[Any] = []

    @on_harness_message
    def harness_message(self, frame: Frame) -> Outcomes:
        """Keep the policies and the inputs of a request of ours."""
        if frame.kind is Kind.REQUEST:
            params = obj(frame.params)
            self._policies += [params[key] for key in POLICIES if key in params]
            self._inputs += arr(params.get("input"))
        return None

    def without_echoes(self, payload: Any, errors: list[SchemaError]) -> list[SchemaError]:
        """The errors, but for those within a value that the client said just so."""
        return [error for error in errors if not self._repeats(payload, error.path)]

    def _repeats(self, payload: Any, path: Path) -> bool:
        if path and path[0] in POLICIES:
            return at(payload, path[:1]) in self._policies
        places = [place for place, step in enumerate(path[:-1]) if step == "content"]
        return any(at(payload, path[: place + 2]) in self._inputs for place in places)


@rule("shape.response", title="Results have the shape of their method", level=Level.MUST)
class ResponseShape(Shapes):
    """Judges each successful answer to a method of the book against that method's result schema.

    A member that is missing, or null, where the text names it and does not say that it is always
    there, is SHOULD: those of the thread in thread/read, thread/unarchive and thread/rollback, the
    details of a sandbox policy, the error of a turn. Left open: methods that the book does not
    know, results that are not shown, answers that report failure, results that are no object at all
    (frame.well-formed speaks of those), a policy or an input as the client itself had sent it.
    """

    @on_kind(Kind.RESPONSE)
    def on_response(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        result = frame.result
        if request is None or failed(frame) or not isinstance(result, dict):
            return None
        if self.book.method(request.method) is None:
            return None
        errors = self.without_echoes(result, self.book.validate_result(request.method, result))
        if not errors:
            return [Witness(f"result of {request.method}", (frame,))]
        return judged(request_subject(request), (request, frame), member(frame), errors)


@rule("shape.notification", title="Notifications have the shape of their method", level=Level.MUST)
class NotificationShape(Shapes):
    """Judges the params of each notification of the book against its schema ("Events").

    Params that are null have none of the members that are shown. Left open: methods that the book
    does not know, payloads that are not shown, params that are no object otherwise
    (frame.well-formed speaks of those), inputs as the client itself had sent them.
    """

    def begin(self) -> None:
        super().begin()
        self._unknown: set[str] = set()
        self._witnessed: set[str] = set()

    @on_kind(Kind.NOTIFICATION)
    def on_notification(self, frame: Frame) -> Outcomes:
        method = frame.json["method"]
        if method in self._witnessed:
            if self.book.is_valid_event(method, payload_of(frame)):
                return None
        elif method in self._unknown:
            return None
        return self._look(frame, method)

    def _look(self, frame: Frame, method: str) -> Outcomes:
        if self.book.event(method) is None:
            self._unknown.add(method)
            return None
        params = payload_of(frame)
        if not isinstance(params, dict):
            return None
        errors = self.without_echoes(params, self.book.validate_event(method, params))
        subject = f"notification {method}"
        if errors:
            return judged(subject, (frame,), member(frame), errors)
        if not self.setup:
            self._witnessed.add(method)
        return [Witness(subject, (frame,))]


def payload_of(frame: Frame) -> Any:
    """The params of a message, of which null is as good, and as bad, as none."""
    return {} if frame.params is None else frame.params


@rule(
    "method.known",
    title="Names that the specification does not give are recorded",
    level=Level.INFO,
)
class KnownMethod(Monitor):
    """Records notifications and server requests that the specification does not name, once each.

    Extra messages are legal: a client ignores what it does not know. So this never fails a server.
    """

    once = True

    def begin(self) -> None:
        self._seen: set[str] = set()

    @on_kind(Kind.NOTIFICATION, Kind.REQUEST)
    def named(self, frame: Frame) -> Outcomes:
        method = frame.json["method"]
        if method in self._seen:
            return None
        self._seen.add(method)
        subject = f"method {method}"
        row = (self.book.event if frame.kind is Kind.NOTIFICATION else self.book.method)(method)
        if row is not None:
            return [Witness(subject, (frame,))]
        form = "notification" if frame.kind is Kind.NOTIFICATION else "server request"
        expected = f"the name of a {form} of the specification"
        return [wrong(subject, (frame,), whole(frame, "method"), expected)]
