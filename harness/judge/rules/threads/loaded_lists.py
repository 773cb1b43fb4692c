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
    last_opening,
    thread_of_request,
)
from harness.judge.rules.shared.violations import member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.order import came_before

LOADED_LIST: Final = "thread/loaded/list"
# Requests that may silently load or unload a thread.
UNLOADING: Final = tuple(
    method
    for method in (*methods_with("may-reload"), *methods_with("leaves-thread"))
    if method not in (UNSUBSCRIBE, "thread/resume")
)
# Requests that do not load a thread; any other may.
_HARMLESS: Final = ("thread/read", "thread/list", LOADED_LIST, UNSUBSCRIBE)


@dataclass(slots=True)
class _Listing:
    """A list that is read page by page: its first request, and the ids so far."""

    first: Frame
    ids: list[str]
    pages: list[Frame]


@rule(
    "loaded.lists-loaded",
    title="thread/loaded/list lists the threads in memory",
    level=Level.MUST,
    needs=("subscription",),
)
class ListsLoaded(Monitor):
    """Judges whole lists of thread/loaded/list: all pages, up to the one without a cursor.

    A thread must be in it if it was started, resumed or forked before the first page was requested,
    and a client followed it until the last one came. A thread must not be on any page if its
    thread/closed came here before that page was requested, and no request about it was sent since
    it was last unsubscribed. Left open: every other thread, also those that were archived, or
    reported as closed or notLoaded for another reason, since they were last opened; order and
    repetition.
    """

    def begin(self) -> None:
        self._by_cursor: dict[str, _Listing] = {}

    @on_answer(LOADED_LIST)
    def on_loaded_list_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        exchanges = Exchanges(self.trace, frame)
        yield from self._judge_closed(exchanges, request, frame)
        listing = self._listing_of(request)
        if listing is None:
            return
        listing.ids += [text(listed_id) for listed_id in arr(dig(frame.result, "data"))]
        listing.pages.append(frame)
        cursor = dig(frame.result, "nextCursor")
        if isinstance(cursor, str):
            self._by_cursor[cursor] = listing
        elif cursor is None:
            yield from self._judge_loaded(exchanges, listing)

    def _listing_of(self, request: Frame) -> _Listing | None:
        """Return the list that a request begins or continues, None for an unknown cursor."""
        cursor = obj(request.params).get("cursor")
        if cursor is None:
            return _Listing(request, [], [])
        return self._by_cursor.pop(text(cursor), None)

    def _judge_loaded(self, exchanges: Exchanges, listing: _Listing) -> Iterator[Outcome]:
        last = listing.pages[-1]
        for thread_id in self._certainly_loaded(exchanges, listing.first, last):
            subject, frames = f"thread {thread_id}", (listing.first, *listing.pages)
            if thread_id in listing.ids:
                yield Witness(subject, frames)
            else:
                reason = "followed by a client that did not leave it"
                expected = f"{thread_id} among the threads in memory, since it is {reason}"
                yield unexpected_member(subject, frames, member(last, "data"), expected)

    def _certainly_loaded(self, exchanges: Exchanges, first: Frame, last: Frame) -> list[str]:
        loaded: list[str] = []
        for thread_id in exchanges.thread_ids():
            before = followers(exchanges, thread_id, first)
            now = followers(exchanges, thread_id, last)
            if not before.connections or not now.connections:
                continue
            openings = [
                opening
                for connection in before.connections & now.connections
                if (opening := last_opening(exchanges, connection, thread_id, first))
                is last_opening(exchanges, connection, thread_id, last)
            ]
            if any(
                opening is not None and self._is_always_loaded(exchanges, thread_id, opening, last)
                for opening in openings
            ) or (now.unbroken and self._is_always_loaded(exchanges, thread_id, None, last)):
                loaded.append(thread_id)
        return loaded

    def _is_always_loaded(
        self, exchanges: Exchanges, thread_id: str, opening: Frame | None, until: Frame
    ) -> bool:
        """Return whether no message says that a thread may be unloaded since its opening."""
        unloading = [
            frame
            for frame in exchanges.requests(*UNLOADING, before=until)
            if thread_of_request(frame) in ("", thread_id)
        ]
        unloading += closings(exchanges, thread_id, before=until)
        statuses = self.conversation.thread(thread_id).statuses
        unloading += [
            frame for frame in statuses if dig(frame.params, "status", "type") == "notLoaded"
        ]
        return not any(opening is None or came_before(opening, frame) for frame in unloading)

    def _judge_closed(self, exchanges: Exchanges, request: Frame, page: Frame) -> Iterator[Outcome]:
        for index, listed_id in enumerate(arr(dig(page.result, "data"))):
            closed = self._closing_message(exchanges, text(listed_id), request, page)
            if closed is not None:
                field, subject = member(page, "data", index), f"thread {listed_id}"
                also = (member(closed),)
                expected = "no thread that was closed before"
                yield wrong(subject, (closed, request, page), field, expected, also=also)
        for thread_id in exchanges.thread_ids():
            closed = self._closing_message(exchanges, thread_id, request, page)
            if closed is not None and thread_id not in arr(dig(page.result, "data")):
                yield Witness(f"thread {thread_id}", (closed, request, page))

    def _closing_message(
        self, exchanges: Exchanges, thread_id: str, request: Frame, page: Frame
    ) -> Frame | None:
        """Return the thread/closed after which a thread is certainly not in memory, else None."""
        closings_received = [
            frame
            for frame in closings(exchanges, thread_id, before=request)
            if frame.connection == request.connection
            and thread_id in exchanges.threads_named_in(frame)
        ]
        leavings = [
            frame
            for frame in exchanges.requests(UNSUBSCRIBE, before=request)
            if thread_of_request(frame) == thread_id
        ]
        if (
            not leavings
            or len(closings_received) < len(leavings)
            or not came_before(leavings[-1], closings_received[-1])
        ):
            return None
        for other in exchanges.all_requests(before=page):
            may_load = thread_of_request(other) == thread_id and other.method not in _HARMLESS
            answer = exchanges.answer_of(other)
            is_over = answer is not None and came_before(answer, leavings[-1])
            if may_load and came_before(leavings[0], other) and not is_over:
                return None
        return closings_received[-1]
