"""Rules on the filters of thread/list: what each must keep out."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from harness.judge.base import Outcome, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.known_threads import KnownThread, texts_in
from harness.judge.rules.shared.listed_pages import ListMonitor, Page, Pages
from harness.judge.rules.shared.view_queries import perhaps_same_folder, same_folder
from harness.judge.rules.shared.violations import Member, absent, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame

NEEDS = ("thread-list",)
# The kinds that the text names. Another word may stand for several kinds, these among them.
NAMED_KINDS: Final = frozenset({"cli", "vscode"})
# So many of the last lists by kinds are compared with the next one.
MAX_LISTS: Final = 20


class _Filter(ListMonitor):
    """A filter, on the pages that were asked for with it."""

    def listed(self, page: Page) -> Iterator[tuple[KnownThread, Member]]:
        """The threads on a page that were made in the trace."""
        known = self.known(page.answer)
        for thread_id, where in page.threads:
            if thread_id in known:
                yield known[thread_id], where

    def kept_out(self, page: Page) -> list[KnownThread]:
        """The threads that were stored and made in the trace, and are not on a page."""
        on_it = {thread_id for thread_id, _ in page.threads}
        return [
            thread
            for thread in self.known(page.answer).values()
            if thread.id not in on_it and thread.stored(page.request)
        ]


@rule("list.archived-apart", title="The archive is listed apart", level=Level.MUST, needs=NEEDS)
class ArchivedApart(_Filter):
    """Judges that `archived` true lists no thread outside of the archive, and else none within.

    False, null and nothing say the same. Judged of threads that were made in the trace and of
    which it is certain where they were, from the request of the first page to the answer. Left
    open: threads that were being archived or brought back meanwhile, those that were used while
    they were archived, and those of others.
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        pages = self.pages(frame)
        page = pages.pages[-1] if pages is not None else None
        wanted = page.params.get("archived", False) if page is not None else None
        if page is None or pages is None or not isinstance(wanted, bool):
            return
        for thread, where in self.listed(page):
            if thread.in_archive(pages.first, frame) is (not wanted):
                asked = member(page.request, "archived")
                expected = f"no thread that is {'not ' if wanted else ''}archived"
                frames = (*self._moving(thread), page.request, frame)
                also = (asked,) if "archived" in page.params else ()
                yield wrong(thread.subject, frames, where.part("id"), expected, also=also)
        for thread in self.kept_out(page):
            if thread.in_archive(pages.first, frame) is (not wanted):
                yield Witness(thread.subject, (page.request, frame))

    def _moving(self, thread: KnownThread) -> tuple[Frame, ...]:
        """The last request that archived a thread or brought it back, else its start."""
        moves = [ask.request for ask in thread.asks if "archive" in ask.request.method]
        return tuple(moves[-1:]) or (thread.start,)


@rule(
    "list.cwd-exact",
    title="A list by folder keeps out all other folders",
    level=Level.MUST,
    needs=NEEDS,
)
class CwdExact(_Filter):
    """Judges that `cwd` lists no thread that shows another folder, be it above or below.

    Judged of threads that were made in the trace. One path written in two ways may be the same;
    SHOULD where the last name is the same, since a folder above may be a link. Left open: relative
    paths, threads whose turns were to run in another folder (which of the two counts is not said),
    those of others.
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        page = self.page(frame)
        asked = text(page.params.get("cwd")) if page is not None else ""
        if page is None or not posixpath.isabs(asked):
            return
        for thread, where in self.listed(page):
            shown = dig(where.value, "cwd")
            if not isinstance(shown, str) or thread.went_elsewhere() or same_folder(asked, shown):
                continue
            level = Level.SHOULD if perhaps_same_folder(asked, shown) else None
            also, frames = (member(page.request, "cwd"),), (page.request, frame)
            cwd, expected = where.part("cwd"), "the folder asked for"
            yield wrong(thread.subject, frames, cwd, expected, level=level, also=also)
        for thread in self.kept_out(page):
            cwd = text(thread.shown.get("cwd"))
            if not same_folder(asked, cwd) and not thread.went_elsewhere():
                yield Witness(thread.subject, (thread.start, page.request, frame))


@rule(
    "list.providers-kept",
    title="A list by provider keeps out all others",
    level=Level.MUST,
    needs=NEEDS,
)
class ProvidersKept(_Filter):
    """Judges that `modelProviders`, where it names any, lists no thread that shows another one.

    Judged of threads that were made in the trace. That an empty list keeps all is for
    list.complete.
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        page = self.page(frame)
        asked = page.params.get("modelProviders") if page is not None else None
        if page is None or not isinstance(asked, list) or not asked:
            return
        for thread, where in self.listed(page):
            shown = dig(where.value, "modelProvider")
            if isinstance(shown, str) and shown not in asked:
                also, frames = (member(page.request, "modelProviders"),), (page.request, frame)
                provider, expected = where.part("modelProvider"), "a provider asked for"
                yield wrong(thread.subject, frames, provider, expected, also=also)
        for thread in self.kept_out(page):
            if thread.shown.get("modelProvider") not in asked:
                yield Witness(thread.subject, (thread.start, page.request, frame))


