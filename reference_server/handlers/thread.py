"""The `thread/*` requests.

Here lives what each does, step by step; state lives in `session`. Source: session-protocol
"thread/start", "thread/read".
"""

from harness.wire.thread import (
    ThreadReadParams,
    ThreadReadResult,
    ThreadStartedNotification,
    ThreadStartParams,
    ThreadStartResult,
)
from reference_server.call import Call
from reference_server.handlers.registry import handles


@handles("thread/start")
async def thread_start(call: Call, params: ThreadStartParams) -> None:
    """Start a thread; the caller is its first subscriber."""
    thread = await call.services.threads.start(params)
    thread.subscribers.add(call.connection.outbox)
    settings = thread.settings
    call.answer(
        ThreadStartResult(
            thread=thread.snapshot(),
            model=settings.model,
            model_provider=settings.model_provider,
            cwd=settings.cwd,
            approval_policy=settings.approval_policy,
            sandbox=settings.sandbox,
        )
    )
    thread.subscribers.notify(ThreadStartedNotification(thread=thread.snapshot()))


@handles("thread/read")
async def thread_read(call: Call, params: ThreadReadParams) -> None:
    """Show a thread, without loading it."""
    thread = await call.services.threads.read(
        params.thread_id, with_turns=bool(params.include_turns)
    )
    call.answer(ThreadReadResult(thread=thread))
