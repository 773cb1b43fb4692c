"""Rules on thread/loaded/list: the ids in it are those of the threads in memory."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.subscriptions import (
    UNSUBSCRIBE,
    Exchanges,
    closings,
    followers,
    thread_of_request,
)
from harness.judge.rules.shared.violations import instead, member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.order import came_before

LOADED_LIST: Final = "thread/loaded/list"
# Requests that may move a thread into memory or out of it in a way that nobody tells.
UNLOADING: Final = tuple(
    method
    for method in (*methods_with("may-reload"), *methods_with("leaves-thread"))
    if method not in (UNSUBSCRIBE, "thread/resume")
)
# What leaves a thread that is not loaded as it is; anything else may load it.
_HARMLESS: Final = ("thread/read", "thread/list", LOADED_LIST, UNSUBSCRIBE)


@dataclass(slots=True)
class _Listing:
    """A list that is being read page by page: its first request, and the ids so far."""

    first: Frame
    ids: list[str]
    pages: list[Frame]


@rule(
    "loaded.lists-loaded",
    title="The threads that are listed as loaded are those in memory",
    level=Level.MUST,
    needs=("subscription",),
)
class ListsLoaded(Monitor):
    """Judges whole lists of thread/loaded/list: all pages, up to the one without a cursor.

    A thread must be in it that was started, resumed or forked before the first page was asked for
    and followed until the last one came by a client that did not ask to leave it. A thread must not
    be in any page that was told here to be closed before that page was asked for, if nobody sent a
    request about it since it was left. Left open: every other thread, also those that were
    archived or told to be closed or notLoaded for another reason; order and repetition.
    """

    def begin(self) -> None:
        self._by_cursor: dict[str, _Listing] = {}

    @on_answer(LOADED_LIST)
    def on_loaded_list_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        exchanges = Exchanges(self.trace, frame)
        yield from self._without_closed(exchanges, request, frame)
        listing = self._listing(request)
        if listing is None:
            return
        listing.ids += [text(one) for one in arr(dig(frame.result, "data"))]
        listing.pages.append(frame)
        cursor = dig(frame.result, "nextCursor")
        if isinstance(cursor, str):
            self._by_cursor[cursor] = listing
        elif cursor is None:
            yield from self._with_loaded(exchanges, listing)

    def _listing(self, request: Frame) -> _Listing | None:
        """The list that a request begins or goes on with, None for an unknown cursor."""
        cursor = obj(request.params).get("cursor")
        if cursor is None:
            return _Listing(request, [], [])
        return self._by_cursor.pop(text(cursor), None)

    def _with_loaded(self, exchanges: Exchanges, listing: _Listing) -> Iterator[Outcome]:
        last = listing.pages[-1]
        for thread_id in self._certainly_loaded(exchanges, listing.first, last):
            subject, frames = f"thread {thread_id}", (listing.first, *listing.pages)
            if thread_id in listing.ids:
                yield Witness(subject, frames)
            else:
                why = "followed by a client that did not leave it"
                expected = f"{thread_id} among the threads in memory, since it is {why}"
                yield instead(subject, frames, member(last, "data"), expected)

    def _certainly_loaded(self, exchanges: Exchanges, first: Frame, last: Frame) -> list[str]:
        found: list[str] = []
        for thread_id in exchanges.threads():
            before = followers(exchanges, thread_id, first)
            now = followers(exchanges, thread_id, last)
            if not before.connections or not now.connections or not now.unbroken:
                continue
            asked = exchanges.sent(*UNLOADING, before=last)
            if any(thread_of_request(one) in ("", thread_id) for one in asked):
                continue
            if closings(exchanges, thread_id, before=last):
                continue
            statuses = self.conversation.thread(thread_id).statuses
            if not any(dig(one.params, "status", "type") == "notLoaded" for one in statuses):
                found.append(thread_id)
        return found

    def _without_closed(
        self, exchanges: Exchanges, request: Frame, page: Frame
    ) -> Iterator[Outcome]:
        for at, listed in enumerate(arr(dig(page.result, "data"))):
            closed = self._closed(exchanges, text(listed), request, page)
            if closed is not None:
                where, subject = member(page, "data", at), f"thread {listed}"
                also = (member(closed),)
                expected = "no thread that was closed before"
                yield wrong(subject, (closed, request, page), where, expected, also=also)
        for thread_id in exchanges.threads():
            closed = self._closed(exchanges, thread_id, request, page)
            if closed is not None and thread_id not in arr(dig(page.result, "data")):
                yield Witness(f"thread {thread_id}", (closed, request, page))

    def _closed(
        self, exchanges: Exchanges, thread_id: str, request: Frame, page: Frame
    ) -> Frame | None:
        """The thread/closed after which a thread certainly is not in memory, None for none."""
        told = [
            one
            for one in closings(exchanges, thread_id, before=request)
            if one.connection == request.connection and thread_id in exchanges.threads_named_in(one)
        ]
        left = [
            one
            for one in exchanges.sent(UNSUBSCRIBE, before=request)
            if thread_of_request(one) == thread_id
        ]
        if not told or not left or not came_before(left[-1], told[-1]):
            return None
        for other in exchanges.sent_any(before=page):
            about = thread_of_request(other) == thread_id and other.method not in _HARMLESS
            if about and came_before(left[0], other):
                return None
        return told[-1]