@rule(
    "list.title-holds-term",
    title="A search lists titles with the term in them",
    level=Level.MUST,
    needs=NEEDS,
)
class TitleHoldsTerm(_Filter):
    """Judges that `searchTerm` lists no thread without the term, upper and lower case told apart.

    Which text is the title is not said. So a thread is wrong on the page only where no text that
    the trace has of it holds the term: its name, its preview, what was said in it by anybody.
    Judged of threads that were made in the trace, so that all of that is known.
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        page = self.page(frame)
        term = text(page.params.get("searchTerm")) if page is not None else ""
        if page is None or not term:
            return
        for thread, where in self.listed(page):
            if not self._has(thread, term, where):
                also, frames = (member(page.request, "searchTerm"),), (page.request, frame)
                expected = "a thread with the term in its title, as its preview may be"
                preview = where.part("preview")
                yield wrong(thread.subject, frames, preview, expected, also=also)
        for thread in self.kept_out(page):
            if not self._has(thread, term, None):
                yield Witness(thread.subject, (thread.start, page.request, frame))

    def _has(self, thread: KnownThread, term: str, where: Member | None) -> bool:
        """Return whether any text of a thread, or of the one it was forked from, may hold a
        term.
        """
        frames = (*thread.news, *(ask.request for ask in thread.asks))
        texts = [obj(frame.params) for frame in frames]
        shown = [where.value] if where is not None else [text for _, text in thread.previews]
        if any(term in one for one in texts_in([*texts, *shown])):
            return True
        if thread.source is None:
            return thread.copied
        return self._has(thread.source, term, None)


@rule(
    "list.source-kinds",
    title="A list by kind agrees with that by another",
    level=Level.MUST,
    needs=NEEDS,
)
class SourceKinds(_Filter):
    """Judges lists by `sourceKinds` against one another, since no thread shows its kind.

    With the same other params: a thread that is listed by some kinds is listed by these and more;
    and one that is listed by `cli` is not listed by `vscode`. Judged of threads that were made
    in the trace, and that nothing can have changed from the first list to the second. Left open:
    what an empty list of kinds keeps; whether a kind that the text does not name is a part of
    another.
    """

    def begin(self) -> None:
        super().begin()
        self._lists: deque[Pages] = deque(maxlen=MAX_LISTS)

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        pages = self.pages(frame)
        if pages is None or not pages.complete or not _kinds(pages):
            return
        for earlier in self._lists:
            if _besides(earlier) == _besides(pages):
                yield from self._compare(earlier, pages)
        self._lists.append(pages)

    def _compare(self, earlier: Pages, later: Pages) -> Iterator[Outcome]:
        listed = dict(earlier.threads), dict(later.threads)
        for thread in self.known(later.last).values():
            if not thread.stored(earlier.first):
                continue
            if not thread.untouched(earlier.first, later.last):
                continue
            first, second = (found.get(thread.id) for found in listed)
            yield from _more_kinds(thread, (earlier, first), (later, second))
            yield from _more_kinds(thread, (later, second), (earlier, first))
            yield from _other_kinds(thread, (earlier, first), (later, second))


# A list, and where a thread stands on it, None where it does not.
_Place: TypeAlias = tuple[Pages, Member | None]


def _more_kinds(thread: KnownThread, few: _Place, many: _Place) -> Iterator[Outcome]:
    """A thread that some kinds list is listed by these and more."""
    (some, here), (more, there) = few, many
    if here is None or not _kinds(some) < _kinds(more):
        return
    frames = (some.first, here.frame, more.first, more.last)
    if there is not None:
        yield Witness(thread.subject, frames)
        return
    expected = f"{thread.subject} on the list by these kinds and more"
    about = here.part("id"), member(some.first, "sourceKinds"), member(more.first, "sourceKinds")
    yield absent(thread.subject, frames, expected, "it is not on that one", *about)


def _other_kinds(thread: KnownThread, one: _Place, other: _Place) -> Iterator[Outcome]:
    """A thread that `cli` lists is not listed by `vscode`, nor the reverse."""
    (some, here), (others, there) = one, other
    kinds = _kinds(some), _kinds(others)
    if (here is None and there is None) or kinds[0] & kinds[1]:
        return
    if not kinds[0] | kinds[1] <= NAMED_KINDS:
        return
    frames = (some.first, some.last, others.first, others.last)
    if here is None or there is None:
        yield Witness(thread.subject, frames)
        return
    asked = tuple(member(pages.first, "sourceKinds") for pages in (some, others))
    expected, also = "no thread that is listed by another kind", (here.part("id"), *asked)
    yield wrong(thread.subject, frames, there.part("id"), expected, also=also)


def _kinds(pages: Pages) -> frozenset[str]:
    """The kinds that a list was asked for by."""
    given = arr(pages.params.get("sourceKinds"))
    return frozenset(kind for kind in given if isinstance(kind, str))


def _besides(pages: Pages) -> dict[str, Any]:
    """The other filters of a list."""
    apart = ("sourceKinds", "limit", "sortKey")
    return {name: value for name, value in pages.params.items() if name not in apart}
