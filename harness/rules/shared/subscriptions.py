"""Who follows a thread, and whether a client was told of something, over all connections.

Here: what each connection asked for and was given, up to a message; and the notifications that may
be about a thread. Not here: any rule, and what is owed on a connection (trace.owed).

The text says that a thread has subscribers and that a client can leave it, and not who becomes a
subscriber. Who started, resumed or forked a thread certainly follows it until it leaves; any other
client may. Nor does the text say who gets which notification: what must be emitted has been told
once any connection got it.
"""

from collections.abc import Iterator
from typing import Final

from harness.trace.correlation import Correlation
from harness.trace.frame import Frame, Kind
from harness.trace.marks import Closed, StepBegins
from harness.trace.order import came_before, marked_before
from harness.trace.trace import Trace
from harness.trace.values import dig, obj, text
from harness.trace.views import OPENING

UNSUBSCRIBE: Final = "thread/unsubscribe"
# Steps after which the server is another process, which nobody follows anything in.
_ANEW: Final = ("restart", "kill")


class Exchanges:
    """The requests of all clients of a trace up to now, with their first answers.

    Made anew whenever it is asked for: only requests that are rare need it.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._correlation = Correlation(trace.frames)

    def sent(self, *methods: str, before: Frame | None = None) -> Iterator[Frame]:
        """The requests of some methods, sent before a message if one is given, in order."""
        for frame in self._trace.frames:
            if before is not None and not came_before(frame, before):
                return
            if frame.kind is Kind.REQUEST and not frame.from_target and frame.method in methods:
                yield frame

    def opened(self, thread_id: str, *, before: Frame) -> bool:
        """Whether some client was given a thread before a message."""
        for request in self.sent(*OPENING, before=before):
            answer = self.answer_of(request)
            given = answer is not None and text(dig(answer.result, "thread", "id")) == thread_id
            if answer is not None and given and came_before(answer, before):
                return True
        return False

    def answer_of(self, request: Frame) -> Frame | None:
        """The first answer to a request, None while there is none."""
        return self._correlation.answer_of(request)

    def request_of(self, answer: Frame) -> Frame | None:
        """The request that an answer belongs to, None for an answer to nothing."""
        return self._correlation.request_of(answer)


def thread_of_request(request: Frame) -> str:
    """The thread that a request names, "" for none."""
    return text(obj(request.params).get("threadId"))


def may_be_about(told: Frame, thread_id: str) -> bool:
    """Whether a notification can be about a thread: it names that one, or none."""
    named = told_thread(told)
    return named in ("", thread_id)


def told_thread(told: Frame) -> str:
    """The thread that a notification names, "" where it names none."""
    params = obj(told.params)
    return text(params.get("threadId")) or text(dig(params, "thread", "id"))


def told_after(
    trace: Trace, method: str, request: Frame, *, until: Frame | None = None
) -> list[Frame]:
    """The notifications that may be due to a request about a thread, on any connection.

    They came after the request was sent, not after `until` if that is given, and can be about the
    thread of the request.
    """
    thread_id = thread_of_request(request)
    return [
        frame
        for frame in trace.frames
        if frame.kind is Kind.NOTIFICATION
        and frame.from_target
        and frame.method == method
        and came_before(request, frame)
        and (until is None or not came_before(until, frame))
        and may_be_about(frame, thread_id)
    ]


def followers(trace: Trace, exchanges: Exchanges, thread_id: str, at: Frame) -> set[str]:
    """The connections that certainly follow a thread when a message is sent or received.

    They were given the thread before, by the process that runs then, and have neither asked to
    leave it since nor been ended.
    """
    anew = [mark for mark in trace.marks_of(StepBegins) if mark.body.name in _ANEW]
    followed: set[str] = set()
    for frame in trace.frames:
        if not came_before(frame, at):
            break
        while anew and marked_before(anew[0], frame):
            anew.pop(0)
            followed.clear()
        if frame.kind is Kind.RESPONSE and frame.from_target:
            request = exchanges.request_of(frame)
            opens = request is not None and request.method in OPENING
            if opens and text(dig(frame.result, "thread", "id")) == thread_id:
                followed.add(frame.connection)
        elif _leaves(frame, thread_id):
            followed.discard(frame.connection)
    ended = {m.body.connection for m in trace.marks_of(Closed) if marked_before(m, at)}
    return followed - ended


def _leaves(frame: Frame, thread_id: str) -> bool:
    """Whether a message is a client's request to leave a thread, or one that does not say which."""
    asks = frame.kind is Kind.REQUEST and frame.method == UNSUBSCRIBE
    return asks and thread_of_request(frame) in ("", thread_id)
