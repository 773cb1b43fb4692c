"""Any message: requests, notifications, raw bytes, answers to the server's requests."""

from typing import Any

from harness.scenario.client_steps import AnswerStep, NotifyStep, RequestStep, SendRawStep
from harness.scenario.paths import described, fits, nearest_of
from harness.scenario.player import StepFailed
from harness.scenario.steps.context import StepContext, UnmetKind, plays
from harness.trace.frame import Frame, Kind


@plays(RequestStep)
async def request(context: StepContext, step: RequestStep) -> None:
    """A request, and its answer unless the step goes on without."""
    body = step.request
    peer = context.peer(body.on)
    params = context.resolved(body.params)
    sent = await peer.send_request(body.method, params, deliberate=body.deliberate)
    if body.wait:
        answer = await context.answer_to(peer, sent, body.expect, body.alias)
        where = context.resolved(body.where)
        if answer.kind is Kind.RESPONSE and not fits(answer.result, where):
            wanted = described(f"{body.method} was answered by a result; expected one", where)
            raise StepFailed(UnmetKind.REFUSED, f"{wanted}; {nearest_of([answer.result], where)}")
    else:
        context.sent[body.alias or ""] = (peer, sent, body.expect)


@plays(NotifyStep)
async def notify(context: StepContext, step: NotifyStep) -> None:
    """A notification."""
    body = step.notify
    params = context.resolved(body.params)
    await context.peer(body.on).notify(body.method, params, deliberate=body.deliberate)


@plays(SendRawStep)
async def send_raw(context: StepContext, step: SendRawStep) -> None:
    """Bytes as they are; nobody is blamed for them."""
    await context.peer(step.send_raw.on).send_raw(step.send_raw.raw)


@plays(AnswerStep)
async def answer(context: StepContext, step: AnswerStep) -> None:
    """Answer a server request that is not answered yet (or is, for `again`), or each to come."""
    body = step.answer
    peer = context.peer(body.on)
    where = context.resolved(body.where)

    def asks(frame: Frame) -> bool:
        return frame.kind is Kind.REQUEST and frame.method == body.to

    def is_asked(frame: Frame) -> bool:
        return (
            asks(frame)
            and any(one is frame for one in peer.questions.values()) is not body.again
            and fits(frame.params, where)
        )

    def came() -> str:
        asked = [frame.params for frame in filter(asks, peer.inbox.frames)]
        but = "is not answered yet" if body.again else "was answered already"
        return nearest_of(asked, where, within=("params",), but=but)

    async def answer_next() -> None:
        question = await peer.inbox.wait(is_asked)
        while not is_asked(question):  # another standing answer was woken by it and was first
            question = await peer.inbox.wait(is_asked)
        if body.alias is not None:
            context.values[body.alias] = question.params
        if body.error is not None:
            await peer.refuse(question, body.error.message, code=body.error.code)
            return
        decided = "decision" in body.model_fields_set
        result: Any = {"decision": body.decision} if decided else body.result
        deliberate = body.deliberate or body.again
        await peer.answer(question, context.resolved(result), deliberate=deliberate)

    async def answer_each() -> None:
        while True:
            await answer_next()

    if body.standing:
        context.beside(answer_each)
        return
    which = "an answered" if body.again else "the"
    context.waits_for(described(f"{which} server request {body.to}", where), came)
    await answer_next()
