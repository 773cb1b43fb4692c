"""Rules that hold messages against the judge's book: members, types, enumerations.

Here: what the schemas say, and which method names the book knows. Not here: meaning across
messages. The schemas allow extra members everywhere, and null for what is optional.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from dataclasses import replace

from harness.rules.base import Monitor, Outcomes, Violation, Witness, on_kind, rule
from harness.rules.subjects import failed, request_subject
from harness.rules.telling import Member, member, several, whole, wrong
from harness.rules.verdict import Level
from harness.spec.errors import SchemaError
from harness.trace.frame import Frame, Kind

# So many schema errors are written out in one finding.
SHOWN_ERRORS = 3


def cited(errors: list[SchemaError]) -> tuple[str, ...]:
    """The requirements that the errors speak of: for each the nearest, without repetition."""
    return tuple(dict.fromkeys(error.clauses[0] for error in errors if error.clauses))


def misshapen(
    subject: str, frames: tuple[Frame, ...], payload: Member, errors: list[SchemaError]
) -> Violation:
    """The finding about a payload from the book's schema errors: the first few, by their paths."""
    misfits = [(payload.part(*error.path), error.expected) for error in errors]
    found = several(subject, frames, misfits[:SHOWN_ERRORS], clauses=cited(errors))
    more = len(errors) - SHOWN_ERRORS
    return replace(found, actual=f"{found.actual} (and {more} more)") if more > 0 else found


@rule("shape.response", title="Results have the shape of their method", level=Level.MUST)
class ResponseShape(Monitor):
    """Judges each successful answer to a method of the book against that method's result schema.

    Left open: methods that the book does not know, results that are not shown, answers that report
    failure, and results that are no object at all (frame.well-formed speaks of those).
    """

    @on_kind(Kind.RESPONSE)
    def answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        result = frame.result
        if request is None or failed(frame) or not isinstance(result, dict):
            return None
        if self.book.method(request.method) is None:
            return None
        errors = self.book.validate_result(request.method, result)
        if not errors:
            return [Witness(f"result of {request.method}", (frame,))]
        frames = (request, frame)
        return [misshapen(request_subject(request), frames, member(frame), errors)]


@rule("shape.notification", title="Notifications have the shape of their method", level=Level.MUST)
class NotificationShape(Monitor):
    """Judges the params of each notification of the book against its schema ("Events").

    Left open: methods that the book does not know, payloads that are not shown, and params that
    are no object at all (frame.well-formed speaks of those).
    """

    def begin(self) -> None:
        self._unknown: set[str] = set()
        self._witnessed: set[str] = set()

    @on_kind(Kind.NOTIFICATION)
    def notification(self, frame: Frame) -> Outcomes:
        method = frame.json["method"]
        if method in self._witnessed:
            if self.book.is_valid_event(method, frame.json.get("params", {})):
                return None
        elif method in self._unknown:
            return None
        return self._look(frame, method)

    def _look(self, frame: Frame, method: str) -> Outcomes:
        if self.book.event(method) is None:
            self._unknown.add(method)
            return None
        params = frame.params
        if not isinstance(params, dict):
            return None
        errors = self.book.validate_event(method, params)
        if errors:
            return [misshapen(f"notification {method}", (frame,), member(frame), errors)]
        if not self.setup:
            self._witnessed.add(method)
        return [Witness(f"notification {method}", (frame,))]


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
