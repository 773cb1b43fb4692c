"""Rules that check messages against the judge's book: members, types, enumerations.

The schemas allow extra members everywhere, and null for optional ones.
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
from harness.judge.rules.shared.view_queries import is_failure, request_subject
from harness.judge.rules.shared.violations import Member, member, root_member, several, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.errors import SchemaError
from harness.protocol.values import Path, arr, obj, value_at
from harness.trace.frame import Frame, Kind

# The members that hold a policy in thread/start, turn/start and their answers.
POLICIES = ("approvalPolicy", "sandbox", "sandboxPolicy")
# The number of schema errors that one violation lists.
MAX_ERRORS_SHOWN = 3


def clauses_of(errors: Sequence[SchemaError]) -> tuple[str, ...]:
    """Return the nearest requirement of each error, without repetition."""
    return tuple(dict.fromkeys(error.clauses[0] for error in errors if error.clauses))


def shape_violation(
    subject: str, frames: tuple[Frame, ...], payload: Member, errors: Sequence[SchemaError]
) -> Violation:
    """Return the violation for the schema errors of a payload: the first few, by their paths."""
    expectations = [(payload.part(*error.path), error.expected) for error in errors]
    violation = several(
        subject, frames, expectations[:MAX_ERRORS_SHOWN], clauses=clauses_of(errors)
    )
    unlisted = len(errors) - MAX_ERRORS_SHOWN
    return (
        replace(violation, actual=f"{violation.actual} (and {unlisted} more)")
        if unlisted > 0
        else violation
    )


def judge_payload(
    subject: str, frames: tuple[Frame, ...], payload: Member, errors: Sequence[SchemaError]
) -> list[Witness | Violation]:
    """Return a witness, or one violation for all binding errors and one (SHOULD) for all hints."""
    if not errors:
        return [Witness(subject, frames[-1:])]
    binding = [error for error in errors if not error.hint]
    hints = [error for error in errors if error.hint]
    outcomes: list[Witness | Violation] = []
    if binding:
        outcomes.append(shape_violation(subject, frames, payload, binding))
    if hints:
        hint = shape_violation(subject, frames, payload, hints)
        outcomes.append(replace(hint, level=Level.SHOULD))
    return outcomes


class EchoAwareRule(Monitor):
    """Base of rules that accept values which the client itself has sent.

    A server may accept a policy or an input that is not specified; it then appears in the server's
    messages as the client wrote it.
    """

    def begin(self) -> None:
        """Start with nothing sent."""
        self._policies: list[Any] = []
        self._inputs: list[Any] = []

    @on_harness_message
    def on_client_message(self, frame: Frame) -> Outcomes:
        """Keep the policies and the inputs of a request of the harness."""
        if frame.kind is Kind.REQUEST:
            params = obj(frame.params)
            self._policies += [params[key] for key in POLICIES if key in params]
            self._inputs += arr(params.get("input"))
        return None

    def without_echoes(self, payload: Any, errors: list[SchemaError]) -> list[SchemaError]:
        """Return the errors, except those within a value that the client sent."""
        return [error for error in errors if not self._is_echo(payload, error.path)]

    def _is_echo(self, payload: Any, path: Path) -> bool:
        if path and path[0] in POLICIES:
            return value_at(payload, path[:1]) in self._policies
        places = [place for place, step in enumerate(path[:-1]) if step == "content"]
        return any(value_at(payload, path[: place + 2]) in self._inputs for place in places)


@rule("shape.response", title="Results have the shape of their method", level=Level.MUST)
class ResponseShape(EchoAwareRule):
    """Judges each successful answer to a method of the book against that method's result schema.

    SHOULD for a missing or null member that the specification names but does not say to be always
    present: those of the thread in thread/read, thread/unarchive and thread/rollback, the details
    of a sandbox policy, the error of a turn. Left open: methods that the book does not know,
    results that are not shown, answers that report failure, results that are not an object at all
    (frame.well-formed judges them), a policy or an input as the client itself had sent it.
    """

    @on_kind(Kind.RESPONSE)
    def on_response(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        result = frame.result
        if request is None or is_failure(frame) or not isinstance(result, dict):
            return None
        if self.book.method(request.method) is None:
            return None
        errors = self.without_echoes(result, self.book.validate_result(request.method, result))
        if not errors:
            return [Witness(f"result of {request.method}", (frame,))]
        return judge_payload(request_subject(request), (request, frame), member(frame), errors)


@rule("shape.notification", title="Notifications have the shape of their method", level=Level.MUST)
class NotificationShape(EchoAwareRule):
    """Judges the params of each notification of the book against its schema ("Events").

    Null params have none of the shown members. Left open: methods that the book does not know,
    payloads that are not shown, params that are otherwise not an object (frame.well-formed judges
    them), inputs as the client itself had sent them.
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
        return self._judge_notification(frame, method)

    def _judge_notification(self, frame: Frame, method: str) -> Outcomes:
        if self.book.event(method) is None:
            self._unknown.add(method)
            return None
        params = payload_of(frame)
        if not isinstance(params, dict):
            return None
        errors = self.without_echoes(params, self.book.validate_event(method, params))
        subject = f"notification {method}"
        if errors:
            return judge_payload(subject, (frame,), member(frame), errors)
        if not self.setup:
            self._witnessed.add(method)
        return [Witness(subject, (frame,))]


def payload_of(frame: Frame) -> Any:
    """Return the params of a message, {} if they are null."""
    return {} if frame.params is None else frame.params


@rule(
    "method.known",
    title="Names outside the specification are recorded",
    level=Level.INFO,
)
class KnownMethod(Monitor):
    """Records notifications and server requests that the specification does not name, once each.

    Extra messages are legal: a client ignores unknown ones. So this never fails a server.
    """

    once = True

    def begin(self) -> None:
        self._seen: set[str] = set()

    @on_kind(Kind.NOTIFICATION, Kind.REQUEST)
    def on_message(self, frame: Frame) -> Outcomes:
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
        return [wrong(subject, (frame,), root_member(frame, "method"), expected)]
