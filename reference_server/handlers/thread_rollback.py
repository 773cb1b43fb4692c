"""`thread/rollback`.

Source: session-protocol "Other thread operations" ("drops the last N turns"). Not shown there: it
is refused while a turn is active; an N above the number of turns leaves none; files that turns have
changed stay as they are. The rollout keeps the dropped turns and gets a record of the rollback.
"""

from harness.protocol.wire.thread_operations import ThreadRollbackParams, ThreadRollbackResult
from reference_server.call import Call
from reference_server.engine.start import check_idle
from reference_server.handlers.registry import handles
from reference_server.refusal import invalid_params
from reference_server.rollout.records import RollbackRecord
from reference_server.session.reading import LiveReading

MAX_TURNS = 2**31
"""Largest number recorded: it drops all turns, and every reader of the file can hold it."""


@handles("thread/rollback")
async def thread_rollback(call: Call, params: ThreadRollbackParams) -> None:
    """Record that the last turns are dropped, and answer with the thread of the others."""
    if params.num_turns < 1:
        raise invalid_params("numTurns: must be at least 1")
    services = call.services
    async with services.threads.for_writing(params.thread_id, archived=False) as thread:
        check_idle(thread)
        reading = LiveReading(thread)
        await reading.prepare()
        thread.record(RollbackRecord(at=thread.clock(), num_turns=min(params.num_turns, MAX_TURNS)))
        stored = reading.stored_thread()
        thread.forget_turns(stored)
        snapshot = thread.snapshot(stored.turns)
    call.answer(ThreadRollbackResult(thread=snapshot))
