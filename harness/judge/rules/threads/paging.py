"""Rules on the pages of thread/list: their size, what is on them, and on which of them."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.listed_pages import ListMonitor, Pages
from harness.judge.rules.shared.view_queries import failed, request_subject
from harness.judge.rules.shared.violations import Member, absent, instead, member, refusal, wrong
from harness.judge.verdict import Level
from harness.trace.frame import Frame
from harness.trace.order import came_before

# So many ids of listed threads are told.
MAX_IDS = 8
NEEDS = ("thread-list",)


@rule(
    "list.page-size",
    title="A page has no more threads than asked for",
    level=Level.MUST,
    needs=NEEDS,
)
class PageSize(ListMonitor):
    """Judges that a page of thread/list has at most `limit` threads.

    A page that is full, or that others follow, shows that the limit was kept. Left open: limits
    that are no whole number from 1 on, pages with fewer threads than the limit, since a server may
    have a limit of its own.
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
            where, also = member(frame, "data", limit), (member(page.request, "limit"),)
            return [wrong(subject, frames, where, f"no element beyond {limit}", also=also)]
        more = count == limit or isinstance(page.next_cursor, str)
        return [Witness(subject, frames)] if more else None


@rule(
    "list.complete", title="Following the cursors gives every thread", level=Level.MUST, needs=NEEDS
)
class Complete(ListMonitor):
    """Judges, where nextCursor is null, that the pages so far hold every thread that must be there.

    That is each thread that was made in the trace and is certain to match from the request of
    the first page to the answer with the last: a turn of it had been completed, nothing was asked
    or told of it meanwhile, by or to any client, and each filter fits what the server itself showed
    of it. So it is judged too that a filter which is empty or null keeps all, and that a thread
    which was archived, or taken out of the archive, is listed where it belongs. Left open: threads
    of others, ephemeral ones, those without a completed turn (they may be stored later) or with
    work that is no turn, those that were archived and used again; searchTerm for a thread that has
    it in its name or its preview alone, since which of the two is the title is not said;
    sourceKinds, since nothing shows the kind of a thread; all threads after a server was killed.
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        pages = self.pages(frame)
        if pages is None or not pages.complete:
            return
        listed = {thread_id for thread_id, _ in pages.threads}
        told = ", ".join(list(dict.fromkeys(one for one, _ in pages.threads))[:MAX_IDS])
        for thread in self.known(frame).values():
            if not self.belongs(thread, pages):
                continue
            frames = (thread.start, pages.first, frame)
            if thread.id in listed:
                yield Witness(thread.subject, frames)
                continue
            yield absent(
                thread.subject,
                frames,
                f"{thread.subject} on one of the pages of {request_subject(pages.first)}",
                f"they have {told or 'no thread'}, and no more pages follow",
                member(thread.start, "thread", "id"),
                pages.pages[-1].cursor,
            )


@rule(
    "list.once", title="Following the cursors gives no thread twice", level=Level.MUST, needs=NEEDS
)
class Once(ListMonitor):
    """Judges that no thread stands twice on one page, or on two that follow one another.

    On two pages this is judged of the threads that were made in the trace, and that nothing can
    have changed between the request of the first page and the answer with the other.
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        pages = self.pages(frame)
        if pages is None:
            return
        page, known, here = pages.pages[-1], self.known(frame), dict[str, Member]()
        for thread_id, where in page.threads:
            thread = known.get(thread_id)
            twice = here.get(thread_id)
            if twice is None and thread is not None:
                still = thread.untouched(pages.first, pages.last)
                twice = _earlier(pages, thread_id) if still else None
            here[thread_id] = where
            if twice is not None:
                frames = (page.request, *dict.fromkeys((twice.frame, frame)))
                also, subject = (twice.part("id"),), f"thread {thread_id}"
                yield wrong(subject, frames, where.part("id"), "a thread not listed yet", also=also)
        if len(pages.pages) > 1 or len(here) > 1:
            yield Witness(request_subject(page.request), (page.request, frame))


def _earlier(pages: Pages, thread_id: str) -> Member | None:
    """Return the place of a thread on the pages before the last one, None if it has none."""
    for page in pages.pages[:-1]:
        for one, where in page.threads:
            if one == thread_id:
                return where
    return None


@rule(
    "list.cursor-leads-on", title="A cursor leads to the next page", level=Level.MUST, needs=NEEDS
)
class CursorLeadsOn(ListMonitor):
    """Judges that a cursor which a page gave is taken, and that what it leads to gets on.

    An empty page whose nextCursor is the very cursor that it was asked for by leads nowhere. An
    empty page is right at the end, and on the way where it has another cursor. Left open: cursors
    that are used with other params or on another connection, and those that no page gave. SHOULD
    where threads have changed since then, as far as the trace shows: how long a cursor lasts is not
    said.
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        before = self.gives_cursor_of(request)
        pages = self.pages(frame)
        if request is None or before is None:
            return None
        subject, frames = request_subject(request), (before.answer, request, frame)
        cursor = member(request, "cursor")
        if failed(frame):
            expected = f"a page, since {before.cursor.name} of an earlier page is the cursor"
            level = None if self._unchanged(before.request, frame) else Level.SHOULD
            return [instead(subject, frames, refusal(frame), expected, level=level)]
        if pages is None:
            return None
        page = pages.pages[-1]
        if not frame.result["data"] and page.next_cursor == cursor.value:
            expected = "null, or another cursor than the one that led to this empty page"
            return [wrong(subject, frames, page.cursor, expected, also=(cursor,))]
        return [Witness(subject, frames)]

    def _unchanged(self, first: Frame, last: Frame) -> bool:
        """Return whether no thread of the trace was made or can have changed meanwhile."""
        return all(
            came_before(thread.start, first) and thread.untouched(first, last)
            for thread in self.known(last).values()
        )
