"""Rules on unsubscribing and unloading: the answer to thread/unsubscribe, and thread/closed.

The specification does not say who becomes a subscriber, only that a client can unsubscribe. A
client that started, resumed or forked a thread counts as one; any other may be one too. The payload
of thread/closed is not shown: a message without a thread id may be about any thread.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Final

from harness.judge.base import Monitor, Outcomes, Witness, on, on_answer, rule
from harness.judge.rules.shared.announced_requests import AnnouncedRequests
from harness.judge.rules.shared.state_tracking import COMPLETED
from harness.judge.rules.shared.subscriptions import (
    UNSUBSCRIBE,
    Exchanges,
    Followers,
    closings,
    followers,
    last_opening,
    thread_of_request,
)
from harness.judge.rules.shared.view_queries import is_failure, request_subject
from harness.judge.rules.shared.violations import member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame
from harness.trace.marks import Leaving
from harness.trace.order import came_before, came_between, marked_before
from harness.trace.views import ThreadView

CLOSED: Final = "thread/closed"
LOADED_LIST: Final = "thread/loaded/list"
# Requests after which a thread may be loaded, or unloaded, for another reason.
RELOADING: Final = tuple(m for m in methods_with("may-reload") if m != UNSUBSCRIBE)
# All requests that may load or unload a thread.
_LOADING: Final = (*RELOADING, *methods_with("may-work-outside-turns"), "thread/fork", "turn/start")
# The statuses of an answer after which its client does not follow the thread.
_LEFT: Final = ("unsubscribed", "notSubscribed")


@rule(
    "loading.closed-told",
    title="A thread is closed after its last subscriber left",
    level=Level.MUST,
    needs=("subscription",),
)
class ClosedTold(AnnouncedRequests):
    """Judges, at the end of a quiescent trace, that thread/closed followed the last unsubscribe.

    Judged after a thread/unsubscribe that was answered `unsubscribed`, for a thread that its sender
    had started, resumed or forked and no other client followed. Since no subscribers remain,
    thread/closed must go to some connected client; which one, and whether it comes before the
    answer, is open. The same after each resume. SHOULD if another client has not unsubscribed: it
    may be subscribed without a request. Left open: threads that had a turn at the unsubscribe
    (which may continue silently), that were archived since they were opened, that were reopened or
    given a turn afterwards, unless a list or a status had shown them as not loaded before, or that
    were followed by a client that the harness disconnected.
    """

    notification = CLOSED

    def is_due(self, exchanges: Exchanges, request: Frame, answer: Frame) -> bool:
        if dig(answer.result, "status") != "unsubscribed":
            return False
        thread_id, here = thread_of_request(request), request.connection
        before = followers(exchanges, thread_id, request)
        if before.connections != {here} or before.disconnected:
            return False
        opened = last_opening(exchanges, here, thread_id, request)
        if opened is None or any(
            came_before(opened, closed) for closed in closings(exchanges, thread_id, before=request)
        ):
            return False
        if not all_turns_ended(self.conversation.thread(thread_id), request):
            return False
        requests = [frame for frame in exchanges.requests(*_LOADING) if _concerns(frame, thread_id)]
        requests = [frame for frame in requests if came_before(opened, frame)]
        if any(_stores(frame) and came_before(frame, request) for frame in requests):
            return False
        later = [frame for frame in requests if came_before(request, frame)]
        return not later or _was_unloaded(exchanges, thread_id, answer, later[0])

    def level_of(self, exchanges: Exchanges, request: Frame) -> Level | None:
        ended = {
            mark.body.connection
            for mark in self.trace.marks_of(Leaving)
            if marked_before(mark, request)
        }
        other_clients = (
            {frame.connection for frame in self.trace.frames} - ended - {request.connection}
        )
        left_clients = {
            other.connection
            for other in exchanges.requests(UNSUBSCRIBE, before=request)
            if thread_of_request(other) == thread_of_request(request)
            and dig(getattr(exchanges.answer_of(other), "result", None), "status") in _LEFT
        }
        return None if other_clients <= left_clients else Level.SHOULD

    @on_answer(UNSUBSCRIBE)
    def on_unsubscribe_answer(self, frame: Frame) -> Outcomes:
        return self.add_accepted(frame)

    @on(CLOSED)
    def on_closed(self, frame: Frame) -> Outcomes:
        return self.judge_until(frame)


@rule(
    "loading.kept-for-others",
    title="A thread that others still follow is not closed",
    level=Level.MUST,
    needs=("subscription",),
)
class KeptForOthers(Monitor):
    """Judges that no thread/closed comes for a thread while a client follows it.

    A finding: thread/closed names, anywhere in it, a thread that always had a follower since it was
    opened: a connected client that started, resumed or forked it, and did not unsubscribe. The same
    after a resume of an unsubscribed thread, if it had been reported as closed, or if a turn was
    active from before the unsubscribe to after the resume and completed. thread/closed says that no
    subscribers are left. A witness needs a client that unsubscribed while another one
    followed. Left open: threads that a client archived, and messages without a thread id.
    """

    @on(CLOSED)
    def on_closed(self, frame: Frame) -> Outcomes:
        exchanges = Exchanges(self.trace, frame)
        for thread_id in exchanges.threads_named_in(frame):
            sent = exchanges.requests("thread/archive", before=frame)
            if any(_concerns(request, thread_id) for request in sent):
                continue
            now = followers(exchanges, thread_id, frame)
            if now.connections and (
                now.unbroken
                or _was_closed_and_reopened(exchanges, thread_id, now, frame)
                or self._stayed_loaded(exchanges, thread_id, now, frame)
            ):
                who, subject = ", ".join(sorted(now.connections)), f"thread {thread_id}"
                expected = f"no {CLOSED} of {subject}, since connection {who} follows it"
                yield unexpected_member(subject, (frame,), member(frame), expected)

    def _stayed_loaded(
        self, exchanges: Exchanges, thread_id: str, now: Followers, closed: Frame
    ) -> bool:
        """Return whether one turn was active from before all unsubscribes to after a resume.

        The turn completed before `closed`, so the thread was never unloaded in between.
        """
        opened = last_opening(exchanges, closed.connection, thread_id, closed)
        answer = exchanges.answer_of(opened) if opened is not None else None
        requests = exchanges.requests(UNSUBSCRIBE, before=closed)
        left = [request for request in requests if _concerns(request, thread_id)]
        if closed.connection not in now.connections or now.disconnected or not left:
            return False
        return answer is not None and any(
            came_before(turn.starts[0], left[0])
            and came_between(answer, turn.completions[0], closed)
            for turn in self.conversation.thread(thread_id).turns.values()
            if turn.starts and turn.status == COMPLETED
        )

    def finish(self) -> Outcomes:
        exchanges = Exchanges(self.trace)
        for request in exchanges.requests(UNSUBSCRIBE):
            answer, thread_id = exchanges.answer_of(request), thread_of_request(request)
            if answer is None or is_failure(answer) or not thread_id:
                continue
            other_followers = followers(exchanges, thread_id, answer).connections
            is_own = self.conversation.request_of(answer) is request
            before = followers(exchanges, thread_id, request).connections
            if not is_own or request.connection not in before or not other_followers:
                continue
            if not closings(exchanges, thread_id):
                yield Witness(f"thread {thread_id}", (request, answer))


@rule(
    "unsubscribe.words",
    title="thread/unsubscribe answers with the fitting status",
    level=Level.SHOULD,
    needs=("subscription",),
)
class UnsubscribeWords(Monitor):
    """Judges the status in the answer to thread/unsubscribe, if only some words can be right.

    `unsubscribed` for a client that opened the thread and follows it; after its own unsubscribe was
    answered, `notSubscribed` while another client follows the thread, and either that or
    `notLoaded` if no client does. The specification lists the three words without explanation:
    SHOULD. Left open: clients that opened nothing, since a server may subscribe them by itself;
    threads that were archived or closed; requests sent before an earlier one was answered.
    """

    @on_answer(UNSUBSCRIBE)
    def on_unsubscribe_answer(self, frame: Frame) -> Outcomes:
        request, word = self.conversation.request_of(frame), text(dig(frame.result, "status"))
        if request is None or is_failure(frame) or not word:
            return
        fits = self._possible_words(Exchanges(self.trace, frame), request, frame)
        if not fits:
            return
        frames = (request, frame)
        if word in fits:
            yield Witness(request_subject(request), frames)
        else:
            expected = " or ".join(f'"{fitting_word}"' for fitting_word in fits)
            yield wrong(request_subject(request), frames, member(frame, "status"), expected)

    def _possible_words(
        self, exchanges: Exchanges, request: Frame, answer: Frame
    ) -> tuple[str, ...]:
        """Return the words that can be right, () if any can."""
        thread_id = thread_of_request(request)
        before = exchanges.accepted_before(request, answer, UNSUBSCRIBE)
        if not thread_id or before is None:
            return ()
        loading = list(exchanges.requests(*_LOADING, before=answer))
        opened = last_opening(exchanges, request.connection, thread_id, request)
        since = [frame for frame in loading if opened is None or came_before(opened, frame)]
        if any(_stores(frame) and _concerns(frame, thread_id) for frame in since):
            return ()
        now = followers(exchanges, thread_id, request)
        if opened is not None and request.connection in now.connections:
            closed = closings(exchanges, thread_id, before=answer)
            late = any(came_before(opened, frame) for frame in closed)
            return () if late else ("unsubscribed",)
        own_requests = [frame for frame in before if frame.connection == request.connection]
        if not own_requests or now.disconnected:
            return ()
        if any(
            _concerns(frame, thread_id) and came_before(own_requests[-1], frame)
            for frame in loading
        ):
            return ()
        if now.connections and now.unbroken:
            return ("notSubscribed",)
        return ("notSubscribed", "notLoaded")


def all_turns_ended(thread: ThreadView, request: Frame) -> bool:
    """Return whether every known turn of a thread had ended when a request was sent."""
    return all(
        any(came_before(end, request) for end in turn.completions)
        for turn in thread.turns.values()
        if any(came_before(start, request) for start in (turn.request, *turn.starts) if start)
    )


def _was_unloaded(exchanges: Exchanges, thread_id: str, answer: Frame, reopening: Frame) -> bool:
    """Return whether a list or a status showed, between two messages, that a thread is unloaded."""
    for frame in exchanges.frames:
        if not came_before(answer, frame) or not came_before(frame, reopening):
            continue
        if frame.method == "thread/status/changed":
            params = obj(frame.params)
            is_unloaded = dig(params, "status", "type") == "notLoaded"
            if is_unloaded and params.get("threadId") == thread_id:
                return True
            continue
        request = exchanges.request_of(frame)
        if request is None or request.method != LOADED_LIST or not came_before(answer, request):
            continue
        is_whole = not obj(request.params) and dig(frame.result, "nextCursor") is None
        thread_ids = dig(frame.result, "data")
        if is_whole and isinstance(thread_ids, list) and thread_id not in thread_ids:
            return True
    return False


def _was_closed_and_reopened(
    exchanges: Exchanges, thread_id: str, now: Followers, closed: Frame
) -> bool:
    """Return whether a thread/closed had come for each unsubscription before a follower's opening.

    Then a later one cannot be a late one.
    """
    for connection in now.connections:
        opened = last_opening(exchanges, connection, thread_id, closed)
        if opened is None:
            continue
        left = [
            frame
            for frame in exchanges.requests(UNSUBSCRIBE, before=opened)
            if _concerns(frame, thread_id)
        ]
        reported = [
            frame
            for frame in closings(exchanges, thread_id, before=opened)
            if frame.connection == closed.connection
        ]
        if left and len(reported) >= len(left):
            return True
    return False


def _concerns(request: Frame, thread_id: str) -> bool:
    """Return whether a request is about a thread, or has no thread id."""
    return thread_of_request(request) in ("", thread_id)


def _stores(request: Frame) -> bool:
    return request.method in ("thread/archive", "thread/unarchive")
