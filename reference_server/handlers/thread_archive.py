"""`thread/archive` and `thread/unarchive`.

Source: session-protocol "Thread storage and loading", "thread/archive". Not shown there: an active
turn is interrupted and a loaded thread is unloaded before it is archived. Refused are archiving an
archived or an ephemeral thread, and unarchiving one that is not archived.
"""

from harness.protocol.wire.rpc import Empty
from harness.protocol.wire.thread_operations import (
    ThreadArchivedNotification,
    ThreadArchiveParams,
    ThreadUnarchivedNotification,
    ThreadUnarchiveParams,
    ThreadUnarchiveResult,
)
from reference_server.call import Call
from reference_server.handlers.registry import handles
from reference_server.refusal import invalid_request


@handles("thread/archive")
async def thread_archive(call: Call, params: ThreadArchiveParams) -> None:
    """Interrupt the thread's turn, move its file, notify every client."""
    services, thread_id = call.services, params.thread_id
    thread = services.threads.find_loaded(thread_id)
    if thread is None:
        await services.threads.archive_stored(thread_id)
        call.answer(Empty())
    else:
        if (path := thread.recorder.path) is None:
            raise invalid_request(f"thread {thread_id} is ephemeral: it has no file to archive")
        await thread.end_turn()
        await services.threads.archive(thread, path)
        call.answer(Empty())
        services.everyone.notify(thread.status_notification())
    services.everyone.notify(ThreadArchivedNotification(thread_id=thread_id))


@handles("thread/unarchive")
async def thread_unarchive(call: Call, params: ThreadUnarchiveParams) -> None:
    """Move the file back, answer with the thread, notify every client."""
    thread = await call.services.threads.unarchive(params.thread_id)
    call.answer(ThreadUnarchiveResult(thread=thread))
    call.services.everyone.notify(ThreadUnarchivedNotification(thread_id=params.thread_id))
