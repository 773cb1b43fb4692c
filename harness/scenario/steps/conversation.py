"""Threads and turns: start, read, interrupt, steer.

Here: the steps that know the parameters of one method and the aliases that it uses.
"""

from typing import Any

from harness.scenario.client_steps import (
    InterruptStep,
    ReadThreadStep,
    StartThreadStep,
    StartTurnStep,
    SteerStep,
)
from harness.scenario.steps.scene import Scene, StepFailed, plays
from harness.trace.values import dig, text


@plays(StartThreadStep)
async def start_thread(scene: Scene, step: StartThreadStep) -> None:
    """thread/start with the scenario's settings, the profile's and the step's parameters."""
    body = step.start_thread
    params = {"cwd": str(scene.cwd), **scene.thread_params, **scene.resolved(body.params)}
    answer = await scene.ask(body.on, "thread/start", params, alias=body.alias)
    thread_id = text(dig(answer.result, "thread", "id"))
    if not thread_id:
        raise StepFailed("refused", "the answer to thread/start has no thread.id")
    scene.cast.threads[body.alias] = thread_id


@plays(StartTurnStep)
async def start_turn(scene: Scene, step: StartTurnStep) -> None:
    """turn/start; the first input of a thread that shares the model carries its marker."""
    body = step.start_turn
    thread_id = scene.cast.threads[body.thread]
    given = [_text(body.text)] if body.input is None else scene.resolved(body.input)
    marker = scene.markers.pop(body.thread, "")
    if marker:
        given = [_text(marker), *given]
    params = {"threadId": thread_id, "input": given, **scene.resolved(body.params)}
    answer = await scene.ask(body.on, "turn/start", params, alias=body.alias)
    turn_id = text(dig(answer.result, "turn", "id"))
    if not turn_id:
        raise StepFailed("refused", "the answer to turn/start has no turn.id")
    scene.cast.turns[body.alias] = turn_id
    scene.cast.thread_of[body.alias] = thread_id


@plays(InterruptStep)
async def interrupt(scene: Scene, step: InterruptStep) -> None:
    """turn/interrupt"""
    alias = step.interrupt.turn
    params = {"threadId": scene.cast.thread_of[alias], "turnId": scene.cast.turns[alias]}
    await scene.ask(step.interrupt.on, "turn/interrupt", params)


@plays(SteerStep)
async def steer(scene: Scene, step: SteerStep) -> None:
    """turn/steer with the turn as its precondition."""
    body = step.steer
    params = {
        "threadId": scene.cast.thread_of[body.turn],
        "input": [_text(body.text)],
        "expectedTurnId": scene.cast.turns[body.turn],
        **scene.resolved(body.params),
    }
    peer = scene.peer(body.on)
    request = await peer.send_request("turn/steer", params)
    await scene.answer_to(peer, request, body.expect, body.alias)


@plays(ReadThreadStep)
async def read_thread(scene: Scene, step: ReadThreadStep) -> None:
    """thread/read"""
    body = step.read_thread
    params: dict[str, Any] = {"threadId": scene.cast.threads[body.thread]}
    if body.include_turns:
        params["includeTurns"] = True
    await scene.ask(body.on, "thread/read", params)


def _text(value: str | None) -> dict[str, Any]:
    return {"type": "text", "text": value}
