"""Pages of thread/list: their sequence, and the threads that certainly belong on them."""

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
# Cursors that are remembered; the oldest is dropped.
MAX_OPEN: Final = 1000


@dataclass(frozen=True, slots=True)
class Page:
    """A thread/list request and its answer with `data`."""

    request: Frame
    answer: Frame

    @property
    def params(self) -> dict[str, Any]:
        """Return the params of the request; null counts as absent."""
        params = obj(self.request.params)
        return {name: value for name, value in params.items() if value is not None}

    @property
    def threads(self) -> Iterator[tuple[str, Member]]:
        """Yield the id and the member of each of its threads; threads without an id are skipped."""
        for index, thread in enumerate(arr(dig(self.answer.result, "data"))):
            thread_id = text(obj(thread).get("id"))
            if thread_id:
                yield thread_id, member(self.answer, "data", index)

    @property
    def next_cursor(self) -> Any:
        """Return its nextCursor, `MISSING` if it has none."""
        return dig(self.answer.result, "nextCursor")

    @property
    def cursor(self) -> Member:
        """Return its nextCursor as a member."""
        return member(self.answer, "nextCursor")


@dataclass(frozen=True, slots=True)
class Pages:
    """Consecutive pages from the first one on, requested with the same params."""

    pages: tuple[Page, ...]

    @property
    def first(self) -> Frame:
        """Return the request of the first page."""
        return self.pages[0].request

    @property
    def last(self) -> Frame:
        """Return the answer with the last page so far."""
        return self.pages[-1].answer

    @property
    def params(self) -> dict[str, Any]:
        """Return the params that all pages share, without the cursor."""
        return {name: value for name, value in self.pages[0].params.items() if name != "cursor"}

    @property
    def is_complete(self) -> bool:
        """Return whether the last page says that there are no more."""
        return self.pages[-1].next_cursor is None

    @property
    def threads(self) -> Iterator[tuple[str, Member]]:
        """Yield the id and the member of each thread on all pages."""
        for page in self.pages:
            yield from page.threads

    @property
    def is_specified(self) -> bool:
        """Return whether the specification defines these params: known names and types of values.

        Unknown sort keys and invalid page sizes are not specified.
        """
        params, limit = self.params, self.params.get("limit")
        has_known_params = params.keys() <= PARAMS and params.get("sortKey") in (
            None,
            "created_at",
            "updated_at",
        )
        texts = all(isinstance(params.get(name, ""), str) for name in ("cwd", "searchTerm"))
        sized = limit is None or (isinstance(limit, int) and limit >= 1 and limit is not True)
        archived = isinstance(params.get("archived", False), bool)
        lists = all(_texts(params.get(name)) for name in ("modelProviders", "sourceKinds"))
        return has_known_params and texts and sized and archived and lists


def _texts(value: Any) -> bool:
    return value is None or (
        isinstance(value, list) and all(isinstance(v, str) for v in arr(value))
    )


class ListMonitor(Monitor):
    """Base of rules on the answers to thread/list on one connection."""

    def begin(self) -> None:
        """Set up the shared state; a rule with state of its own must call this too."""
        self._threads = self.conversation.reader(KnownThreads, self.trace)
        self._open: dict[tuple[str, str], Pages] = {}

    def pages(self, answer: Frame) -> Pages | None:
        """Return the pages up to this answer, and remember its cursor.

        None for an error, a request that was wrong on purpose, an answer without a list, or a
        cursor that no page gave for the same other params: the specification does not define such a
        cursor.
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
        """Return the page in an answer and remember its cursor; None as for `pages`."""
        pages = self.pages(answer)
        return pages.pages[-1] if pages is not None else None

    def page_before(self, request: Frame | None) -> Page | None:
        """Return the page that gave a request's cursor under the same other params, else None."""
        if request is None or request.deliberate:
            return None
        cursor, words = _query(request)
        before = self._open.get((cursor, words)) if isinstance(cursor, str) else None
        return before.pages[-1] if before is not None else None

    def known_threads(self, moment: Frame) -> Mapping[str, KnownThread]:
        """Return the threads that were started in the trace, as known at a message."""
        return self._threads.read_until(moment)

    def must_be_listed(self, thread: KnownThread, pages: Pages) -> bool:
        """Return whether a thread certainly belongs on these pages.

        It was stored and did not change meanwhile, and it passes the filters.
        """
        first, last = pages.first, pages.last
        if (
            not pages.is_specified
            or not thread.is_stored(first)
            or not thread.is_unchanged(first, last)
        ):
            return False
        if self._threads.was_server_killed(thread, last):
            return False
        return thread.is_archived(first) is (pages.params.get("archived") is True) and filters_keep(
            pages.params, thread, first
        )


def _query(request: Frame) -> tuple[Any, str]:
    """Return the cursor of a thread/list, None for the first page, and its other params as JSON."""
    params = {name: value for name, value in obj(request.params).items() if value is not None}
    return params.pop("cursor", None), json.dumps(params, sort_keys=True)


def filters_keep(params: Mapping[str, Any], thread: KnownThread, moment: Frame) -> bool:
    """Return whether a thread certainly passes the filters: each one matches its known fields.

    With sourceKinds nothing is certain: no message shows the kind of a thread.
    """
    providers, cwd = params.get("modelProviders"), params.get("cwd")
    if providers and thread.fields.get("modelProvider") not in providers:
        return False
    if cwd is not None and (thread.fields.get("cwd") != cwd or thread.ran_in_another_folder()):
        return False
    term = params.get("searchTerm")
    return "sourceKinds" not in params and (term is None or _in_title(term, thread, moment))


def _in_title(term: str, thread: KnownThread, moment: Frame) -> bool:
    """Return whether a search term is certainly in the title of a thread.

    The title may be the name or the preview, so the term must be in both.
    """
    names = thread.names_set(moment)
    previews = thread.previews[-1:]
    return bool(
        term.strip()
        and names
        and any(term in name for name in names)
        and previews
        and term in previews[0][1]
    )
