"""Pages of thread/list: which follow one another, and which threads certainly belong on them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.judge.base import Monitor
from harness.judge.rules.shared.known_threads import KnownThread, KnownThreads
from harness.judge.rules.shared.violations import Member, member
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind

PARAMS: Final = frozenset(
    {
        "cursor",
        "limit",
        "sortKey",
        "modelProviders",
        "sourceKinds",
        "archived",
        "cwd",
        "searchTerm",
    }
)
# So many cursors are remembered, the last ones that were given.
MAX_OPEN: Final = 1000


@dataclass(frozen=True, slots=True)
class Page:
    """An answer to thread/list that has `data`, and its request."""

    request: Frame
    answer: Frame

    @property
    def params(self) -> dict[str, Any]:
        """The params of the request; null is as good as absent."""
        given = obj(self.request.params)
        return {name: value for name, value in given.items() if value is not None}

    @property
    def threads(self) -> Iterator[tuple[str, Member]]:
        """The ids of the threads on it, and where they stand; what has no id is left out."""
        for at, thread in enumerate(arr(dig(self.answer.result, "data"))):
            thread_id = text(obj(thread).get("id"))
            if thread_id:
                yield thread_id, member(self.answer, "data", at)

    @property
    def next_cursor(self) -> Any:
        """Return its nextCursor, `MISSING` if it has none."""
        return dig(self.answer.result, "nextCursor")

    @property
    def cursor(self) -> Member:
        """Its nextCursor, as a member."""
        return member(self.answer, "nextCursor")


@dataclass(frozen=True, slots=True)
class Pages:
    """Pages that follow one another, from the first one on, asked for with the same params."""

    pages: tuple[Page, ...]

    @property
    def first(self) -> Frame:
        """The request of the first page."""
        return self.pages[0].request

    @property
    def last(self) -> Frame:
        """The answer with the last page so far."""
        return self.pages[-1].answer

    @property
    def params(self) -> dict[str, Any]:
        """The params of all of them, but for the cursor."""
        return {name: value for name, value in self.pages[0].params.items() if name != "cursor"}

    @property
    def complete(self) -> bool:
        """Return whether the last one says that there are no more."""
        return self.pages[-1].next_cursor is None

    @property
    def threads(self) -> Iterator[tuple[str, Member]]:
        """The threads on all of them."""
        for page in self.pages:
            yield from page.threads

    @property
    def plain(self) -> bool:
        """Return whether the text says what these params do: all are its own, and of its types.

        Left out are words for a sort key that it does not list, and limits that are no page size.
        """
        params, limit = self.params, self.params.get("limit")
        known = params.keys() <= PARAMS and params.get("sortKey") in (
            None,
            "created_at",
            "updated_at",
        )
        texts = all(isinstance(params.get(name, ""), str) for name in ("cwd", "searchTerm"))
        sized = limit is None or (isinstance(limit, int) and limit >= 1 and limit is not True)
        archived = isinstance(params.get("archived", False), bool)
        lists = all(_texts(params.get(name)) for name in ("modelProviders", "sourceKinds"))
        return known and texts and sized and archived and lists


def _texts(value: Any) -> bool:
    return value is None or (
        isinstance(value, list) and all(isinstance(v, str) for v in arr(value))
    )


class ListMonitor(Monitor):
    """A monitor of the answers to thread/list on one connection."""

    def begin(self) -> None:
        """Set up the shared state; a rule with state of its own must call this too."""
        self._known = KnownThreads(self.trace)
        self._open: dict[tuple[str, str], Pages] = {}

    def pages(self, answer: Frame) -> Pages | None:
        """The pages that an answer is the last of so far, one or more.

        None for an error, for a request that is wrong on purpose, and for one whose cursor no page
        gave for its other params: what a cursor of another list then leads to is not said.
        """
        request = self.conversation.request_of(answer)
        if request is None or request.deliberate or answer.kind is not Kind.RESPONSE:
            return None
        cursor, words = _query(request)
        before = Pages(()) if cursor is None else self._open.get((text(cursor), words))
        if before is None or not isinstance(dig(answer.result, "data"), list):
            return None
        page = Page(request, answer)
        pages = Pages((*before.pages, page))
        if isinstance(page.next_cursor, str):
            self._open[page.next_cursor, words] = pages
            if len(self._open) > MAX_OPEN:
                self._open.pop(next(iter(self._open)))
        return pages

    def page(self, answer: Frame) -> Page | None:
        """The last of these pages."""
        pages = self.pages(answer)
        return pages.pages[-1] if pages is not None else None

    def gives_cursor_of(self, request: Frame | None) -> Page | None:
        """The page that gave the cursor of a request with the same other params."""
        if request is None or request.deliberate:
            return None
        cursor, words = _query(request)
        before = self._open.get((cursor, words)) if isinstance(cursor, str) else None
        return before.pages[-1] if before is not None else None

    def known(self, moment: Frame) -> Mapping[str, KnownThread]:
        """The threads that were started in the trace, with all that had come by a message."""
        return self._known.until(moment)

    def belongs(self, thread: KnownThread, pages: Pages) -> bool:
        """Return whether a thread certainly was to be listed, while all of these pages were asked
        for.

        It was stored and not changed in the meantime, and the filters keep it.
        """
        first, last = pages.first, pages.last
        if not pages.plain or not thread.stored(first) or not thread.untouched(first, last):
            return False
        if self._known.killed(thread, last):
            return False
        return thread.archived(first) is (pages.params.get("archived") is True) and keeps(
            pages.params, thread, first
        )


def _query(request: Frame) -> tuple[Any, str]:
    """The cursor of a thread/list, None for the first page, and its other params as JSON."""
    params = {name: value for name, value in obj(request.params).items() if value is not None}
    return params.pop("cursor", None), json.dumps(params, sort_keys=True)


def keeps(params: Mapping[str, Any], thread: KnownThread, moment: Frame) -> bool:
    """Return whether the filters certainly keep a thread: each that is given fits what was shown of
    it.

    No thread is certain where sourceKinds are given: nothing shows the kind of a thread.
    """
    providers, cwd = params.get("modelProviders"), params.get("cwd")
    if providers and thread.shown.get("modelProvider") not in providers:
        return False
    if cwd is not None and (thread.shown.get("cwd") != cwd or thread.went_elsewhere()):
        return False
    term = params.get("searchTerm")
    return "sourceKinds" not in params and (term is None or _in_title(term, thread, moment))


def _in_title(term: str, thread: KnownThread, moment: Frame) -> bool:
    """Return whether a term certainly is in the title, be that the name or the preview.

    The term must be in both, in the preview as the server shows it.
    """
    named = thread.named(moment)
    previews = thread.previews[-1:]
    return bool(
        term.strip()
        and named
        and any(term in name for name in named)
        and previews
        and term in previews[0][1]
    )
