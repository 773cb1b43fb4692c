"""Ten further bugs: settings, lists, returning clients, retries, reviews."""

from __future__ import annotations

import os
from typing import Any

from tests.conformance.bugs.planting import swap
from tests.fuzz.broken_servers.planting import Handler, handled
from tests.fuzz.broken_servers.registry import broken

TURN = "reference_server.engine.turn:ActiveTurn"
PATCH = "reference_server.engine.tools.patch:_PatchRun"
SUBSCRIBERS = "reference_server.session.subscribers:Subscribers"


@broken(tells="steer.granted")
def turn_that_compacted_takes_no_input() -> None:
    """A turn that has compacted the history rejects turn/steer, as a manual compaction does.

    Sequence: a turn uses so many tokens that the next one compacts automatically; after that the
    client steers it.
    Breaks "turn/steer": it fails only if no turn is active or the turn id is another.
    """

    def compact(original: Any) -> Any:
        async def changed(turn: Any) -> None:
            turn.compacts = True
            await original(turn)

        return changed

    def takes_input(original: Any) -> Any:
        return property(lambda turn: original.fget(turn) and not getattr(turn, "compacts", False))

    swap("reference_server.engine.turn:compact", compact)
    swap(f"{TURN}.takes_input", takes_input)


@broken(tells="rollback.drops")
def rollback_counts_what_was_steered() -> None:
    """A rollback counts user messages instead of turns, and steered input is a message too.

    Sequence: a turn is steered, and completes; thread/rollback drops one turn. Only the steered
    part is cut, and the turn is kept.
    Breaks "thread/rollback": it drops the last N turns.
    """
    from harness.protocol.wire.thread_operations import ThreadRollbackResult
    from reference_server.session.reading import LiveReading

    def rollback(original: Handler) -> Handler:
        async def changed(call: Any, params: Any) -> None:
            thread = call.services.threads.find_loaded(params.thread_id)
            if thread is None or thread.turn is not None or params.num_turns < 1:
                await original(call, params)
                return
            reading = LiveReading(thread)
            await reading.prepare()
            turns = reading.turns()
            said, dropped = params.num_turns, 0
            for turn in reversed(turns):
                said -= sum(item.type == "userMessage" for item in turn.items) or 1
                if said < 0:
                    break
                dropped += 1
            if dropped or not turns:
                more = params.model_copy(update={"num_turns": dropped or params.num_turns})
                await original(call, more)
            else:
                call.answer(ThreadRollbackResult(thread=thread.snapshot(turns)))

        return changed

    handled("thread/rollback", rollback)


@broken(tells="list.archived-apart")
def archived_again_is_listed_as_restored() -> None:
    """A thread that was restored and archived again is added to the next list of active threads.

    Sequence: thread/archive, thread/unarchive and thread/archive of a thread, without a list in
    between; then thread/list.
    Breaks "thread/list": false or null for archived lists non-archived threads.
    """
    restored: dict[str, Any] = {}

    def unarchive(original: Handler) -> Handler:
        async def changed(call: Any, params: Any) -> None:
            answer = call.answer

            def noted(result: Any) -> None:
                restored[params.thread_id] = result.thread
                answer(result)

            call.answer = noted
            await original(call, params)

        return changed

    def listed(original: Handler) -> Handler:
        async def changed(call: Any, params: Any) -> None:
            answer = call.answer

            def added(result: Any) -> None:
                for one in result.data:
                    restored.pop(one.id, None)
                answer(result.model_copy(update={"data": [*restored.values(), *result.data]}))

            filters = ("cursor", "limit", "model_providers", "source_kinds", "cwd", "search_term")
            if not params.archived and not any(getattr(params, name) for name in filters):
                call.answer = added
            await original(call, params)

        return changed

    handled("thread/unarchive", unarchive)
    handled("thread/list", listed)


@broken(tells="thread.cwd-captured")
def personality_of_a_resume_moves_the_thread() -> None:
    """A resume with a personality changes a loaded thread's cwd to that of the server.

    Sequence: thread/start, thread/resume of the thread, still loaded, with a personality; a turn
    that runs a command.
    Breaks "Thread": cwd is the working directory captured for the thread.
    """

    def resume(original: Handler) -> Handler:
        async def changed(call: Any, params: Any) -> None:
            thread = call.services.threads.find_loaded(params.thread_id)
            await original(call, params)
            if thread is not None and params.personality is not None:
                thread.settings = thread.settings.model_copy(update={"cwd": os.getcwd()})

        return changed

    handled("thread/resume", resume)


@broken(tells="error.names-turn")
def retry_of_a_second_thread_is_told_of_the_first() -> None:
    """The server remembers one retrying thread, and reports retries of other threads on it.

    Sequence: the model's stream for a turn breaks off, and during the retry that of a turn of
    another thread breaks off too.
    Breaks "Events": `error` has the threadId and the turnId of the turn.
    """
    from harness.protocol.wire.error import ErrorNotification

    trying: list[str] = []

    def tell(original: Any) -> Any:
        def changed(turn: Any, error: Any, *, retry: bool) -> None:
            if not retry:
                original(turn, error, retry=retry)
                return
            if not trying:
                trying.append(turn.thread.id)
            turn.thread.subscribers.notify(
                ErrorNotification(
                    error=error, will_retry=True, thread_id=trying[0], turn_id=turn.id
                )
            )

        return changed

    def ask(original: Any) -> Any:
        async def changed(turn: Any, *about: Any) -> Any:
            try:
                return await original(turn, *about)
            finally:
                if trying == [turn.thread.id]:
                    trying.clear()

        return changed

    swap(f"{TURN}._tell_error", tell)
    swap(f"{TURN}.ask", ask)


