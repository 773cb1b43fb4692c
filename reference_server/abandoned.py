"""Threads whose clients have all left: the latest ones stay loaded, the others are unloaded.

The specification unloads a thread after the last `thread/unsubscribe` and does not mention lost
connections. A client that comes back finds its thread loaded; a server that runs for months must
not keep all threads of all clients that ever left.
"""

import logging
from typing import TYPE_CHECKING, Final

from harness.protocol.wire.thread_operations import ThreadClosedNotification
from reference_server.session.thread import LoadedThread

if TYPE_CHECKING:
    from reference_server.services import Services

MAX_ABANDONED_THREADS: Final = 64

_log = logging.getLogger(__name__)


def threads_to_unload(services: "Services") -> list[LoadedThread]:
    """Return the abandoned threads above the maximum, those first that changed longest ago."""
    abandoned = [one for one in services.threads.loaded_threads if _is_abandoned(one)]
    abandoned.sort(key=lambda thread: thread.updated_at)
    return abandoned[: max(0, len(abandoned) - MAX_ABANDONED_THREADS)]


async def unload_abandoned(services: "Services", thread: LoadedThread) -> None:
    """Unload a thread, unless it is in use again; to be run in its lane."""
    if services.threads.find_loaded(thread.id) is not thread or not _is_abandoned(thread):
        return
    try:
        await services.threads.unload(thread)
    except OSError as error:
        _log.warning("%s stays loaded: %s", thread.id, error.strerror)
        return
    services.everyone.notify(thread.status_notification())
    services.everyone.notify(ThreadClosedNotification(thread_id=thread.id))


def _is_abandoned(thread: LoadedThread) -> bool:
    return thread.turn is None and not thread.subscribers.outboxes
