"""`review/start`.

`engine.review` reviews. The specification has no request for a review, so this is the shipping
server's: an inline review is a turn of the thread, a detached one a turn of a new thread with the
same settings.
"""

from harness.protocol.wire.review import ReviewStartParams, ReviewStartResult
from harness.protocol.wire.thread import ThreadStartedNotification
from reference_server.call import Call
from reference_server.engine.review import Review
from reference_server.handlers.registry import handles
from reference_server.refusal import invalid_params


@handles("review/start")
async def review_start(call: Call, params: ReviewStartParams) -> None:
    """Begin the turn of a review, and answer without waiting for its end."""
    services = call.services
    thread = await services.threads.get_loaded(params.thread_id)
    try:
        review = Review(params.target)
    except ValueError as error:
        raise invalid_params(str(error)) from None
    if params.delivery == "detached":
        thread = await services.threads.start_beside(thread)
        thread.subscribers.add(call.connection.outbox)
    turn = await services.engine.prepare_work(thread, review.run)
    call.answer(ReviewStartResult(turn=turn.wire(), review_thread_id=thread.id))
    if params.delivery == "detached":
        services.everyone.notify(ThreadStartedNotification(thread=thread.snapshot()))
    services.engine.run(thread, turn)
