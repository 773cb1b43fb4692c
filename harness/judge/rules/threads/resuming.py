"""Rules on thread/resume: it opens the thread that was asked for, and starts no new one."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Monitor, Outcomes, Violation, Witness, on, on_answer, rule
from harness.judge.rules.shared.state_tracking import COMPLETED
from harness.judge.rules.shared.told_turns import Told
from harness.judge.rules.shared.view_queries import SentByAnybody, failed
from harness.judge.rules.shared.violations import instead, member, refusal, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.marks import Closed, ServerEnded
from harness.trace.order import by_arrival, came_before, marked_before, received_before_sent
from harness.trace.trace import Trace
from harness.trace.views import ThreadView

# What may make that a thread cannot be resumed, or that it is announced by right.
PUTTING_AWAY = ("thread/archive", "thread/unarchive")
ANNOUNCING = tuple(one for one in methods_with("may-reload") if one != "thread/resume")


@rule(
    "resume.reopens", title="A stored thread can be resumed", level=Level.MUST, needs=("history",)
)
class Reopens(Monitor):
    """Judges that thread/resume of a thread that exists, and is not loaded, is not refused.

    A thread exists for certain, and is stored, when a turn of it was told as completed before. One
    that was started and has no such turn exists too, yet nothing of it need be stored: SHOULD, and
    INFO where its server was killed, which may write when a turn is over. It is not loaded when it
    was last told to be notLoaded, or when all clients that knew it are gone. Left open: threads
    that may be loaded (what resuming such a one does is not said), as one that this client has left
    and that is not told to be closed; threads that no message of the trace showed, ephemeral ones,
    ones that any client asked to archive, requests with a personality, which may be what is refused
    (word.taken), and requests that are wrong on purpose.
    """

    def begin(self) -> None:
        self._told = Told(self.trace, self.conversation)
        self._put_away = SentByAnybody(self.trace, *PUTTING_AWAY)

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate:
            return None
        params = obj(request.params)
        thread_id = text(params.get("threadId"))
        known = [thread for _, thread in self._told.threads(thread_id, frame)]
        ended = self._told.ended_before(thread_id, request)
        done = [turn for turn in ended if turn.status == COMPLETED]
        shown = [
            told
            for thread in known
            for told in (*thread.opened, *thread.started)
            if received_before_sent(told, request)
        ]
        if not done and not shown:
            return None
        subject = f"thread {thread_id}"
        proof = done[-1].completed[0] if done else shown[0]
        if not failed(frame):
            return [Witness(subject, (proof, frame))]
        if params.keys() - {"threadId"} or self._put_away.before(frame):
            return None
        if self._told.ephemeral(thread_id, frame) or not self._unloaded(known, request):
            return None
        expected = f"{subject}, which exists" + (" and has a turn" if done else "")
        level = None if done else Level.INFO if self._killed(proof, request) else Level.SHOULD
        return [instead(subject, (proof, frame), refusal(frame), expected, level=level)]

    def _killed(self, told: Frame, request: Frame) -> bool:
        """Return whether the server that told of something was killed before the request."""
        ends = [mark for mark in self.trace.marks_of(ServerEnded) if marked_before(mark, request)]
        after = [mark for mark in ends if not marked_before(mark, told)]
        return bool(after) and after[0].body.killed

    def _unloaded(self, known: list[ThreadView], request: Frame) -> bool:
        """Return whether the thread was not in memory when it was asked for."""
        told = [one for thread in known for one in thread.statuses]
        last = by_arrival(one for one in told if received_before_sent(one, request))[-1:]
        if last and dig(last[0].params, "status", "type") == "notLoaded":
            return True
        mine = self.conversation.threads.get(text(obj(request.params).get("threadId")))
        return (mine is None or not mine.opened) and others_gone(self.trace, request)


def others_gone(trace: Trace, request: Frame) -> bool:
    """Return whether there were other connections before a request, and the harness had ended them
    all.
    """
    over = {one.body.connection for one in trace.marks_of(Closed) if marked_before(one, request)}
    earlier = (one for one in trace.frames if came_before(one, request))
    others = {one.connection for one in earlier if one.connection != request.connection}
    return bool(others) and others <= over


@rule(
    "resume.same-thread",
    title="thread/resume returns the thread asked for",
    level=Level.MUST,
    needs=("history",),
)
class SameThread(Monitor):
    """Judges that the thread in the answer has the id of the request.

    Left open: a thread without an id (shapes), refusals, requests that name no thread.
    """

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        given = dig(frame.result, "thread", "id")
        if request is None or request.deliberate or not isinstance(given, str):
            return None
        asked = obj(request.params).get("threadId")
        if not isinstance(asked, str):
            return None
        frames = (request, frame)
        if given == asked:
            return [Witness(f"thread {asked}", frames)]
        where, also = member(frame, "thread", "id"), (member(request, "threadId"),)
        return [wrong(f"thread {asked}", frames, where, literal(asked), also=also)]


@rule(
    "resume.not-announced",
    title="A resumed thread is not announced as a new one",
    level=Level.SHOULD,
    needs=("history",),
)
class NotAnnounced(Monitor):
    """Judges that no thread/started comes for a thread after thread/resume.

    It is for threads that start or fork; that resuming is neither follows from two lists: SHOULD.
    Left open: a thread/started that may be the first of the thread's start or fork, told late; and
    threads that other requests may have opened anew since.
    """

    def begin(self) -> None:
        self._opening = SentByAnybody(self.trace, *ANNOUNCING)

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        """Judge what came before the answer."""
        thread = self.conversation.threads.get(text(dig(frame.result, "thread", "id")))
        if frame.kind is Kind.RESPONSE and thread is not None and thread.resumed:
            early = [one for one in thread.started if came_before(thread.resumed[-1], one)]
            yield from self._judge(thread, early)

    @on("thread/started")
    def on_thread_started(self, frame: Frame) -> Outcomes:
        thread = self.conversation.threads.get(text(dig(frame.params, "thread", "id")))
        if thread is not None and thread.opened and thread.resumed:
            yield from self._judge(thread, [frame])

    def finish(self) -> Outcomes:
        for thread in self.conversation.threads.values():
            resumed = [one for one in thread.opened if self._is_resume(one)]
            if resumed and thread.resumed and self._known(thread, thread.resumed[0]):
                yield Witness(thread.subject, (thread.resumed[0], resumed[0]))

    def _is_resume(self, answer: Frame) -> bool:
        request = self.conversation.request_of(answer)
        return request is not None and request.method == "thread/resume"

    def _judge(self, thread: ThreadView, told: list[Frame]) -> Iterator[Violation]:
        for frame in told:
            asked = [one for one in thread.resumed if came_before(one, frame)]
            if not asked or not self._known(thread, asked[0]):
                continue
            if any(came_before(asked[0], one) for one in self._opening.before(frame)):
                continue
            frames, places = (asked[-1], frame), (member(frame, "thread", "id").place,)
            expected = f"no thread/started for {thread.subject}, which was resumed"
            yield Violation(thread.subject, frames, expected, "one came", places=places)

    def _known(self, thread: ThreadView, request: Frame) -> bool:
        """Return whether the thread's start or fork can be told no more to this client."""
        if any(came_before(told, request) for told in thread.started):
            return True
        return not self._begun_here(thread) and others_gone(self.trace, request)

    def _begun_here(self, thread: ThreadView) -> bool:
        """Return whether this client started or forked the thread, so that it is told of that."""
        requests = map(self.conversation.request_of, thread.opened)
        return any(one is not None and one.method != "thread/resume" for one in requests)
