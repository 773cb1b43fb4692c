"""Operations on threads that exist: list, archive, name, unload, roll back, compact.

Source: session-protocol "thread/list", "thread/archive", "Other thread operations", "Events". The
document shows the params of the six other operations and four of the payloads here not at all:
those are the shipping server's.
"""

from typing import Literal

from harness.protocol.wire.base import WireModel
from harness.protocol.wire.thread import Thread

ThreadSortKey = Literal["created_at", "updated_at"]


class ThreadListParams(WireModel):
    """Params of `thread/list`, all optional; `limit` is whole. Empty `modelProviders` is all."""

    cursor: str | None = None
    limit: int | None = None
    sort_key: ThreadSortKey | None = None
    model_providers: list[str] | None = None
    source_kinds: list[str] | None = None
    archived: bool | None = None
    cwd: str | None = None
    search_term: str | None = None


class ThreadListResult(WireModel):
    """Result of `thread/list`; `nextCursor` is null when there are no more pages."""

    data: list[Thread]
    next_cursor: str | None


class ThreadArchiveParams(WireModel):
    """Params of `thread/archive`."""

    thread_id: str


class ThreadUnarchiveParams(WireModel):
    """Params of `thread/unarchive`."""

    thread_id: str


class ThreadUnarchiveResult(WireModel):
    """Result of `thread/unarchive`: the restored thread."""

    thread: Thread


class ThreadNameSetParams(WireModel):
    """Params of `thread/name/set`; an empty name takes the name away."""

    thread_id: str
    name: str


class ThreadLoadedListParams(WireModel):
    """Params of `thread/loaded/list`: pages, as those of `thread/list`."""

    cursor: str | None = None
    limit: int | None = None


class ThreadLoadedListResult(WireModel):
    """Result of `thread/loaded/list`: ids of the threads in memory."""

    data: list[str]
    next_cursor: str | None


class ThreadUnsubscribeParams(WireModel):
    """Params of `thread/unsubscribe`."""

    thread_id: str


class ThreadUnsubscribeResult(WireModel):
    """Result of `thread/unsubscribe`: a word, no thread status."""

    status: Literal["unsubscribed", "notSubscribed", "notLoaded"]


class ThreadRollbackParams(WireModel):
    """Params of `thread/rollback`: how many of the last turns to drop, at least 1."""

    thread_id: str
    num_turns: int


class ThreadRollbackResult(WireModel):
    """Result of `thread/rollback`: the thread, its turns populated."""

    thread: Thread


class ThreadCompactStartParams(WireModel):
    """Params of `thread/compact/start`."""

    thread_id: str


class ThreadArchivedNotification(WireModel):
    """Params of `thread/archived`."""

    thread_id: str


class ThreadUnarchivedNotification(WireModel):
    """Params of `thread/unarchived`."""

    thread_id: str


class ThreadClosedNotification(WireModel):
    """Params of `thread/closed`: nobody is subscribed any more, the thread is unloaded."""

    thread_id: str


class ThreadNameUpdatedNotification(WireModel):
    """Params of `thread/name/updated`; `threadName` is null when the name was taken away."""

    thread_id: str
    thread_name: str | None
