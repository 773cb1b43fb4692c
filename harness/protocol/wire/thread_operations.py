"""Operations on threads that exist: list, archive, name, unload, roll back, compact.

Source: session-protocol "thread/list", "thread/archive", "Other thread operations", "Events". The
document does not show the params of the six other operations, nor four of the payloads here: those
are the shipping server's.
"""

from typing import Literal

from harness.protocol.wire.base import WireModel
from harness.protocol.wire.thread import Thread

ThreadSortKey = Literal["created_at", "updated_at"]


class ThreadListParams(WireModel):
    """Params of `thread/list`, all optional; empty `modelProviders` means all providers."""

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
    """Params of `thread/name/set`; an empty name removes the thread's name."""

    thread_id: str
    name: str


class ThreadLoadedListParams(WireModel):
    """Params of `thread/loaded/list`, which has pages as `thread/list` has."""

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
    """Result of `thread/unsubscribe`: a word, not a thread status."""

    status: Literal["unsubscribed", "notSubscribed", "notLoaded"]


class ThreadRollbackParams(WireModel):
    """Params of `thread/rollback`: the number of last turns to drop, at least 1."""

    thread_id: str
    num_turns: int


class ThreadRollbackResult(WireModel):
    """Result of `thread/rollback`: the thread with its remaining turns."""

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
    """Params of `thread/closed`: the thread lost its last subscriber and is unloaded."""

    thread_id: str


class ThreadNameUpdatedNotification(WireModel):
    """Params of `thread/name/updated`; `threadName` is null if the name was removed."""

    thread_id: str
    thread_name: str | None
