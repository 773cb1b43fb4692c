"""The `turn/*` requests.

Here lives what each does, step by step; running a turn is `engine`'s. Source: session-protocol
"turn/start", "turn/interrupt".
"""

from harness.wire.rpc import Empty
from harness.wire.turn import TurnInterruptParams, TurnStartParams, TurnStartResult
from reference_server.handlers.registry import Call, handles
from reference_server.refusal import invalid_request


@handles("turn/start")
async def turn_start(call: Call, params: TurnStartParams) -> None:
    """Begin a turn and answer at once."""
    thread = call.server.threads.get_loaded(params.thread_id)
    turn = call.server.engine.prepare(thread, params)
    call.answer(TurnStartResult(turn=turn.wire()))
    call.server.engine.run(thread, turn)


@handles("turn/interrupt")
async def turn_interrupt(call: Call, params: TurnInterruptParams) -> None:
    """End the active turn, if it is the one named."""
    thread = call.server.threads.get_loaded(params.thread_id)
    turn = thread.turn
    if turn is None:
        raise invalid_request(f"thread {thread.id} has no active turn to interrupt")
    if turn.id != params.turn_id:
        raise invalid_request(
            f"turnId: the active turn of thread {thread.id} is {turn.id}, not {params.turn_id}"
        )
    call.answer(Empty())
    turn.interrupt()
