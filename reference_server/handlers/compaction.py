"""`thread/compact/start`.

`engine.compaction` compacts. Source: session-protocol "Other thread operations"
("progress arrives by notifications"). Not shown there: a compaction is a turn, so it can be
interrupted, and is refused while another turn is active.
"""

from harness.protocol.wire.rpc import Empty
from harness.protocol.wire.thread_operations import ThreadCompactStartParams
from reference_server.call import Call
from reference_server.engine.compaction import compact
from reference_server.handlers.registry import handles


@handles("thread/compact/start")
async def thread_compact_start(call: Call, params: ThreadCompactStartParams) -> None:
    """Begin a turn that compacts the history, and answer without waiting for its end."""
    thread = await call.services.threads.get_loaded(params.thread_id)
    turn = await call.services.engine.prepare_work(thread, compact)
    call.answer(Empty())
    call.services.engine.run(thread, turn)
