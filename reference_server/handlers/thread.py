"""`thread/start`, `thread/resume`, `thread/fork` and `thread/read`.

Source: session-protocol "thread/start", "thread/resume", "thread/fork", "thread/read".
"""

from harness.protocol.wire.thread import (
    Thread,
    ThreadForkParams,
    ThreadForkResult,
    ThreadReadParams,
    ThreadReadResult,
    ThreadResumeParams,
    ThreadResumeResult,
    ThreadStartedNotification,
    ThreadStartParams,
    ThreadStartResult,
)
from reference_server.call import Call
from reference_server.engine.client_tools import check_client_tools
from reference_server.gc_pause import garbage_collection_paused
from reference_server.handlers.registry import handles
from reference_server.session.source import source_of
from reference_server.settings import ThreadSettings


@handles("thread/start")
async def thread_start(call: Call, params: ThreadStartParams) -> None:
    """Start a thread; the caller is its first subscriber."""
    services = call.services
    check_client_tools(params.dynamic_tools or [])
    thread = await services.threads.start(params, source_of(call.connection.client_name))
    thread.subscribers.add(call.connection.outbox)
    call.answer(_opened_result(ThreadStartResult, thread.snapshot(), thread.settings))
    services.everyone.notify(ThreadStartedNotification(thread=thread.snapshot()))


@handles("thread/resume")
async def thread_resume(call: Call, params: ThreadResumeParams) -> None:
    """Load a thread, if it is not loaded, and subscribe the caller.

    The answer and the later notifications together must hold every event of the thread exactly
    once, so there is no await between reading the turns and subscribing.
    """
    services = call.services
    with garbage_collection_paused():
        opened = await services.threads.load(params.thread_id)
        thread = opened.thread
        snapshot = thread.snapshot(opened.turns())
        if params.personality is not None:
            update = {"personality": params.personality}
            thread.settings = thread.settings.model_copy(update=update)
        is_new = thread.subscribers.add(call.connection.outbox)
        call.answer(_opened_result(ThreadResumeResult, snapshot, thread.settings))
        was_loaded = opened.was_loaded
        # Free a long history before the garbage collector would look through it.
        del opened, snapshot
    if not was_loaded:
        services.everyone.notify(thread.status_notification())
    if is_new:
        services.server_requests.send_open_requests(thread.subscribers, call.connection.outbox)


@handles("thread/fork")
async def thread_fork(call: Call, params: ThreadForkParams) -> None:
    """Start a thread with the history of another; the caller is its first subscriber."""
    services = call.services
    source = source_of(call.connection.client_name)
    with garbage_collection_paused():
        thread, turns = await services.forks.fork(params.thread_id, source)
        thread.subscribers.add(call.connection.outbox)
        call.answer(ThreadForkResult(thread=thread.snapshot(turns)))
        del turns
    # Turns in a notification would have no items, so it has no turns.
    services.everyone.notify(ThreadStartedNotification(thread=thread.snapshot()))
    services.syncer.request(thread.recorder)


@handles("thread/read")
async def thread_read(call: Call, params: ThreadReadParams) -> None:
    """Answer with a thread, without loading it."""
    with garbage_collection_paused():
        thread = await call.services.threads.read(
            params.thread_id, with_turns=bool(params.include_turns)
        )
        call.answer(ThreadReadResult(thread=thread))
        del thread


def _opened_result(
    kind: type[ThreadStartResult], thread: Thread, settings: ThreadSettings
) -> ThreadStartResult:
    return kind(
        thread=thread,
        model=settings.model,
        model_provider=settings.model_provider,
        cwd=settings.cwd,
        approval_policy=settings.approval_policy,
        sandbox=settings.sandbox,
    )
