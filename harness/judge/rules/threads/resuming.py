"""Rules on thread/resume: it opens the requested thread, and starts no new one."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Monitor, Outcomes, Violation, Witness, on, on_answer, rule
from harness.judge.rules.shared.live_turns import LiveTurns
from harness.judge.rules.shared.state_tracking import COMPLETED
from harness.judge.rules.shared.view_queries import RequestsOfAllClients, is_failure
from harness.judge.rules.shared.violations import member, refusal_member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.marks import Leaving, ServerEnded
from harness.trace.order import by_arrival, came_before, marked_before, received_before_sent
from harness.trace.trace import Trace
from harness.trace.views import ThreadView

# Requests after which a thread may not be resumable, and those after which it may be announced.
PUTTING_AWAY = ("thread/archive", "thread/unarchive")
ANNOUNCING = tuple(method for method in methods_with("may-reload") if method != "thread/resume")


@rule(
    "resume.reopens", title="A stored thread can be resumed", level=Level.MUST, needs=("history",)
)
class Reopens(Monitor):
    """Judges that thread/resume of an existing thread that is not loaded is not rejected.

    A thread certainly exists, and is stored, if a turn of it completed before. One that was started
    and has no such turn exists too, but need not be stored: SHOULD, and INFO if its server was
    killed, since that may write at the end of a turn. It is not loaded if it was last reported as
    notLoaded, or if all clients that knew it are gone. Left open: threads that may be loaded (the
    specification does not define resuming them), such as one that this client left without a
    thread/closed; threads that no message showed, ephemeral ones, ones that any client asked to
    archive, requests with a personality, which may be the reason (word.taken), and deliberately
    wrong requests.
    """

    def begin(self) -> None:
        self._live_turns = LiveTurns(self.trace, self.conversation)
        self._archiving_requests = RequestsOfAllClients(self.trace, *PUTTING_AWAY)

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate:
            return None
        params = obj(request.params)
        thread_id = text(params.get("threadId"))
        views = [thread for _, thread in self._live_turns.thread_views(thread_id, frame)]
        ended = self._live_turns.turns_ended_before(thread_id, request)
        done = [turn for turn in ended if turn.status == COMPLETED]
        messages = [
            message
            for thread in views
            for message in (*thread.opening_answers, *thread.starts)
            if received_before_sent(message, request)
        ]
        if not done and not messages:
            return None
        subject = f"thread {thread_id}"
        proof = done[-1].completions[0] if done else messages[0]
        if not is_failure(frame):
            return [Witness(subject, (proof, frame))]
        if params.keys() - {"threadId"} or self._archiving_requests.before(frame):
            return None
        if self._live_turns.is_ephemeral(thread_id, frame) or not self._is_unloaded(views, request):
            return None
        expected = f"{subject}, which exists" + (" and has a turn" if done else "")
        level = None if done else Level.INFO if self._was_killed(proof, request) else Level.SHOULD
        return [
            unexpected_member(subject, (proof, frame), refusal_member(frame), expected, level=level)
        ]

    def _was_killed(self, message: Frame, request: Frame) -> bool:
        """Return whether the server that sent a message was killed before the request."""
        ends = [mark for mark in self.trace.marks_of(ServerEnded) if marked_before(mark, request)]
        after = [mark for mark in ends if not marked_before(mark, message)]
        return bool(after) and after[0].body.killed

    def _is_unloaded(self, views: list[ThreadView], request: Frame) -> bool:
        """Return whether the thread was not in memory when it was requested."""
        statuses = [status for thread in views for status in thread.statuses]
        last = by_arrival(status for status in statuses if received_before_sent(status, request))[
            -1:
        ]
        if last and dig(last[0].params, "status", "type") == "notLoaded":
            return True
        own_view = self.conversation.threads.get(text(obj(request.params).get("threadId")))
        return (own_view is None or not own_view.opening_answers) and are_others_gone(
            self.trace, request
        )


def are_others_gone(trace: Trace, request: Frame) -> bool:
    """Return whether there were other connections before a request, all ended by the harness."""
    closed = {
        mark.body.connection for mark in trace.marks_of(Leaving) if marked_before(mark, request)
    }
    earlier = (message for message in trace.frames if came_before(message, request))
    other_clients = {
        message.connection for message in earlier if message.connection != request.connection
    }
    return bool(other_clients) and other_clients <= closed


@rule(
    "resume.same-thread",
    title="thread/resume returns the requested thread",
    level=Level.MUST,
    needs=("history",),
)
class SameThread(Monitor):
    """Judges that the thread in the answer to thread/resume has the id of the request.

    Left open: a thread without an id (shapes), rejections, requests without a thread id.
    """

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        returned = dig(frame.result, "thread", "id")
        if request is None or request.deliberate or not isinstance(returned, str):
            return None
        requested = obj(request.params).get("threadId")
        if not isinstance(requested, str):
            return None
        frames = (request, frame)
        if returned == requested:
            return [Witness(f"thread {requested}", frames)]
        field, also = member(frame, "thread", "id"), (member(request, "threadId"),)
        return [wrong(f"thread {requested}", frames, field, literal(requested), also=also)]


@rule(
    "resume.not-announced",
    title="A resumed thread is not announced as a new one",
    level=Level.SHOULD,
    needs=("history",),
)
class NotAnnounced(Monitor):
    """Judges that no thread/started comes for a thread after thread/resume.

    It announces threads that start or fork; that resuming is neither follows from two lists:
    SHOULD. Left open: a late thread/started that may belong to the thread's start or fork; and
    threads that other requests may have reopened since.
    """

    def begin(self) -> None:
        self._opening_requests = RequestsOfAllClients(self.trace, *ANNOUNCING)

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        """Judge the notifications before the answer."""
        thread = self.conversation.threads.get(text(dig(frame.result, "thread", "id")))
        if frame.kind is Kind.RESPONSE and thread is not None and thread.resume_requests:
            early = [
                notification
                for notification in thread.starts
                if came_before(thread.resume_requests[-1], notification)
            ]
            yield from self._judge(thread, early)

    @on("thread/started")
    def on_thread_started(self, frame: Frame) -> Outcomes:
        thread = self.conversation.threads.get(text(dig(frame.params, "thread", "id")))
        if thread is not None and thread.opening_answers and thread.resume_requests:
            yield from self._judge(thread, [frame])

    def finish(self) -> Outcomes:
        for thread in self.conversation.threads.values():
            resumed = [answer for answer in thread.opening_answers if self._is_resume(answer)]
            if (
                resumed
                and thread.resume_requests
                and self._was_announced(thread, thread.resume_requests[0])
            ):
                yield Witness(thread.subject, (thread.resume_requests[0], resumed[0]))

    def _is_resume(self, answer: Frame) -> bool:
        request = self.conversation.request_of(answer)
        return request is not None and request.method == "thread/resume"

    def _judge(self, thread: ThreadView, notifications: list[Frame]) -> Iterator[Violation]:
        for frame in notifications:
            requests = [
                request for request in thread.resume_requests if came_before(request, frame)
            ]
            if not requests or not self._was_announced(thread, requests[0]):
                continue
            if any(
                came_before(requests[0], request)
                for request in self._opening_requests.before(frame)
            ):
                continue
            frames, places = (requests[-1], frame), (member(frame, "thread", "id").place,)
            expected = f"no thread/started for {thread.subject}, which was resumed"
            yield Violation(thread.subject, frames, expected, "one came", places=places)

    def _was_announced(self, thread: ThreadView, request: Frame) -> bool:
        """Return whether the thread's start or fork can no longer be announced to this client."""
        if any(came_before(notification, request) for notification in thread.starts):
            return True
        return not self._was_begun_here(thread) and are_others_gone(self.trace, request)

    def _was_begun_here(self, thread: ThreadView) -> bool:
        """Return whether this client started or forked the thread, so it gets thread/started."""
        requests = map(self.conversation.request_of, thread.opening_answers)
        return any(other is not None and other.method != "thread/resume" for other in requests)
