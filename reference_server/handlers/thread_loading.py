"""Threads in memory: `thread/unsubscribe`, `thread/loaded/list`.

Source: session-protocol "Thread storage and loading", "Other thread operations". Not shown there:
an active turn is interrupted, and its turn/completed sent, before its thread is unloaded; then come
the answer, the status notLoaded and thread/closed, in this order.
"""

from harness.protocol.wire.thread_operations import (
    ThreadClosedNotification,
    ThreadLoadedListParams,
    ThreadLoadedListResult,
    ThreadUnsubscribeParams,
    ThreadUnsubscribeResult,
)
from reference_server.brief import brief
from reference_server.call import Call
from reference_server.handlers.registry import handles
from reference_server.ids import is_thread_id, thread_number
from reference_server.refusal import invalid_params

MAX_LISTED = 1000
"""Maximum ids of one page, and their number if the client names no limit."""


@handles("thread/unsubscribe")
async def thread_unsubscribe(call: Call, params: ThreadUnsubscribeParams) -> None:
    """Unsubscribe the caller; unload the thread if it was the last subscriber."""
    services, caller = call.services, call.connection.outbox
    thread = services.threads.find_loaded(params.thread_id)
    if thread is None:
        await services.threads.find_stored(params.thread_id)
        call.answer(ThreadUnsubscribeResult(status="notLoaded"))
        return
    if not thread.subscribers.has(caller):
        call.answer(ThreadUnsubscribeResult(status="notSubscribed"))
        return
    if thread.subscribers.outboxes != [caller]:
        thread.subscribers.remove(caller)
        call.answer(ThreadUnsubscribeResult(status="unsubscribed"))
        return
    # Nobody can subscribe meanwhile: thread/resume waits in the same lane.
    await thread.end_turn()
    await services.threads.unload(thread)
    thread.subscribers.remove(caller)
    call.answer(ThreadUnsubscribeResult(status="unsubscribed"))
    services.everyone.notify(thread.status_notification())
    services.everyone.notify(ThreadClosedNotification(thread_id=thread.id))


@handles("thread/loaded/list")
async def thread_loaded_list(call: Call, params: ThreadLoadedListParams) -> None:
    """List the ids of loaded threads by number, so that new threads do not shift the pages."""
    limit = MAX_LISTED if params.limit is None else params.limit
    if limit < 1:
        raise invalid_params("limit: must be at least 1")
    limit = min(limit, MAX_LISTED)
    ids = sorted((thread.id for thread in call.services.threads.loaded_threads), key=thread_number)
    if params.cursor is not None:
        if not is_thread_id(params.cursor):
            raise invalid_params(f"cursor: {brief(params.cursor)} is from no earlier answer")
        after = thread_number(params.cursor)
        ids = [one for one in ids if thread_number(one) > after]
    page = ids[:limit]
    call.answer(
        ThreadLoadedListResult(data=page, next_cursor=page[-1] if len(ids) > limit else None)
    )
