"""Rules on leaving and unloading: what thread/unsubscribe answers, and thread/closed.

The text does not say who becomes a subscriber, only that one can leave. Who started, resumed or
forked a thread is taken for one; any other client may be one too. The payload of thread/closed is
not shown: a message that names no thread can be about any.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Final

from harness.judge.base import Monitor, Outcomes, Witness, on, on_answer, rule
from harness.judge.rules.shared.subscriptions import (
    UNSUBSCRIBE,
    Exchanges,
    closings,
    followers,
    thread_of_request,
)
from harness.judge.rules.shared.telling_requests import TellingRequests
from harness.judge.rules.shared.view_queries import failed, request_subject
from harness.judge.rules.shared.violations import instead, member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import dig, text
from harness.trace.frame import Frame
from harness.trace.marks import Closed
from harness.trace.order import came_before, marked_before
from harness.trace.views import ThreadView

CLOSED: Final = "thread/closed"
# Requests after which a thread may be loaded, or unloaded, for another reason.
RELOADING: Final = tuple(m for m in methods_with("may-reload") if m != UNSUBSCRIBE)
# All that may load a thread, or unload it.
_LOADING: Final = (*RELOADING, *methods_with("may-work-outside-turns"), "thread/fork", "turn/start")
# The words of an answer that say that its client does not follow the thread from then on.
_LEFT: Final = ("unsubscribed", "notSubscribed")


@rule(
    "loading.closed-told",
    title="A thread that its last subscriber left is unloaded, which is told",
    level=Level.MUST,
    needs=("subscription",),
)
class ClosedTold(TellingRequests):
    """Judges, at the end of a quiescent trace, that thread/closed came after the last one left.

    After a thread/unsubscribe that was answered `unsubscribed`, of a thread that its sender had
    started, resumed or forked and that nobody else followed. As nobody follows the thread any more,
    thread/closed cannot be meant for subscribers: some client that is connected must get it, which
    one is open, and so is whether that is before the answer. SHOULD where another client is there
    that has not left the thread: whether it was a subscriber unasked is open. Left open: threads
    that had a turn when they were left (which may go on, untold), that were archived, opened again
    or given a turn afterwards, or followed by a client that we disconnected.
    """

    told = CLOSED

    def owes(self, exchanges: Exchanges, request: Frame, answer: Frame) -> bool:
        if dig(answer.result, "status") != "unsubscribed":
            return False
        thread_id, here = thread_of_request(request), request.connection
        before = followers(exchanges, thread_id, request)
        if before.connections != {here} or before.gone:
            return False
        if closings(exchanges, thread_id, before=request):
            return False
        if not all_turns_ended(self.conversation.thread(thread_id), request):
            return False
        about = [one for one in exchanges.sent(*_LOADING) if _about(one, thread_id)]
        return not any(_stores(one) or came_before(request, one) for one in about)

    def level_of(self, exchanges: Exchanges, request: Frame) -> Level | None:
        ended = {
            mark.body.connection
            for mark in self.trace.marks_of(Closed)
            if marked_before(mark, request)
        }
        others = {frame.connection for frame in self.trace.frames} - ended - {request.connection}
        left = {
            other.connection
            for other in exchanges.sent(UNSUBSCRIBE, before=request)
            if thread_of_request(other) == thread_of_request(request)
            and dig(getattr(exchanges.answer_of(other), "result", None), "status") in _LEFT
        }
        return None if others <= left else Level.SHOULD

    @on_answer(UNSUBSCRIBE)
    def on_unsubscribe_answer(self, frame: Frame) -> Outcomes:
        return self.accepted(frame)

    @on(CLOSED)
    def on_closed(self, frame: Frame) -> Outcomes:
        return self.came(frame)


@rule(
    "loading.kept-for-others",
    title="A thread that others still follow is not closed",
    level=Level.MUST,
    needs=("subscription",),
)
class KeptForOthers(Monitor):
    """Judges that no thread/closed comes of a thread while a client follows it.

    A finding: thread/closed names, anywhere in it, a thread that was followed without a gap
    since it was opened: by a client that started, resumed or forked it, did not ask to leave it and
    is connected. thread/closed says that no subscribers are left. A witness needs a client that
    left while another one followed. Left open: threads that somebody archived, and messages in
    which no thread is named.
    """

    @on(CLOSED)
    def on_closed(self, frame: Frame) -> Outcomes:
        exchanges = Exchanges(self.trace, frame)
        for thread_id in exchanges.threads_named_in(frame):
            sent = exchanges.sent("thread/archive", before=frame)
            if any(_about(one, thread_id) for one in sent):
                continue
            now = followers(exchanges, thread_id, frame)
            if now.connections and now.unbroken:
                who, subject = ", ".join(sorted(now.connections)), f"thread {thread_id}"
                expected = f"no {CLOSED} of {subject}, since connection {who} follows it"
                yield instead(subject, (frame,), member(frame), expected)

    def finish(self) -> Outcomes:
        exchanges = Exchanges(self.trace)
        for request in exchanges.sent(UNSUBSCRIBE):
            answer, thread_id = exchanges.answer_of(request), thread_of_request(request)
            if answer is None or failed(answer) or not thread_id:
                continue
            others = followers(exchanges, thread_id, answer).connections
            mine = self.conversation.request_of(answer) is request
            before = followers(exchanges, thread_id, request).connections
            if not mine or request.connection not in before or not others:
                continue
            if not closings(exchanges, thread_id):
                yield Witness(f"thread {thread_id}", (request, answer))


@rule(
    "unsubscribe.words",
    title="thread/unsubscribe answers by the word that fits",
    level=Level.SHOULD,
    needs=("subscription",),
)
class UnsubscribeWords(Monitor):
    """Judges the status in the answer to thread/unsubscribe, where only some words can be right.

    `unsubscribed` to a client that opened the thread and follows it; after its own leaving was
    answered, another word: `notSubscribed` while another client follows the thread, and either of
    the two others where nobody does. The text lists the three words and does not explain them:
    SHOULD. Left open: clients that opened nothing, since a server may subscribe them unasked;
    threads that were archived or closed; requests sent before an earlier one was answered.
    """

    @on_answer(UNSUBSCRIBE)
    def on_unsubscribe_answer(self, frame: Frame) -> Outcomes:
        request, word = self.conversation.request_of(frame), text(dig(frame.result, "status"))
        if request is None or failed(frame) or not word:
            return
        fits = self._fitting(Exchanges(self.trace, frame), request, frame)
        if not fits:
            return
        frames = (request, frame)
        if word in fits:
            yield Witness(request_subject(request), frames)
        else:
            expected = " or ".join(f'"{one}"' for one in fits)
            yield wrong(request_subject(request), frames, member(frame, "status"), expected)

    def _fitting(self, exchanges: Exchanges, request: Frame, answer: Frame) -> tuple[str, ...]:
        """The words that can be right, empty where any can."""
        thread_id = thread_of_request(request)
        before = exchanges.accepted_before(request, answer, UNSUBSCRIBE)
        if not thread_id or before is None:
            return ()
        loading = list(exchanges.sent(*_LOADING, before=answer))
        if any(_stores(one) and _about(one, thread_id) for one in loading):
            return ()
        now = followers(exchanges, thread_id, request)
        if request.connection in now.connections:
            closed = closings(exchanges, thread_id, before=answer)
            return () if closed else ("unsubscribed",)
        mine = [one for one in before if one.connection == request.connection]
        if not mine or now.gone:
            return ()
        if any(_about(one, thread_id) and came_before(mine[-1], one) for one in loading):
            return ()
        if now.connections and now.unbroken:
            return ("notSubscribed",)
        return ("notSubscribed", "notLoaded")


def all_turns_ended(thread: ThreadView, request: Frame) -> bool:
    """Return whether no turn of a thread that a client knows of was in progress at a
    request of it.
    """
    return all(
        any(came_before(end, request) for end in turn.completed)
        for turn in thread.turns.values()
        if any(came_before(one, request) for one in (turn.request, *turn.started) if one)
    )


def _about(request: Frame, thread_id: str) -> bool:
    """Return whether a request is about a thread, or does not say about which."""
    return thread_of_request(request) in ("", thread_id)


def _stores(request: Frame) -> bool:
    return request.method in ("thread/archive", "thread/unarchive")
