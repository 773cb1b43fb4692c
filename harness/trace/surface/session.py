"""The session protocol: JSON-RPC messages over a connection to a server."""

from typing import Any

from harness.protocol.spec.book import Book
from harness.trace.connection_ledgers import ConnectionLedgers
from harness.trace.frame import Direction, Frame, Kind, Origin, classify
from harness.trace.surface.base import Topic, Topics
from harness.trace.views import Conversation

# Topics are cached for at most this many methods: a server may invent names without end.
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
        self._notification_topics: dict[str, Topics] = {}

    def classify(self, value: Any, direction: Direction) -> Kind:
        """Return the form of a JSON-RPC message."""
        return classify(value)

    def view(self) -> Conversation:
        """Return an empty view of threads, turns, items and answered requests."""
        return Conversation()

    def ledgers(self) -> ConnectionLedgers:
        """Return empty ledgers of the answers and notifications that the server owes."""
        return ConnectionLedgers()

    def topics_of(self, frame: Frame, view: Conversation, book: Book) -> Topics:
        """Return the topics: the kind, and the method; an answer has its request's method."""
        if frame.origin is Origin.HARNESS:
            is_request = frame.kind is Kind.REQUEST
            return (_HARNESS, ("sent", frame.method)) if is_request else (_HARNESS,)
        if frame.kind is Kind.NOTIFICATION:
            return self._topics_of_notification(frame.method)
        kind: Topic = ("kind", str(frame.kind))
        if frame.kind is Kind.REQUEST:
            # A notification with an id is not a request (method.right-form).
            is_notification = book.event(frame.method) is not None
            return (kind,) if is_notification else (kind, ("method", frame.method))
        request = view.request_of(frame) if frame.direction is Direction.FROM_TARGET else None
        return (kind,) if request is None else (kind, ("answer", request.method))

    def _topics_of_notification(self, method: str) -> Topics:
        """Return the topics of a notification, cached by method: most messages are of this kind."""
        topics = self._notification_topics.get(method)
        if topics is None:
            topics = (("kind", str(Kind.NOTIFICATION)), ("method", method))
            if len(self._notification_topics) < MAX_METHODS:
                self._notification_topics[method] = topics
        return topics