@broken(tells="turn.started-once")
def back_after_leaving_is_told_twice() -> None:
    """A client that unsubscribes from a shared thread and resumes it is subscribed twice.

    Sequence: a second client resumes a thread, unsubscribes from it, and resumes it again; a turn.
    Breaks "turn/start": turn/started is emitted.
    """

    def remove(original: Any) -> Any:
        def changed(subscribers: Any, outbox: Any) -> bool:
            was = original(subscribers, outbox)
            while outbox in subscribers._outboxes:
                subscribers._outboxes.remove(outbox)
            if was and subscribers._outboxes:
                subscribers.left = [*getattr(subscribers, "left", []), outbox]
            return was

        return changed

    def add(original: Any) -> Any:
        def changed(subscribers: Any, outbox: Any) -> bool:
            new = original(subscribers, outbox)
            if new and outbox in getattr(subscribers, "left", []):
                subscribers._outboxes.append(outbox)
            return new

        return changed

    swap(f"{SUBSCRIBERS}.remove", remove)
    swap(f"{SUBSCRIBERS}.add", add)


@broken(tells="fork.copies-history")
def fork_leaves_out_turns_without_input() -> None:
    """A fork copies only turns with a user message, so no reviews.

    Sequence: review/start; after its end, thread/fork.
    Breaks "thread/fork": the new thread has the copied history.
    """

    def read(original: Any) -> Any:
        async def changed(forks: Any, thread_id: str, loaded: Any) -> Any:
            copied = await original(forks, thread_id, loaded)
            begun = {
                found[1]
                for found, line in copied._lines
                if found is not None and b'"type":"userMessage"' in line
            }
            copied.turns = {key: new for key, new in copied.turns.items() if key in begun}
            copied._lines = [
                (found, line) for found, line in copied._lines if not found or found[1] in begun
            ]
            return copied

        return changed

    swap("reference_server.session.forking:Forks._original", read)


@broken(tells="turn.diff-whole")
def declined_change_empties_the_diff() -> None:
    """A declined file change removes the earlier changes from the turn's diff.

    Sequence: in one turn the client accepts a change of one file, then declines one of another.
    Breaks "Events": diff is the unified diff string of the turn.
    """

    def complete(original: Any) -> Any:
        async def changed(run: Any, status: Any) -> None:
            if status == "declined":
                run._context.diff._baseline.clear()
            await original(run, status)

        return changed

    swap(f"{PATCH}._complete", complete)


@broken(tells="name.told")
def name_set_in_a_turn_is_lost_by_an_interrupt() -> None:
    """A name that is set while a turn runs is applied at its end, and lost after an interrupt.

    Sequence: while a turn runs, thread/name/set; then turn/interrupt.
    Breaks "thread/name/set": it sets the name; thread/name/updated is emitted when that changes.
    """
    from harness.protocol.wire.rpc import Empty

    def name(original: Handler) -> Handler:
        async def changed(call: Any, params: Any) -> None:
            thread = call.services.threads.find_loaded(params.thread_id)
            if thread is None or thread.turn is None:
                await original(call, params)
                return
            turn = thread.turn
            waiting = turn.__dict__.setdefault("names", [])
            call.answer(Empty())
            call.answer = lambda _: None
            waiting.append((original, call, params))
            if len(waiting) == 1:
                call.services.engine._tasks.start_soon(at_the_end, turn)

        return changed

    async def at_the_end(turn: Any) -> None:
        await turn.end_event.wait()
        if not turn.is_interrupted:
            for original, call, params in turn.names:
                await original(call, params)

    handled("thread/name/set", name)


@broken(tells="item.completed-once")
def interrupt_completes_what_a_retry_cut_off() -> None:
    """An interrupt during a retry completes the items of the failed attempt a second time.

    Sequence: the model's stream breaks off within a message; the server retries, and the turn is
    interrupted while the model streams.
    Breaks "Item lifecycle": item/completed carries the final item, once.
    """

    def began(original: Any) -> Any:
        def changed(sampling: Any, log: Any, *about: Any) -> None:
            original(sampling, log, *about)
            sampling.taken_over, log.cut_off = getattr(log, "cut_off", []), []

        return changed

    def cut(original: Any) -> Any:
        def changed(sampling: Any) -> Any:
            sampling.were_open = [item for _, item in sampling._open]
            return original(sampling)

        return changed

    def tell_retry(original: Any) -> Any:
        def changed(turn: Any, *about: Any) -> None:
            turn.log.cut_off = getattr(turn._sampling, "were_open", [])
            original(turn, *about)

        return changed

    def cut_off(original: Any) -> Any:
        def changed(turn: Any) -> None:
            if turn.is_interrupted:
                for item in turn._sampling.taken_over:
                    item.complete()
            original(turn)

        return changed

    swap("reference_server.engine.sampling:Sampling.__init__", began)
    swap("reference_server.engine.sampling:Sampling.cut", cut)
    swap(f"{TURN}.tell_retry", tell_retry)
    swap(f"{TURN}._cut_off", cut_off)
