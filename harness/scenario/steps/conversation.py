"""Steps on threads and turns: start, read, interrupt, steer."""

from typing import Any

from harness.scenario.client_steps import (
    InterruptStep,
    ReadThreadStep,
    StartThreadStep,
    StartTurnStep,
    SteerStep,
)
from harness.scenario.steps.context import FailureKind, StepContext, StepFailed, plays


@plays(StartThreadStep)
async def start_thread(context: StepContext, step: StartThreadStep) -> None:
    """Send thread/start with the scenario's settings, the profile's and the step's parameters."""
    body = step.start_thread
    params = {"cwd": str(context.cwd), **context.thread_params, **context.resolve(body.params)}
    await context.request(body.on, "thread/start", params, alias=body.alias)
    if body.alias not in context.cast.threads:
        raise StepFailed(FailureKind.REFUSED, "the answer to thread/start has no thread.id")


@plays(StartTurnStep)
async def start_turn(context: StepContext, step: StartTurnStep) -> None:
    """Send turn/start; with several scripted threads each first input carries a marker."""
    body = step.start_turn
    thread_id = context.thread(body.thread)
    inputs = [_text_input(body.text)] if body.input is None else context.resolve(body.input)
    marker = context.markers.pop(body.thread, "")
    if marker:
        inputs = [_text_input(marker), *inputs]
    params = {"threadId": thread_id, "input": inputs, **context.turn_params}
    params |= context.resolve(body.params)
    await context.request(body.on, "turn/start", params, alias=body.alias)
    if body.alias not in context.cast.turns:
        raise StepFailed(FailureKind.REFUSED, "the answer to turn/start has no turn.id")


@plays(InterruptStep)
async def interrupt(context: StepContext, step: InterruptStep) -> None:
    """Send turn/interrupt."""
    alias = step.interrupt.turn
    turn_id = context.turn(alias)
    params = {"threadId": context.cast.thread_of[alias], "turnId": turn_id}
    await context.request(step.interrupt.on, "turn/interrupt", params)


@plays(SteerStep)
async def steer(context: StepContext, step: SteerStep) -> None:
    """Send turn/steer with the turn as `expectedTurnId`."""
    body = step.steer
    turn_id = context.turn(body.turn)
    params = {
        "threadId": context.cast.thread_of[body.turn],
        "input": [_text_input(body.text)],
        "expectedTurnId": turn_id,
        **context.resolve(body.params),
    }
    peer = context.peer(body.on)
    request = await peer.send_request("turn/steer", params)
    await context.wait_for_answer(peer, request, body.expect, body.alias)


@plays(ReadThreadStep)
async def read_thread(context: StepContext, step: ReadThreadStep) -> None:
    """Send thread/read."""
    body = step.read_thread
    params: dict[str, Any] = {"threadId": context.thread(body.thread)}
    if body.include_turns:
        params["includeTurns"] = True
    await context.request(body.on, "thread/read", params)


def _text_input(value: str | None) -> dict[str, Any]:
    return {"type": "text", "text": value}
