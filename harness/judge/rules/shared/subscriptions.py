"""Followers of a thread, and whether a client was told of something, over all connections.

The text says that a thread has subscribers and that a client can leave it, and not who becomes a
subscriber. Who started or resumed a thread certainly follows it until it leaves, and who forked one
that the answer showed as loaded: of a fork the text says only that it has a new id, a copy of the
history, and is told. Any other client may follow it. Nor does the text say who gets which
notification: what must be emitted has been told once any connection got it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from harness.judge.rules.shared.view_queries import failed
from harness.protocol.values import arr, dig, obj, text
from harness.trace.correlation import Correlation
from harness.trace.frame import Frame, Kind
from harness.trace.marks import Closed, MarkBody, StepBegins
from harness.trace.order import came_before, marked_before
from harness.trace.trace import Trace
from harness.trace.views import OPENING

UNSUBSCRIBE: Final = "thread/unsubscribe"
# Steps after which the server is another process, which nobody follows anything in.
_ANEW: Final = ("restart", "kill")


class Exchanges:
    """Messages on all connections of a trace, up to a message if one is given.

    Made anew whenever it is asked for: only requests that are rare need it. A rule that judges at a
    message gives that one, so that it says the same of a live stream and of a stored trace.
    """

    def __init__(self, trace: Trace, until: Frame | None = None) -> None:
        self.trace = trace
        self.frames = [
            frame for frame in trace.frames if until is None or not came_before(until, frame)
        ]
        self._correlation = Correlation(self.frames)

    def sent(self, *methods: str, before: Frame | None = None) -> Iterator[Frame]:
        """The requests of some methods, sent before a message if one is given, in order."""
        for frame in self.sent_any(before=before):
            if frame.method in methods:
                yield frame

    def sent_any(self, *, before: Frame | None = None) -> Iterator[Frame]:
        """All requests of clients, sent before a message if one is given, in order."""
        for frame in self.frames:
            if before is not None and not came_before(frame, before):
                return
            if frame.kind is Kind.REQUEST and not frame.from_target:
                yield frame

    def opened(self, thread_id: str, *methods: str, before: Frame) -> bool:
        """Return whether some client was given a thread before a message, by one of some methods.

        Without methods, by any that opens a thread.
        """
        for request in self.sent(*(methods or OPENING), before=before):
            answer = self.answer_of(request)
            given = answer is not None and text(dig(answer.result, "thread", "id")) == thread_id
            if answer is not None and given and came_before(answer, before):
                return True
        return False

    def accepted_before(
        self, request: Frame, answer: Frame, *methods: str, thread_id: str = ""
    ) -> list[Frame] | None:
        """The other requests of these methods about a thread that were accepted before a request.

        The thread is that of the request where none is given. None where it is not certain which
        came first: one that was sent before the answer had not been answered when the next one was
        sent, or names no thread.
        """
        found: list[Frame] = []
        last: Frame | None = None
        thread_id = thread_id or thread_of_request(request)
        for other in self.sent(*methods, before=answer):
            if other is request or thread_of_request(other) not in ("", thread_id):
                continue
            came = self.answer_of(other)
            if came is None or not came_before(came, request) or not thread_of_request(other):
                return None
            if last is not None and not came_before(last, other):
                return None
            last = came
            if not failed(came):
                found.append(other)
        return found

    def threads_named_in(self, told: Frame) -> list[str]:
        """The threads of the trace whose ids a message holds anywhere."""
        held = set(_texts(told.params))
        return [thread_id for thread_id in self.threads() if thread_id in held]

    def threads(self) -> dict[str, None]:
        """The ids of the threads that clients were given, in order."""
        answers = (self.answer_of(request) for request in self.sent(*OPENING))
        given = [text(dig(one.result, "thread", "id")) for one in answers if one is not None]
        return dict.fromkeys(one for one in given if one)

    def answer_of(self, request: Frame) -> Frame | None:
        """The first answer to a request, None while there is none."""
        return self._correlation.answer_of(request)

    def request_of(self, answer: Frame) -> Frame | None:
        """The request that an answer belongs to, None for an answer to nothing."""
        return self._correlation.request_of(answer)


def thread_of_request(request: Frame) -> str:
    """The thread that a request names, "" for none."""
    return text(obj(request.params).get("threadId"))


def may_be_about(exchanges: Exchanges, told: Frame, thread_id: str) -> bool:
    """Return whether a notification can be about a thread: it names that one, or none that is
    known.

    The payloads of some are not shown, so a thread may be named anywhere in it.
    """
    named = text(obj(told.params).get("threadId"))
    if named:
        return named == thread_id
    known = exchanges.threads_named_in(told)
    return not known or thread_id in known


def told_after(exchanges: Exchanges, method: str, request: Frame) -> list[Frame]:
    """The notifications that may be due to a request about a thread, on any connection.

    They came after the request was sent, and can be about the thread of the request.
    """
    told = _told(exchanges, method, thread_of_request(request))
    return [frame for frame in told if came_before(request, frame)]


def closings(exchanges: Exchanges, thread_id: str, *, before: Frame | None = None) -> list[Frame]:
    """Each thread/closed that can be about a thread, on any connection, before a message."""
    return [
        frame
        for frame in _told(exchanges, "thread/closed", thread_id)
        if before is None or came_before(frame, before)
    ]


def _told(exchanges: Exchanges, method: str, thread_id: str) -> Iterator[Frame]:
    for frame in exchanges.frames:
        told = frame.kind is Kind.NOTIFICATION and frame.from_target and frame.method == method
        if told and may_be_about(exchanges, frame, thread_id):
            yield frame


@dataclass(slots=True)
class Followers:
    """Certain followers of a thread at some moment, and what makes the past uncertain.

    `connections` were given the thread by the process that runs then, and have neither asked to
    leave it since nor been ended. `unbroken` says that at no moment since the thread was first
    opened in that process nobody followed it for certain. `gone` are those that followed it and
    were ended by the harness: whether that ends a subscription, the text does not say.
    """

    connections: set[str] = field(default_factory=set[str])
    unbroken: bool = True
    gone: set[str] = field(default_factory=set[str])


def followers(exchanges: Exchanges, thread_id: str, at: Frame) -> Followers:
    """Return who follows a thread when a message is sent or received."""
    now = Followers()
    happened = [
        mark for mark in exchanges.trace.marks if isinstance(mark.body, Closed | StepBegins)
    ]
    for frame in exchanges.frames:
        while happened and marked_before(happened[0], frame):
            now = _after(happened.pop(0).body, now)
        if not came_before(frame, at):
            return now
        if frame.kind is Kind.RESPONSE and frame.from_target:
            if _opens(exchanges.request_of(frame), frame, thread_id):
                now.connections.add(frame.connection)
        elif _leaves(frame, thread_id) and frame.connection in now.connections:
            now.connections.discard(frame.connection)
            now.unbroken = now.unbroken and bool(now.connections)
    return now


def stays(exchanges: Exchanges, connection: str, thread_id: str, after: Frame) -> bool:
    """Return whether a client goes on to follow a thread after a message, for what is due to come
    to it.

    It does so to the end, or until one more of its requests is answered.
    """
    later = [
        request
        for request in exchanges.sent_any()
        if request.connection == connection and came_before(after, request)
    ]
    left = next((request for request in later if _leaves(request, thread_id)), None)
    gone = any(mark.body.connection == connection for mark in exchanges.trace.marks_of(Closed))
    if left is None and not gone:
        return True
    answers = [exchanges.answer_of(request) for request in later if request is not left]
    came = [answer for answer in answers if answer is not None]
    return any(left is None or came_before(answer, left) for answer in came)


def _opens(request: Frame | None, answer: Frame, thread_id: str) -> bool:
    """Return whether an answer gave a client a thread that it follows from then on."""
    if request is None or request.method not in OPENING:
        return False
    shown = obj(obj(answer.result).get("thread"))
    copied = request.method == "thread/fork" and dig(shown, "status", "type") == "notLoaded"
    return text(shown.get("id")) == thread_id and not copied


def _after(body: MarkBody, now: Followers) -> Followers:
    if isinstance(body, StepBegins):
        return Followers() if body.name in _ANEW else now
    if isinstance(body, Closed) and body.connection in now.connections:
        now.connections.discard(body.connection)
        now.gone.add(body.connection)
        now.unbroken = now.unbroken and bool(now.connections)
    return now


def _leaves(frame: Frame, thread_id: str) -> bool:
    """Return whether a message is a client's request to leave a thread, or one that does not say
    which.
    """
    asks = frame.kind is Kind.REQUEST and frame.method == UNSUBSCRIBE
    return asks and thread_of_request(frame) in ("", thread_id)


def _texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value, keys apart."""
    if isinstance(value, str):
        yield value
    for inner in (*obj(value).values(), *arr(value)):
        yield from _texts(inner)
