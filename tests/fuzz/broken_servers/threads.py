"""Bugs in operations on threads: rollback, archive, resume, fork, subscriptions."""

from __future__ import annotations

from typing import Any

import anyio

from tests.conformance.bugs.planting import swap
from tests.fuzz.broken_servers.planting import Handler, handled, noticed
from tests.fuzz.broken_servers.registry import broken

SLOW_SECONDS = 1.0
"""Seconds that a slow request takes, unless what it waits for comes."""


@broken(tells="rollback.drops")
def rollback_after_a_compaction_drops_more() -> None:
    """A rollback right after a compaction drops one turn too many.

    Sequence: two turns or more, of which the last compacts the history, or is followed by
    thread/compact/start; then thread/rollback. A turn that only compacts is not counted at all,
    which the specification allows.
    Breaks "thread/rollback": it drops the last N turns.
    """
    from reference_server.rollout.records import CompactedRecord, TurnStartedRecord

    def record(original: Any) -> Any:
        def changed(thread: Any, one: Any) -> None:
            original(thread, one)
            if isinstance(one, TurnStartedRecord):
                thread.compacted = 0
            elif isinstance(one, CompactedRecord):
                thread.compacted = 1 if thread.turn is None or thread.turn.takes_input else 2

        return changed

    def rollback(original: Handler) -> Handler:
        async def changed(call: Any, params: Any) -> None:
            thread = call.services.threads.find_loaded(params.thread_id)
            more = getattr(thread, "compacted", 0)
            await original(call, params.model_copy(update={"num_turns": params.num_turns + more}))

        return changed

    swap("reference_server.session.thread:LoadedThread.record", record)
    handled("thread/rollback", rollback)


@broken(tells="name.told")
def name_set_while_archiving_is_lost() -> None:
    """A name that is set before thread/archive is answered is accepted, and lost.

    Sequence: thread/archive, and thread/name/set for the same thread without waiting. Archiving is
    slow here, so that the second request comes before its answer.
    Breaks "thread/name/set": it sets the name; thread/name/updated is emitted when that changes.
    """
    from harness.protocol.wire.rpc import Empty

    archiving: dict[str, int] = {}
    named: dict[str, anyio.Event] = {}
    lost: list[tuple[Any, Any]] = []

    def notice(connection: Any, request: Any) -> None:
        params: Any = request.params
        thread_id = params.get("threadId") if isinstance(params, dict) else None
        if not isinstance(thread_id, str):
            return
        if request.method == "thread/archive":
            archiving[thread_id] = archiving.get(thread_id, 0) + 1
            named[thread_id] = anyio.Event()
        elif request.method == "thread/name/set" and archiving.get(thread_id):
            lost.append((connection, request.id))
            named[thread_id].set()

    def archive(original: Handler) -> Handler:
        async def changed(call: Any, params: Any) -> None:
            try:
                with anyio.move_on_after(SLOW_SECONDS):
                    await named[params.thread_id].wait()
                await original(call, params)
            finally:
                archiving[params.thread_id] -= 1

        return changed

    def name(original: Handler) -> Handler:
        async def changed(call: Any, params: Any) -> None:
            if (call.connection, call._id) in lost:
                lost.remove((call.connection, call._id))
                call.answer(Empty())
            else:
                await original(call, params)

        return changed

    noticed(notice)
    handled("thread/archive", archive)
    handled("thread/name/set", name)


@broken(tells="fork.copies-history")
def fork_has_the_turns_of_the_last_resume() -> None:
    """A fork of a thread that was resumed from its file lacks the turns made since.

    Sequence: a thread with a turn is unloaded and resumed; another turn; thread/fork.
    Breaks "thread/fork": the new thread has the copied history.
    """

    def load(original: Any) -> Any:
        async def changed(threads: Any, thread_id: str) -> Any:
            opened = await original(threads, thread_id)
            if not opened.was_loaded:
                opened.thread.resumed_with = [turn.id for turn in opened.history]
            return opened

        return changed

    def read(original: Any) -> Any:
        async def changed(forks: Any, thread_id: str, loaded: Any) -> Any:
            copied = await original(forks, thread_id, loaded)
            known = getattr(loaded, "resumed_with", None)
            if known:
                ids = {one.encode() for one in known}
                copied.turns = {key: new for key, new in copied.turns.items() if key in ids}
                copied._lines = [
                    (found, line)
                    for found, line in copied._lines
                    if found is None or found[1] in ids
                ]
            return copied

        return changed

    swap("reference_server.session.registry:Threads.load", load)
    swap("reference_server.session.forking:Forks._original", read)


@broken(tells="turn.started-announced")
def fork_by_another_client_takes_the_subscription() -> None:
    """A fork by a client that is not subscribed to the thread unsubscribes all others.

    Sequence: one client starts a thread; another forks it; the first starts a turn.
    Breaks "turn/start": turn/started and turn/completed are emitted.
    """

    def fork(original: Handler) -> Handler:
        async def changed(call: Any, params: Any) -> None:
            await original(call, params)
            thread = call.services.threads.find_loaded(params.thread_id)
            caller = call.connection.outbox
            if thread is not None and not thread.subscribers.has(caller):
                for outbox in thread.subscribers.outboxes:
                    thread.subscribers.remove(outbox)

        return changed

    handled("thread/fork", fork)


@broken(tells="loading.closed-told")
def resumed_twice_must_be_left_twice() -> None:
    """A client that resumes a thread it is subscribed to counts as two subscribers.

    Sequence: thread/start; thread/resume of the same thread; thread/unsubscribe.
    Breaks "Thread storage and loading": a thread whose last subscriber leaves is unloaded, and
    thread/closed is emitted.
    """
    held: dict[tuple[int, str], int] = {}

    def resume(original: Handler) -> Handler:
        async def changed(call: Any, params: Any) -> None:
            thread = call.services.threads.find_loaded(params.thread_id)
            again = thread is not None and thread.subscribers.has(call.connection.outbox)
            await original(call, params)
            if again:
                key = id(call.connection.outbox), params.thread_id
                held[key] = held.get(key, 0) + 1

        return changed

    def unsubscribe(original: Handler) -> Handler:
        async def changed(call: Any, params: Any) -> None:
            from harness.protocol.wire.thread_operations import ThreadUnsubscribeResult

            key = id(call.connection.outbox), params.thread_id
            if held.pop(key, 0):
                call.answer(ThreadUnsubscribeResult(status="unsubscribed"))
            else:
                await original(call, params)

        return changed

    handled("thread/resume", resume)
    handled("thread/unsubscribe", unsubscribe)
