"""Followers of a thread, and the notifications to them, over all connections.

The specification says that a thread has subscribers and that a client can unsubscribe, but not who
is subscribed. A client that started or resumed a thread certainly follows it until it leaves; so
does one that forked it, if the answer shows the fork as loaded. Any other client may follow it. It
is not said who gets which notification either, so one on any connection is enough.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from harness.judge.rules.shared.view_queries import is_failure
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import Leaving, MarkBody, StepBegins
from harness.trace.order import came_before, frames_until, marked_before
from harness.trace.trace import Trace
from harness.trace.views import OPENING_METHODS

UNSUBSCRIBE: Final = "thread/unsubscribe"
# Steps that start a new server process, without subscribers.
_ANEW: Final = ("restart", "kill")


class Exchanges:
    """Messages on all connections of a trace, up to and including `until` if it is given.

    Built anew on each use: only rare requests need it. A rule that judges at a message passes that
    message, so that it gives the same result for a live stream and a stored trace.
    """

    def __init__(self, trace: Trace, until: Frame | None = None) -> None:
        self.trace = trace
        self.frames = trace.frames if until is None else frames_until(trace, until)
        self._until = until
        self._requests = [
            frame for frame in self.frames if frame.kind is Kind.REQUEST and not frame.from_target
        ]

    def requests(self, *methods: str, before: Frame | None = None) -> Iterator[Frame]:
        """Yield the requests with some methods that were sent before a message, in order."""
        for frame in self.all_requests(before=before):
            if frame.method in methods:
                yield frame

    def all_requests(self, *, before: Frame | None = None) -> Iterator[Frame]:
        """Yield all requests of clients that were sent before a message, in order."""
        for frame in self._requests:
            if before is not None and not came_before(frame, before):
                return
            yield frame

    def was_opened(self, thread_id: str, *methods: str, before: Frame) -> bool:
        """Return whether some client opened a thread by one of `methods` before a message.

        Without methods, by any request that opens threads.
        """
        for request in self.requests(*(methods or OPENING_METHODS), before=before):
            answer = self.answer_of(request)
            is_same_thread = (
                answer is not None and text(dig(answer.result, "thread", "id")) == thread_id
            )
            if answer is not None and is_same_thread and came_before(answer, before):
                return True
        return False

    def accepted_before(
        self, request: Frame, answer: Frame, *methods: str, thread_id: str = ""
    ) -> list[Frame] | None:
        """Return the other accepted requests of these methods about a thread before a request.

        The thread defaults to that of the request. None if the order is uncertain: one that was
        sent before the answer was still unanswered when the next one was sent, or has no thread id.
        """
        accepted: list[Frame] = []
        last: Frame | None = None
        thread_id = thread_id or thread_of_request(request)
        for other in self.requests(*methods, before=answer):
            if other is request or thread_of_request(other) not in ("", thread_id):
                continue
            other_answer = self.answer_of(other)
            if (
                other_answer is None
                or not came_before(other_answer, request)
                or not thread_of_request(other)
            ):
                return None
            if last is not None and not came_before(last, other):
                return None
            last = other_answer
            if not is_failure(other_answer):
                accepted.append(other)
        return accepted

    def threads_named_in(self, notification: Frame) -> list[str]:
        """Return the opened threads whose ids are anywhere in a notification."""
        texts = set(_texts(notification.params))
        return [thread_id for thread_id in self.thread_ids() if thread_id in texts]

    def thread_ids(self) -> dict[str, None]:
        """Return the ids of the threads that clients opened, as keys in order."""
        answers = (self.answer_of(request) for request in self.requests(*OPENING_METHODS))
        thread_ids = [
            text(dig(answer.result, "thread", "id")) for answer in answers if answer is not None
        ]
        return dict.fromkeys(thread_id for thread_id in thread_ids if thread_id)

    def answer_of(self, request: Frame) -> Frame | None:
        """Return the first answer to a request, None if it is unanswered."""
        answer = self.trace.pairs.answer_of(request)
        if answer is None or self._until is None or not came_before(self._until, answer):
            return answer
        return None

    def request_of(self, answer: Frame) -> Frame | None:
        """Return the request of an answer, None if it is unknown."""
        return self.trace.pairs.request_of(answer)


def thread_of_request(request: Frame) -> str:
    """Return the thread id of a request, "" if it has none."""
    return text(obj(request.params).get("threadId"))


def may_be_about(exchanges: Exchanges, notification: Frame, thread_id: str) -> bool:
    """Return whether a notification may be about a thread: it names that one, or no known one.

    The payloads of some notifications are not specified, so the id may be anywhere in it.
    """
    named_id = text(obj(notification.params).get("threadId"))
    if named_id:
        return named_id == thread_id
    thread_ids = exchanges.threads_named_in(notification)
    return not thread_ids or thread_id in thread_ids


def notifications_after(exchanges: Exchanges, method: str, request: Frame) -> list[Frame]:
    """Return the notifications that may follow from a request, on any connection.

    They came after the request was sent and may name its thread.
    """
    notifications = _notifications(exchanges, method, thread_of_request(request))
    return [frame for frame in notifications if came_before(request, frame)]


def closings(exchanges: Exchanges, thread_id: str, *, before: Frame | None = None) -> list[Frame]:
    """Return each thread/closed that may name a thread, on any connection, before a message."""
    return [
        frame
        for frame in _notifications(exchanges, "thread/closed", thread_id)
        if before is None or came_before(frame, before)
    ]


def _notifications(exchanges: Exchanges, method: str, thread_id: str) -> Iterator[Frame]:
    for frame in exchanges.frames:
        matches = frame.kind is Kind.NOTIFICATION and frame.from_target and frame.method == method
        if matches and may_be_about(exchanges, frame, thread_id):
            yield frame


@dataclass(slots=True)
class Followers:
    """Certain followers of a thread at a moment, and the reasons for doubt about earlier moments.

    `connections` opened the thread in the process that runs then, and have neither asked to leave
    it nor been ended since. `unbroken` means that the thread had a certain follower at every moment
    since it was first opened in that process. `disconnected` followed it and were ended by the
    harness: the specification does not say whether that ends a subscription.
    """

    connections: set[str] = field(default_factory=set[str])
    unbroken: bool = True
    disconnected: set[str] = field(default_factory=set[str])


def followers(exchanges: Exchanges, thread_id: str, message: Frame) -> Followers:
    """Return the followers of a thread when a message is sent or received."""
    now = Followers()
    happened = [
        mark for mark in exchanges.trace.marks if isinstance(mark.body, Leaving | StepBegins)
    ]
    for frame in exchanges.frames:
        while happened and marked_before(happened[0], frame):
            now = _after(happened.pop(0).body, now)
        if not came_before(frame, message):
            return now
        if frame.kind is Kind.RESPONSE and frame.from_target:
            if _opens(exchanges.request_of(frame), frame, thread_id):
                now.connections.add(frame.connection)
        elif _leaves(frame, thread_id) and frame.connection in now.connections:
            now.connections.discard(frame.connection)
            now.unbroken = now.unbroken and bool(now.connections)
    return now


def last_opening(
    exchanges: Exchanges, connection: str, thread_id: str, before: Frame
) -> Frame | None:
    """Return the request by which a connection last opened a thread before a message, or None."""
    opening: Frame | None = None
    for request in exchanges.requests(*OPENING_METHODS, before=before):
        answer = exchanges.answer_of(request) if request.connection == connection else None
        if answer is not None and came_before(answer, before):
            opening = request if _opens(request, answer, thread_id) else opening
    return opening


def keeps_following(exchanges: Exchanges, connection: str, thread_id: str, after: Frame) -> bool:
    """Return whether a client follows a thread long enough to receive a message due after `after`.

    It does if it stays to the end, or if one more of its requests is answered before it leaves.
    """
    later = [
        request
        for request in exchanges.all_requests()
        if request.connection == connection and came_before(after, request)
    ]
    leaving = next((request for request in later if _leaves(request, thread_id)), None)
    gone = any(mark.body.connection == connection for mark in exchanges.trace.marks_of(Leaving))
    if leaving is None and not gone:
        return True
    answers = [exchanges.answer_of(request) for request in later if request is not leaving]
    received = [answer for answer in answers if answer is not None]
    return any(leaving is None or came_before(answer, leaving) for answer in received)


def _opens(request: Frame | None, answer: Frame, thread_id: str) -> bool:
    """Return whether an answer gave a client a thread that it follows from then on."""
    if request is None or request.method not in OPENING_METHODS:
        return False
    thread = obj(obj(answer.result).get("thread"))
    copied = request.method == "thread/fork" and dig(thread, "status", "type") == "notLoaded"
    return text(thread.get("id")) == thread_id and not copied


def _after(body: MarkBody, now: Followers) -> Followers:
    if isinstance(body, StepBegins):
        return Followers() if body.name in _ANEW else now
    if isinstance(body, Leaving) and body.connection in now.connections:
        now.connections.discard(body.connection)
        now.disconnected.add(body.connection)
        now.unbroken = now.unbroken and bool(now.connections)
    return now


def _leaves(frame: Frame, thread_id: str) -> bool:
    """Return whether a message is a thread/unsubscribe of a thread, or one without its id."""
    asks = frame.kind is Kind.REQUEST and frame.method == UNSUBSCRIBE
    return asks and thread_of_request(frame) in ("", thread_id)


def _texts(value: Any) -> Iterator[str]:
    """Yield every string value in a JSON value."""
    if isinstance(value, str):
        yield value
    for inner in (*obj(value).values(), *arr(value)):
        yield from _texts(inner)
