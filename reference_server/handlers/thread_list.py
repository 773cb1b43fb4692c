"""`thread/list`.

Source: session-protocol "thread/list". Our choices where the text is silent: the newest come first,
a loaded thread has its live status, and a limit below 1 is refused.
"""

from typing import TYPE_CHECKING

from harness.protocol.wire.thread import NotLoadedStatus, Thread
from harness.protocol.wire.thread_operations import ThreadListParams, ThreadListResult
from reference_server.call import Call
from reference_server.handlers.registry import handles
from reference_server.refusal import invalid_params, invalid_request
from reference_server.rollout.reader import GivenUp
from reference_server.session.thread import LoadedThread

if TYPE_CHECKING:
    from reference_server.index.index import ListedThread
    from reference_server.index.query import Query

LIMIT = 25
"""Threads of a page if the client names no limit."""
MAX_PAGE_THREADS = 100
"""Maximum threads of a page; a larger limit counts as this."""


@handles("thread/list")
async def thread_list(call: Call, params: ThreadListParams) -> None:
    """Answer with one page of the stored threads."""
    # SQLite is not imported before the first list.
    from reference_server.index.cursor import BadCursor

    try:
        threads, cursor = await call.services.lists.page(_query(params), params.cursor)
    except BadCursor as error:
        raise invalid_params(f"cursor: {error}") from None
    except GivenUp:
        raise invalid_request("the server ends") from None
    loaded = call.services.threads.find_loaded
    data = [_listed_thread(one, loaded(one.summary.id)) for one in threads]
    call.answer(ThreadListResult(data=data, next_cursor=cursor))


def _query(params: ThreadListParams) -> "Query":
    """Return the query of the params; null counts as left out. Raises Refusal for a wrong limit."""
    from reference_server.index.query import Query

    if params.limit is not None and params.limit < 1:
        raise invalid_params("limit: must be at least 1")
    return Query(
        sort="updated" if params.sort_key == "updated_at" else "created",
        limit=min(params.limit or LIMIT, MAX_PAGE_THREADS),
        archived=bool(params.archived),
        providers=tuple(params.model_providers or ()),
        sources=tuple(params.source_kinds or ()),
        cwd=params.cwd,
        term=params.search_term,
    )


def _listed_thread(listed: "ListedThread", loaded: LoadedThread | None) -> Thread:
    """Return a thread for the list, from memory if it is loaded, else from the index."""
    if loaded is not None:
        return loaded.snapshot()
    summary = listed.summary
    thread = Thread(
        id=summary.id,
        preview=summary.preview,
        ephemeral=False,
        model_provider=summary.provider,
        created_at=int(summary.created_at),
        updated_at=int(summary.updated_at),
        status=NotLoadedStatus(),
        path=listed.path,
        cwd=summary.cwd,
        source=summary.source,
    )
    if summary.name is not None:
        thread.name = summary.name
    return thread
