"""Steps that send messages: requests, notifications, raw bytes, answers to server requests."""

from typing import Any

from harness.scenario.client_steps import AnswerStep, NotifyStep, RequestStep, SendRawStep
from harness.scenario.paths import describe_expected, describe_nearest, has_values
from harness.scenario.player import StepFailed
from harness.scenario.steps.context import FailureKind, StepContext, plays
from harness.trace.frame import Frame, Kind


@plays(RequestStep)
async def request(context: StepContext, step: RequestStep) -> None:
    """Send a request; wait for its answer and check it, unless the step has `wait: false`."""
    body = step.request
    peer = context.peer(body.on)
    params = context.resolve(body.params)
    sent = await peer.send_request(body.method, params, deliberate=body.deliberate)
    if body.wait:
        answer = await context.wait_for_answer(peer, sent, body.expect, body.alias)
        expected = context.resolve(body.where)
        if answer.kind is Kind.RESPONSE and not has_values(answer.result, expected):
            expectation = describe_expected(
                f"{body.method} was answered by a result; expected one", expected
            )
            raise StepFailed(
                FailureKind.REFUSED, f"{expectation}; {describe_nearest([answer.result], expected)}"
            )
    else:
        context.unanswered_requests[body.alias or ""] = (peer, sent, body.expect)


@plays(NotifyStep)
async def notify(context: StepContext, step: NotifyStep) -> None:
    """Send a notification."""
    body = step.notify
    params = context.resolve(body.params)
    await context.peer(body.on).notify(body.method, params, deliberate=body.deliberate)


@plays(SendRawStep)
async def send_raw(context: StepContext, step: SendRawStep) -> None:
    """Send bytes unchanged; rules do not judge the client for them."""
    await context.peer(step.send_raw.on).send_raw(step.send_raw.raw)


@plays(AnswerStep)
async def answer(context: StepContext, step: AnswerStep) -> None:
    """Answer a server request that is open (or answered, for `again`), or every future one."""
    body = step.answer
    peer = context.peer(body.on)
    conditions = context.resolve(body.where)

    def has_method(frame: Frame) -> bool:
        return frame.kind is Kind.REQUEST and frame.method == body.to

    def is_question(frame: Frame) -> bool:
        return (
            has_method(frame)
            and any(open_question is frame for open_question in peer.questions.values())
            is not body.again
            and has_values(frame.params, conditions)
        )

    def describe_nearest_question() -> str:
        params_of_questions = [frame.params for frame in filter(has_method, peer.inbox.frames)]
        fate_of_match = "is not answered yet" if body.again else "was answered already"
        return describe_nearest(
            params_of_questions, conditions, within=("params",), fate_of_match=fate_of_match
        )

    async def answer_next() -> None:
        question = await peer.inbox.wait(is_question)
        while not is_question(question):  # another standing answer was faster
            question = await peer.inbox.wait(is_question)
        if body.alias is not None:
            context.values[body.alias] = question.params
        if body.error is not None:
            await peer.refuse(question, body.error.message, code=body.error.code)
            return
        has_decision = "decision" in body.model_fields_set
        result: Any = {"decision": body.decision} if has_decision else body.result
        deliberate = body.deliberate or body.again
        await peer.answer(question, context.resolve(result), deliberate=deliberate)

    async def answer_each() -> None:
        while True:
            await answer_next()

    if body.standing:
        context.run_beside_steps(answer_each)
        return
    article = "an answered" if body.again else "the"
    context.set_target(
        describe_expected(f"{article} server request {body.to}", conditions),
        describe_nearest_question,
    )
    await answer_next()
