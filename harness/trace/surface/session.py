"""The session protocol: JSON-RPC messages over a connection to a server."""

from typing import Any

from harness.protocol.spec.book import Book
from harness.trace.frame import Direction, Frame, Kind, Origin, classify
from harness.trace.owed_on_connections import OwedOnConnections
from harness.trace.surface.base import Topic, Topics
from harness.trace.views import Conversation

# A server may make up method names without end; the topics of this many are remembered.
MAX_METHODS = 500

_HARNESS: Topic = ("own", "")


class Session:
    """The surface `session`. Subjects are threads, turns, items, requests.

    Topics: ("method", name) for notifications and requests of the target, ("answer", method) for
    its answers, ("kind", kind) for all that it writes; ("sent", method) for requests of the
    harness, ("own", "") for all that the harness writes.
    """

    name = "session"

    def __init__(self) -> None:
        self._notified: dict[str, Topics] = {}

    def classify(self, value: Any, direction: Direction) -> Kind:
        """The form of a JSON-RPC message."""
        return classify(value)

    def view(self) -> Conversation:
        """Threads, turns, items, and which request an answer answers."""
        return Conversation()

    def ledgers(self) -> OwedOnConnections:
        """Answers, and the notifications that follow from requests and notifications."""
        return OwedOnConnections()

    def topics_of(self, frame: Frame, view: Conversation, book: Book) -> Topics:
        """By the method of a message; that of an answer is its request's."""
        if frame.origin is Origin.HARNESS:
            asks = frame.kind is Kind.REQUEST
            return (_HARNESS, ("sent", frame.method)) if asks else (_HARNESS,)
        if frame.kind is Kind.NOTIFICATION:
            return self._of_notification(frame.method)
        kind: Topic = ("kind", str(frame.kind))
        if frame.kind is Kind.REQUEST:
            # A notification with an id is none (method.right-form), and no view has it as one.
            known = book.event(frame.method) is not None
            return (kind,) if known else (kind, ("method", frame.method))
        asked = view.request_of(frame) if frame.direction is Direction.FROM_TARGET else None
        return (kind,) if asked is None else (kind, ("answer", asked.method))

    def _of_notification(self, method: str) -> Topics:
        """Most messages are notifications, so theirs are made once per method."""
        topics = self._notified.get(method)
        if topics is None:
            topics = (("kind", str(Kind.NOTIFICATION)), ("method", method))
            if len(self._notified) < MAX_METHODS:
                self._notified[method] = topics
        return topics
