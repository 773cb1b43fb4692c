"""`thread/rollback`.

Source: session-protocol "Other thread operations" ("drops the last N turns"). Not shown there: it
is refused while a turn is active; more turns than there are leaves none; files that turns have
changed stay as they are. The rollout keeps what was dropped, and a record says that it was.
"""

from harness.protocol.wire.thread_operations import ThreadRollbackParams, ThreadRollbackResult
from reference_server.call import Call
from reference_server.engine.start import check_idle
from reference_server.handlers.registry import handles
from reference_server.refusal import invalid_params
from reference_server.rollout.records import RollbackRecord
from reference_server.session.reading import LiveReading

MAX_TURNS = 2**31
"""A larger number drops no more turns, and might be more than another reader of the file takes."""


@handles("thread/rollback")
async def thread_rollback(call: Call, params: ThreadRollbackParams) -> None:
    """Record that the turns are dropped, and continue from the rest."""
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
