"""Rules on the filters of thread/list: the threads that each must exclude."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from harness.judge.base import Outcome, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.known_threads import KnownThread, texts_in
from harness.judge.rules.shared.listed_pages import ListMonitor, Page, Pages
from harness.judge.rules.shared.view_queries import may_be_same_folder, same_folder
from harness.judge.rules.shared.violations import Member, absent, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame

NEEDS = ("thread-list",)
# The kinds in the specification. Another word may stand for several kinds, including these.
NAMED_KINDS: Final = frozenset({"cli", "vscode"})
SET_NAME: Final = "thread/name/set"
NAME_UPDATED: Final = "thread/name/updated"
# Lists by kinds that are kept to compare the next one with them.
MAX_LISTS: Final = 20


class _Filter(ListMonitor):
    """Base of rules on one filter, on the pages that were requested with it."""

    def listed_threads(self, page: Page) -> Iterator[tuple[KnownThread, Member]]:
        """Yield the threads on a page that were made in the trace."""
        threads = self.known_threads(page.answer)
        for thread_id, field in page.threads:
            if thread_id in threads:
                yield threads[thread_id], field

    def threads_kept_out(self, page: Page) -> list[KnownThread]:
        """Return the stored threads of the trace that are not on a page."""
        on_it = {thread_id for thread_id, _ in page.threads}
        return [
            thread
            for thread in self.known_threads(page.answer).values()
            if thread.id not in on_it and thread.is_stored(page.request)
        ]


@rule(
    "list.archived-apart",
    title="Archived threads are listed separately",
    level=Level.MUST,
    needs=NEEDS,
)
class ArchivedApart(_Filter):
    """Judges that `archived` true lists archived threads only, and no `archived` or false none.

    Null counts as false. Judged for threads that were made in the trace and whose place is certain
    from the request of the first page to the answer. Left open: threads that were archived or
    restored meanwhile, and those that were used while archived.
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        pages = self.pages(frame)
        page = pages.pages[-1] if pages is not None else None
        archived = page.params.get("archived", False) if page is not None else None
        if page is None or pages is None or not isinstance(archived, bool):
            return
        for thread, field in self.listed_threads(page):
            if thread.is_archived_throughout(pages.first, frame) is (not archived):
                archived_field = member(page.request, "archived")
                expected = f"no thread that is {'not ' if archived else ''}archived"
                frames = (*self._last_move(thread), page.request, frame)
                also = (archived_field,) if "archived" in page.params else ()
                yield wrong(thread.subject, frames, field.part("id"), expected, also=also)
        for thread in self.threads_kept_out(page):
            if thread.is_archived_throughout(pages.first, frame) is (not archived):
                yield Witness(thread.subject, (page.request, frame))

    def _last_move(self, thread: KnownThread) -> tuple[Frame, ...]:
        """Return the last request that archived or restored a thread, else its start."""
        moves = [ask.request for ask in thread.exchanges if "archive" in ask.request.method]
        return tuple(moves[-1:]) or (thread.start,)


@rule(
    "list.cwd-exact",
    title="A list by folder excludes all other folders",
    level=Level.MUST,
    needs=NEEDS,
)
class CwdExact(_Filter):
    """Judges that `cwd` lists no thread with another folder, neither above nor below.

    Judged for threads that were made in the trace. Two spellings of one path may be the same;
    SHOULD if the last component is the same, since a parent may be a link. Left open: relative
    paths, and threads with turns in another folder (the specification does not say which one
    counts).
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        page = self.page(frame)
        folder = text(page.params.get("cwd")) if page is not None else ""
        if page is None or not posixpath.isabs(folder):
            return
        for thread, field in self.listed_threads(page):
            shown_cwd = dig(field.value, "cwd")
            if (
                not isinstance(shown_cwd, str)
                or thread.ran_in_another_folder()
                or same_folder(folder, shown_cwd)
            ):
                continue
            level = Level.SHOULD if may_be_same_folder(folder, shown_cwd) else None
            also, frames = (member(page.request, "cwd"),), (page.request, frame)
            cwd, expected = field.part("cwd"), "the folder asked for"
            yield wrong(thread.subject, frames, cwd, expected, level=level, also=also)
        for thread in self.threads_kept_out(page):
            cwd = text(thread.fields.get("cwd"))
            if not same_folder(folder, cwd) and not thread.ran_in_another_folder():
                yield Witness(thread.subject, (thread.start, page.request, frame))


@rule(
    "list.providers-kept",
    title="A list by provider excludes all others",
    level=Level.MUST,
    needs=NEEDS,
)
class ProvidersKept(_Filter):
    """Judges that a nonempty `modelProviders` lists no thread with another provider.

    Judged for threads that were made in the trace. An empty list is judged by list.complete.
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        page = self.page(frame)
        providers = page.params.get("modelProviders") if page is not None else None
        if page is None or not isinstance(providers, list) or not providers:
            return
        for thread, field in self.listed_threads(page):
            shown_provider = dig(field.value, "modelProvider")
            if isinstance(shown_provider, str) and shown_provider not in providers:
                also, frames = (member(page.request, "modelProviders"),), (page.request, frame)
                provider, expected = field.part("modelProvider"), "a provider asked for"
                yield wrong(thread.subject, frames, provider, expected, also=also)
        for thread in self.threads_kept_out(page):
            if thread.fields.get("modelProvider") not in providers:
                yield Witness(thread.subject, (thread.start, page.request, frame))


