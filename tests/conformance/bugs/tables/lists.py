"""Bugs of thread/list: its pages, its order, its filters, and the threads it shows."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

from tests.conformance.bugs.planting import Message, received, sent, swap
from tests.conformance.bugs.registry import bug

LISTS = "reference_server.index.lists:ThreadLists"
QUERY = "reference_server.handlers.thread_list:_query"
KEEPER = "keeper:Keeper"
# More threads than any scenario has.
ALL = 100


def _asked(change: Callable[[Message], None]) -> None:
    """Change the params of every thread/list, in place."""

    def edit(method: str, message: Message) -> Message:
        if method == "thread/list":
            change(message["params"])
        return message

    received(edit)


def _queried(**members: Any) -> None:
    """Replace these members of each query of the index."""

    def query(original: Any) -> Any:
        return lambda params: dataclasses.replace(original(params), **members)

    swap(QUERY, query)


def _filtered(filter_name: str, fits: Callable[[Any, str], bool]) -> None:
    """Filter by `fits` the threads of one page of the index, queried without this filter."""

    def page(original: Any) -> Any:
        async def changed(lists: Any, query: Any, cursor: str | None) -> Any:
            value = getattr(query, filter_name)
            whole = dataclasses.replace(query, **{filter_name: None})
            threads, after = await original(lists, whole, cursor)
            kept = [one for one in threads if value is None or fits(one.summary, value)]
            return kept, after

        return changed

    swap(f"{LISTS}.page", page)


@bug(reds={"threads/list-pages": "list.once"})
def every_page_is_the_first() -> None:
    """The cursor of a thread/list is not looked at."""
    _asked(lambda params: params.pop("cursor", None))


@bug(reds={"threads/list-changing": "list.once", "threads/list-archiving": "list.complete"})
def a_cursor_counts_threads() -> None:
    """A cursor is the number of threads before the page, even if the threads change."""

    def page(original: Any) -> Any:
        async def changed(lists: Any, query: Any, cursor: str | None) -> Any:
            whole = dataclasses.replace(query, limit=ALL)
            threads, _ = await original(lists, whole, None)
            first = int(cursor or 0)
            after = first + query.limit
            return threads[first:after], str(after) if after < len(threads) else None

        return changed

    swap(f"{LISTS}.page", page)


@bug(reds={"threads/list-forks": "list.complete"})
def a_fork_is_in_no_list() -> None:
    """Forks are missing in every list."""
    forks: set[str] = set()

    def edit(kind: str, message: Message) -> list[Message]:
        if kind == "reply:thread/fork":
            forks.add(message["result"]["thread"]["id"])
        elif kind == "reply:thread/list":
            data = message["result"]["data"]
            message["result"]["data"] = [one for one in data if one["id"] not in forks]
        return [message]

    sent(edit)


@bug(reds={"threads/list-sorted": "list.order"})
def a_list_is_by_creation_whatever_is_asked_for() -> None:
    """The sort key of a thread/list is not looked at."""
    _queried(sort="created")


@bug(reds={"threads/list-archived": "list.archived-apart"})
def the_archive_is_listed_with_the_others() -> None:
    """A list of the threads that are not archived has the archived ones too."""

    def page(original: Any) -> Any:
        async def changed(lists: Any, query: Any, cursor: str | None) -> Any:
            threads, after = await original(lists, query, cursor)
            other = dataclasses.replace(query, archived=True)
            archived, _ = ([], None) if query.archived else await original(lists, other, None)
            return [*threads, *archived], after

        return changed

    swap(f"{LISTS}.page", page)


@bug(reds={"threads/list-empty-filters": "list.complete"})
def an_empty_list_of_providers_keeps_none() -> None:
    """A list by no provider at all is empty."""

    def empty(params: Message) -> None:
        if params.get("modelProviders") == []:
            params["modelProviders"] = [""]

    _asked(empty)


@bug(
    reds={
        "threads/list-kinds": "list.source-kinds",
        "threads/list-kinds-of-a-known-client": "list.source-kinds",
    }
)
def any_kind_of_source_is_any_other() -> None:
    """The kinds of a thread/list are not looked at."""
    _queried(sources=())


@bug(reds={"threads/list-folders": "list.cwd-exact"})
def a_folder_is_any_that_begins_so() -> None:
    """A list by folder has the threads of all folders whose path begins as that one's."""
    _filtered("cwd", lambda summary, cwd: summary.cwd.startswith(cwd))


@bug(reds={"threads/list-search": "list.title-holds-term"})
def a_search_takes_any_case() -> None:
    """A search ignores upper and lower case."""
    _filtered("term", lambda summary, term: term.lower() in summary.preview.lower())


@bug(reds={"threads/list-search-names": "list.complete"})
def a_search_is_for_whole_words() -> None:
    """A thread is found by whole words of its title, not by a part of one."""
    _filtered("term", lambda one, term: term in f"{one.name} {one.preview}".split())


@bug(
    reds={
        "threads/list-after-restart": "status.unloaded-shown",
        "threads/list-unloaded": "status.unloaded-shown",
    }
)
def a_listed_thread_is_idle() -> None:
    """A list shows every thread that has no turn as idle, in memory or not."""

    def edit(kind: str, message: Message) -> list[Message]:
        if kind == "reply:thread/list":
            for thread in message["result"]["data"]:
                if thread["status"]["type"] == "notLoaded":
                    thread["status"] = {"type": "idle"}
        return [message]

    sent(edit)


@bug(reds={"threads/list-odd-requests": "scenario.crash: exit status 70"})
def a_cursor_of_nobody_ends_the_server() -> None:
    """The server stops at an unknown cursor."""

    def decode(original: Any) -> Any:
        def changed(cursor: str, *others: Any) -> Any:
            try:
                return original(cursor, *others)
            except Exception:
                os._exit(70)

        return changed

    swap("reference_server.index.cursor:decode_cursor", decode)


@bug(reds={"threads/list-running": "scenario.timeout: step request"})
def no_list_while_a_turn_runs() -> None:
    """A thread/list gets no answer while a turn runs."""
    running = 0

    def edit(kind: str, message: Message) -> list[Message]:
        nonlocal running
        running += (kind == "turn/started") - (kind == "turn/completed")
        return [] if kind == "reply:thread/list" and running else [message]

    sent(edit)


@bug(reds={"threads/list-by-another": "list.complete"}, server="keeper")
def a_client_lists_its_own_threads_alone() -> None:
    """A thread that another client started is not listed."""

    def listed(original: Any) -> Any:
        def changed(keeper: Any, thread: Any, params: Message) -> bool:
            mine = keeper.caller in keeper.heard_by.get(thread.wire["id"], ())
            return mine and original(keeper, thread, params)

        return changed

    swap(f"{KEEPER}.is_listed", listed)
