"""The `turn/*` requests.

Source: session-protocol "turn/start", "turn/interrupt", "turn/steer".
"""

from harness.protocol.wire.rpc import Empty
from harness.protocol.wire.turn import (
    TurnInterruptParams,
    TurnStartParams,
    TurnStartResult,
    TurnSteerParams,
    TurnSteerResult,
)
from reference_server.brief import brief
from reference_server.call import Call
from reference_server.engine.start import check_input
from reference_server.handlers.registry import handles
from reference_server.refusal import invalid_request
from reference_server.session.thread import LoadedThread, RunningTurn


@handles("turn/start")
async def turn_start(call: Call, params: TurnStartParams) -> None:
    """Begin a turn, and answer without waiting for its end."""
    thread = await call.services.threads.get_loaded(params.thread_id)
    schema = None
    if params.output_schema is not None:
        schema = await call.services.engine.schema(thread, params)
        # Compiling the schema took time, and the thread may have been unloaded.
        thread = await call.services.threads.get_loaded(params.thread_id)
    turn = await call.services.engine.prepare(thread, params, schema)
    call.answer(TurnStartResult(turn=turn.wire()))
    call.services.engine.run(thread, turn)


@handles("turn/interrupt")
async def turn_interrupt(call: Call, params: TurnInterruptParams) -> None:
    """Interrupt the active turn if it has the id; refuse otherwise."""
    thread = await call.services.threads.get_loaded(params.thread_id)
    turn = _active_turn(thread, params.turn_id, "turnId", "interrupt")
    call.answer(Empty())
    turn.interrupt()


@handles("turn/steer")
async def turn_steer(call: Call, params: TurnSteerParams) -> None:
    """Add input to the active turn if it has the expected id; refuse otherwise."""
    thread = await call.services.threads.get_loaded(params.thread_id)
    check_input(params.input)
    await _steerable_turn(thread, params.expected_turn_id).start_event.wait()
    words = await call.services.engine.read_input(thread, params.input)
    # Waiting and reading took time, and the turn may have ended meanwhile.
    turn = _steerable_turn(thread, params.expected_turn_id)
    tell = turn.steer(params.input, words)
    call.answer(TurnSteerResult(turn_id=turn.id))
    tell()


def _steerable_turn(thread: LoadedThread, expected: str) -> RunningTurn:
    turn = _active_turn(thread, expected, "expectedTurnId", "steer")
    if not turn.takes_input:
        raise invalid_request(
            f"turn {turn.id} is a compaction or a review: it takes no input; wait for its "
            "turn/completed"
        )
    if turn.is_interrupted:
        raise invalid_request(f"turn {turn.id} is being interrupted: it takes no further input")
    return turn


def _active_turn(thread: LoadedThread, turn_id: str, parameter: str, purpose: str) -> RunningTurn:
    turn = thread.turn
    if turn is None:
        raise invalid_request(f"thread {thread.id} has no active turn to {purpose}")
    if turn.id != turn_id:
        raise invalid_request(
            f"{parameter}: the active turn of thread {thread.id} is {turn.id}, not {brief(turn_id)}"
        )
    return turn