@rule(
    "list.title-holds-term",
    title="A search lists titles with the term in them",
    level=Level.MUST,
    needs=NEEDS,
)
class TitleHoldsTerm(_Filter):
    """Judges that `searchTerm` lists no thread without the term, compared case-sensitively.

    The specification does not define the title. So a thread is wrong on the page only if no text of
    it in the trace contains the term: its name, its preview, any message in it. Judged for threads
    that were made in the trace, so that all of these are known.
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        page = self.page(frame)
        term = text(page.params.get("searchTerm")) if page is not None else ""
        if page is None or not term:
            return
        for thread, field in self.listed_threads(page):
            if not self._may_contain(thread, term, field):
                also, frames = (member(page.request, "searchTerm"),), (page.request, frame)
                expected = "a thread with the term in its title, as its preview may be"
                preview = field.part("preview")
                yield wrong(thread.subject, frames, preview, expected, also=also)
        for thread in self.threads_kept_out(page):
            if not self._may_contain(thread, term, None):
                yield Witness(thread.subject, (thread.start, page.request, frame))

    def _may_contain(self, thread: KnownThread, term: str, field: Member | None) -> bool:
        """Return whether any text of a thread, or of its source, may contain a term."""
        frames = (*thread.notifications, *(ask.request for ask in thread.exchanges))
        texts = [obj(frame.params) for frame in frames]
        values = [field.value] if field is not None else [text for _, text in thread.previews]
        if any(term in value for value in texts_in([*texts, *values])):
            return True
        if thread.source is None:
            return thread.is_fork
        return self._may_contain(thread.source, term, None)


@rule(
    "list.old-name-gone",
    title="A search does not find a thread by a name that was replaced",
    level=Level.SHOULD,
    needs=(*NEEDS, "thread-name"),
)
class OldNameGone(_Filter):
    """Judges that `searchTerm` lists no thread that has the term only in a former name.

    The specification does not define the title: the term must be in no other text of the thread,
    and the last name was certainly set before the request. Left open: forks, which may have names
    of their threads.
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        page = self.page(frame)
        term = text(page.params.get("searchTerm")) if page is not None else ""
        if page is None or not term:
            return
        for thread, field in self.listed_threads(page):
            if names := _replaced_by(thread, term, page, field):
                also, frames = (member(page.request, "searchTerm"),), (*names, page.request, frame)
                expected = "no thread that had the term in a former name only"
                yield wrong(thread.subject, frames, field.part("id"), expected, also=also)
        for thread in self.threads_kept_out(page):
            if names := _replaced_by(thread, term, page, None):
                yield Witness(thread.subject, (*names, page.request, frame))


