"""Rules on the pages of thread/list: their size, their content, and the division between them."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.known_threads import KnownThread
from harness.judge.rules.shared.listed_pages import ListMonitor, Pages
from harness.judge.rules.shared.view_queries import is_failure, request_subject
from harness.judge.rules.shared.violations import (
    Member,
    absent,
    member,
    refusal_member,
    unexpected_member,
    wrong,
)
from harness.judge.verdict import Level
from harness.trace.frame import Frame
from harness.trace.order import came_before

# Ids of listed threads that a finding shows.
MAX_IDS = 8
NEEDS = ("thread-list",)


@rule(
    "list.page-size",
    title="A page has at most the requested number of threads",
    level=Level.MUST,
    needs=NEEDS,
)
class PageSize(ListMonitor):
    """Judges that a page of thread/list has at most `limit` threads.

    A full page, or one that others follow, shows that the limit was kept. Left open: limits that
    are not positive integers; pages with fewer threads than the limit, since a server may have its
    own limit.
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        page = self.page(frame)
        limit = page.params.get("limit") if page is not None else None
        if page is None or isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            return None
        count, subject = len(frame.result["data"]), request_subject(page.request)
        frames = (page.request, frame)
        if count > limit:
            field, also = member(frame, "data", limit), (member(page.request, "limit"),)
            return [wrong(subject, frames, field, f"no element beyond {limit}", also=also)]
        more = count == limit or isinstance(page.next_cursor, str)
        return [Witness(subject, frames)] if more else None


@rule(
    "list.complete", title="Following the cursors gives every thread", level=Level.MUST, needs=NEEDS
)
class Complete(ListMonitor):
    """Judges, if nextCursor is null, that the pages so far have every thread that must be there.

    That is each thread that was made in the trace and certainly matches from the request of the
    first page to the answer with the last: a turn of it had completed, no message about it came or
    was sent meanwhile, and each filter matches what the server showed of it. This covers that an
    empty or null filter keeps all, and that an archived or restored thread is listed where it
    belongs. Left open: threads of other clients, ephemeral ones, those without a completed turn
    (they may be stored later, or were dropped), with a review, or used while archived;
    searchTerm for a thread that has it only in its name or only in its preview, since the
    specification does not say which one is the title; sourceKinds, since no message shows the kind
    of a thread; all threads after a server was killed.
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        pages = self.pages(frame)
        if pages is None or not pages.is_complete:
            return
        listed_ids = {thread_id for thread_id, _ in pages.threads}
        ids = ", ".join(list(dict.fromkeys(thread_id for thread_id, _ in pages.threads))[:MAX_IDS])
        for thread in self.known_threads(frame).values():
            if not self.must_be_listed(thread, pages):
                continue
            frames = (thread.start, pages.first, frame)
            if thread.id in listed_ids:
                yield Witness(thread.subject, frames)
                continue
            yield absent(
                thread.subject,
                frames,
                f"{thread.subject} on one of the pages of {request_subject(pages.first)}",
                f"they have {ids or 'no thread'}, and no more pages follow",
                member(thread.start, "thread", "id"),
                pages.pages[-1].cursor,
                clauses=_broken_clauses(thread, pages),
            )


def _broken_clauses(thread: KnownThread, pages: Pages) -> tuple[str, ...]:
    """Return the requirements that a list without a thread breaks; on filters, those it has."""
    params = pages.pages[-1].params
    restored = any(ask.request.method == "thread/unarchive" for ask in thread.exchanges)
    return (
        "thread-list.complete",
        *(("thread-unarchive.restores",) if restored else ()),
        *(clause for name, clause in _FILTER_CLAUSES.items() if name in params),
    )


_FILTER_CLAUSES = {
    "modelProviders": "thread-list.model-providers",
    "archived": "thread-list.archived",
    "cwd": "thread-list.cwd",
    "searchTerm": "thread-list.search-term",
}


@rule(
    "list.once", title="Following the cursors gives no thread twice", level=Level.MUST, needs=NEEDS
)
class Once(ListMonitor):
    """Judges that no thread is twice on one page, or on two consecutive ones.

    Two pages are compared for threads that were made in the trace and cannot have changed between
    the request of the first page and the answer with the other.
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        pages = self.pages(frame)
        if pages is None:
            return
        page, threads, here = pages.pages[-1], self.known_threads(frame), dict[str, Member]()
        for thread_id, field in page.threads:
            thread = threads.get(thread_id)
            twice = here.get(thread_id)
            if twice is None and thread is not None:
                still = thread.is_unchanged(pages.first, pages.last)
                twice = _earlier(pages, thread_id) if still else None
            here[thread_id] = field
            if twice is not None:
                frames = (page.request, *dict.fromkeys((twice.frame, frame)))
                also, subject = (twice.part("id"),), f"thread {thread_id}"
                yield wrong(subject, frames, field.part("id"), "a thread not listed yet", also=also)
        if len(pages.pages) > 1 or len(here) > 1:
            yield Witness(request_subject(page.request), (page.request, frame))


def _earlier(pages: Pages, thread_id: str) -> Member | None:
    """Return the place of a thread on the pages before the last one, None if it has none."""
    for page in pages.pages[:-1]:
        for listed_id, field in page.threads:
            if listed_id == thread_id:
                return field
    return None


@rule(
    "list.cursor-leads-on", title="A cursor leads to the next page", level=Level.MUST, needs=NEEDS
)
class CursorLeadsOn(ListMonitor):
    """Judges that the cursor of a page is accepted, and leads further.

    An empty page whose nextCursor is the cursor of its own request leads nowhere. An empty page is
    right at the end, or with another cursor. Left open: cursors that are used with other params or
    on another connection, and those that no page gave. SHOULD if threads have changed since, as far
    as the trace shows: the specification does not say how long a cursor is valid.
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        before = self.page_before(request)
        pages = self.pages(frame)
        if request is None or before is None:
            return None
        subject, frames = request_subject(request), (before.answer, request, frame)
        cursor = member(request, "cursor")
        if is_failure(frame):
            expected = f"a page, since {before.cursor.name} of an earlier page is the cursor"
            level = None if self._is_unchanged(before.request, frame) else Level.SHOULD
            return [
                unexpected_member(subject, frames, refusal_member(frame), expected, level=level)
            ]
        if pages is None:
            return None
        page = pages.pages[-1]
        if not frame.result["data"] and page.next_cursor == cursor.value:
            expected = "null, or another cursor than the one that led to this empty page"
            return [wrong(subject, frames, page.cursor, expected, also=(cursor,))]
        return [Witness(subject, frames)]

    def _is_unchanged(self, first: Frame, last: Frame) -> bool:
        """Return whether no thread of the trace was made or can have changed in between."""
        return all(
            came_before(thread.start, first) and thread.is_unchanged(first, last)
            for thread in self.known_threads(last).values()
        )