def _replaced_by(
    thread: KnownThread, term: str, page: Page, field: Member | None
) -> tuple[Frame, ...]:
    """Return the request that set a name with the term, and the one that replaced it.

    () if another text of the thread may contain the term, or if the name is uncertain.
    """
    settings = [ask for ask in thread.exchanges if ask.request.method == SET_NAME]
    names = thread.names_set(page.answer)
    if thread.is_fork or not names or not settings[-1].ended_before(page.request):
        return ()
    others = [ask.request.params for ask in thread.exchanges if ask not in settings]
    others += [told.params for told in thread.notifications if told.method != NAME_UPDATED]
    shown = [field.value] if field is not None else [words for _, words in thread.previews]
    if any(term in words for words in (*names, *texts_in([*others, *shown]))):
        return ()
    former = [
        ask.request
        for ask in settings[:-1]
        if ask.is_accepted and any(term in words for words in texts_in(ask.request.params))
    ]
    return (former[-1], settings[-1].request) if former else ()


@rule(
    "list.source-kinds",
    title="Lists by different kinds agree",
    level=Level.MUST,
    needs=NEEDS,
)
class SourceKinds(_Filter):
    """Judges lists by `sourceKinds` against one another, since no thread shows its kind.

    With the same other params, a thread that is listed by some kinds is listed by these and more;
    and one that is listed by `cli` is not listed by `vscode`. Judged for threads that were made in
    the trace and cannot have changed between the two lists. Left open: an empty list of kinds;
    whether a kind that is not in the specification is part of another.
    """

    def begin(self) -> None:
        super().begin()
        self._lists: deque[Pages] = deque(maxlen=MAX_LISTS)

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        pages = self.pages(frame)
        if pages is None or not pages.is_complete or not _kinds(pages):
            return
        for earlier in self._lists:
            if _other_filters(earlier) == _other_filters(pages):
                yield from self._compare(earlier, pages)
        self._lists.append(pages)

    def _compare(self, earlier: Pages, later: Pages) -> Iterator[Outcome]:
        lists = dict(earlier.threads), dict(later.threads)
        for thread in self.known_threads(later.last).values():
            if not thread.is_stored(earlier.first):
                continue
            if not thread.is_unchanged(earlier.first, later.last):
                continue
            first, second = (places.get(thread.id) for places in lists)
            yield from _more_kinds(thread, (earlier, first), (later, second))
            yield from _more_kinds(thread, (later, second), (earlier, first))
            yield from _other_kinds(thread, (earlier, first), (later, second))


# A list, and the member of a thread on it, None if it is missing.
_Place: TypeAlias = tuple[Pages, Member | None]


def _more_kinds(thread: KnownThread, few: _Place, many: _Place) -> Iterator[Outcome]:
    """Judge that a thread listed by some kinds is listed by these and more."""
    (some, here), (more, there) = few, many
    if here is None or not _kinds(some) < _kinds(more):
        return
    frames = (some.first, here.frame, more.first, more.last)
    if there is not None:
        yield Witness(thread.subject, frames)
        return
    expected = f"{thread.subject} on the list by these kinds and more"
    members = here.part("id"), member(some.first, "sourceKinds"), member(more.first, "sourceKinds")
    yield absent(thread.subject, frames, expected, "it is not on that one", *members)


def _other_kinds(thread: KnownThread, first: _Place, second: _Place) -> Iterator[Outcome]:
    """Judge that a thread listed by `cli` is not listed by `vscode`, nor the reverse."""
    (some, here), (many_pages, there) = first, second
    kinds = _kinds(some), _kinds(many_pages)
    if (here is None and there is None) or kinds[0] & kinds[1]:
        return
    if not kinds[0] | kinds[1] <= NAMED_KINDS:
        return
    frames = (some.first, some.last, many_pages.first, many_pages.last)
    if here is None or there is None:
        yield Witness(thread.subject, frames)
        return
    filters = tuple(member(pages.first, "sourceKinds") for pages in (some, many_pages))
    expected, also = "no thread that is listed by another kind", (here.part("id"), *filters)
    yield wrong(thread.subject, frames, there.part("id"), expected, also=also)


def _kinds(pages: Pages) -> frozenset[str]:
    """Return the requested kinds of a list."""
    kinds = arr(pages.params.get("sourceKinds"))
    return frozenset(kind for kind in kinds if isinstance(kind, str))


def _other_filters(pages: Pages) -> dict[str, Any]:
    """Return the params of a list that must be equal for a comparison by kinds."""
    apart = ("sourceKinds", "limit", "sortKey")
    return {name: value for name, value in pages.params.items() if name not in apart}
