"""Steps of a race: reach a position, act there, check the result."""

import contextlib
import json
from functools import partial
from typing import Any

import anyio

from harness.client.inbox import Predicate
from harness.errors import TargetGone
from harness.protocol.values import dig, text
from harness.scenario.client_steps import MAIN_CONNECTION, StartTurn
from harness.scenario.positions import RACE_GATE, Position, Sight
from harness.scenario.races import (
    Act,
    ActStep,
    AgainStep,
    BeginStep,
    ReachStep,
    ReviveStep,
    SettleStep,
)
from harness.scenario.steps.context import FailureKind, StepContext, StepFailed, plays
from harness.scenario.steps.wait_targets import model_call
from harness.scenario.steps.waits import ends_turn
from harness.trace.frame import Frame, Kind
from harness.trace.marks import RaceActs

ADDED_TEXT = "Mind the heron by the lock."
"""The steered input; no other text of a scenario contains it."""
SECOND_TURN, REVIVED_TURN = "race-second", "race-revived"
ATTACHED_CONNECTION = "race-attached"


@plays(BeginStep)
async def begin(context: StepContext, step: BeginStep) -> None:
    """Send turn/start without waiting for its answer."""
    body = step.begin.turn
    peer = context.peer(body.on)
    request = await peer.send_request("turn/start", turn_params(context, body))
    context.unanswered_requests[body.alias] = (peer, request, "any")


def turn_params(context: StepContext, body: StartTurn) -> dict[str, Any]:
    """Return the params of turn/start; a raced scenario has one thread, so no marker."""
    inputs = [{"type": "text", "text": body.text}] if body.input is None else body.input
    params = {"threadId": context.thread(body.thread), "input": context.resolve(inputs)}
    return params | context.turn_params | context.resolve(body.params)


@plays(ReachStep)
async def reach(context: StepContext, step: ReachStep) -> None:
    """Wait for all events of a position.

    Raises `StepFailed` if the turn ends first, `TargetGone` if the connection does.
    """
    position: Position = step.reach.position
    thread_id = context.thread(step.reach.thread)
    reached, connection_ended = False, False
    async with anyio.create_task_group() as tasks:

        async def watch_end_of_turn() -> None:
            with contextlib.suppress(TargetGone):
                await context.peer().inbox.wait(partial(_ends_turn_of, thread_id))
                tasks.cancel_scope.cancel()

        if position.is_before_end:
            tasks.start_soon(watch_end_of_turn)
        try:
            for sight in position.sights:
                await _wait_for_sight(context, thread_id, sight)
            reached = True
        except TargetGone:
            connection_ended = True
        tasks.cancel_scope.cancel()
    if connection_ended:
        raise TargetGone("the server closed the connection")
    if not reached:
        raise StepFailed(FailureKind.NOT_REACHED, f"the turn ended before {position.name}")


async def _wait_for_sight(context: StepContext, thread_id: str, sight: Sight) -> None:
    inbox = context.peer().inbox
    match sight.kind:
        case "gate":
            await context.wait_unless_gone(
                partial(context.model.gates.wait_until_reached, RACE_GATE), "the model's stream"
            )
        case "pipe":
            name = sight.method
            await context.wait_unless_gone(
                partial(context.model.gates.wait_until_reached, name), f"the pipe {name}"
            )
        case "model-end":
            wait_for_end = partial(context.model.wait_for_call, sight.nth, until_ended=True)
            await context.wait_unless_gone(wait_for_end, model_call(sight.nth, until_ended=True))
        case "turn-end":
            context.set_target("the end of the turn")
            await inbox.wait(partial(_ends_turn_of, thread_id))
        case "message":
            context.set_target(f"{sight.method} ({sight.nth})")
            await inbox.wait(
                _nth_match(sight.nth, partial(_is_message_of, thread_id, sight.method))
            )
        case "started" | "completed":
            context.set_target(f"{sight.method} {sight.nth} {sight.kind}")
            item_started = partial(_shows_item, thread_id, "item/started", sight.method)
            started = await inbox.wait(_nth_match(sight.nth, item_started))
            if sight.kind == "completed":
                item = text(dig(started.params, "item", "id"))
                await inbox.wait(partial(_completes_item, thread_id, item))


def _nth_match(number: int, matches: Predicate) -> Predicate:
    """Return a predicate for the `number`-th match; it must see each frame once, in order."""
    count = 0

    def is_nth(frame: Frame) -> bool:
        nonlocal count
        matched = matches(frame)
        count += matched
        return matched and count == number

    return is_nth


def _is_message_of(thread_id: str, method: str, frame: Frame) -> bool:
    is_message = frame.kind in (Kind.NOTIFICATION, Kind.REQUEST) and frame.from_target
    if not is_message or frame.method != method or dig(frame.params, "threadId") != thread_id:
        return False
    # Only errors that announce a retry count.
    return method != "error" or dig(frame.params, "willRetry") is True


def _shows_item(thread_id: str, method: str, kind: str, frame: Frame) -> bool:
    return _is_message_of(thread_id, method, frame) and dig(frame.params, "item", "type") == kind


def _completes_item(thread_id: str, item: str, frame: Frame) -> bool:
    return (
        _is_message_of(thread_id, "item/completed", frame)
        and dig(frame.params, "item", "id") == item
    )


def _ends_turn_of(thread_id: str, frame: Frame) -> bool:
    return _is_message_of(thread_id, "turn/completed", frame)


@plays(ActStep)
async def act(context: StepContext, step: ActStep) -> None:
    """Perform the action of the race."""
    body = step.act
    context.peer().recorder.mark(RaceActs(body.action))
    match body.action:
        case "interrupt":
            await _interrupt(context, body)
        case "steer":
            await _steer(context, body)
        case "second-turn":
            await _second_turn(context, body)
        case "answer":
            await _answer(context, body)
        case "attach":
            await _attach(context, body)
        case "disconnect":
            context.set_target("the end of the server's output after the end of its input")
            await context.connections.disconnect(MAIN_CONNECTION)
        case "reset":
            context.set_target("the end of the connection that was broken off")
            await context.connections.disconnect(MAIN_CONNECTION, reset=True)
        case "reconnect":
            await _reconnect(context, body)
        case "slices":
            context.peer().sends_slices = True
        case "kill":
            context.set_target("the end of the killed server")
            await context.connections.kill()


async def _reconnect(context: StepContext, body: Act) -> None:
    """End the connection, come back at once and resume the thread; the server may refuse that.

    A server with one connection is started again over its home.
    """
    context.set_target("the end of the connection")
    await context.connections.disconnect(MAIN_CONNECTION)
    context.set_target("the connection of the client that is back")
    try:
        await context.connections.connect(MAIN_CONNECTION)
    except StepFailed as error:
        if error.kind is not FailureKind.NOT_OFFERED:
            raise
        await context.connections.restart()
    await _resume(context, MAIN_CONNECTION, body)


async def _attach(context: StepContext, body: Act) -> None:
    """Resume the thread on a further connection, or on the first if there can be only one.

    The server may refuse to resume a thread that is loaded.
    """
    on = ATTACHED_CONNECTION
    context.set_target("a further connection")
    try:
        await context.connections.connect(on)
    except StepFailed as error:
        if error.kind is not FailureKind.NOT_OFFERED:
            raise
        on = MAIN_CONNECTION
    await _resume(context, on, body)


async def _resume(context: StepContext, on: str, body: Act) -> None:
    peer = context.peer(on)
    request = await peer.send_request("thread/resume", {"threadId": context.thread(body.thread)})
    context.set_target("the answer to thread/resume")
    await context.wait_for_answer(peer, request, "any", None)


@plays(AgainStep)
async def restart_killed(context: StepContext, step: AgainStep) -> None:
    """Start the killed server again over the same home."""
    context.set_target("the restarted server")
    await context.connections.restart()


@plays(ReviveStep)
async def revive(context: StepContext, step: ReviveStep) -> None:
    """Read and resume a thread of the killed server, and start a turn on it.

    A server that stores no threads may refuse each of these. The rest of the script is skipped,
    since the thread may have other settings now.
    """
    context.model.skip_script()
    thread_param = {"threadId": context.thread(step.revive.thread)}
    await _is_answered_by_result(context, "thread/read", {**thread_param, "includeTurns": True})
    if not await _is_answered_by_result(context, "thread/resume", thread_param):
        return
    inputs = [{"type": "text", "text": "Go on where you were."}]
    params = {**thread_param, "input": inputs, **context.turn_params}
    if await _is_answered_by_result(context, "turn/start", params, REVIVED_TURN):
        context.set_target("the end of the turn of the thread that was resumed")
        ends = partial(ends_turn, thread_param["threadId"], context.turn(REVIVED_TURN))
        await context.peer().inbox.wait(ends)
        await _is_answered_by_result(context, "thread/read", {**thread_param, "includeTurns": True})


async def _is_answered_by_result(
    context: StepContext, method: str, params: dict[str, Any], alias: str | None = None
) -> bool:
    """Send a request; return whether it was answered by a result."""
    peer = context.peer()
    request = await peer.send_request(method, params)
    answer = await context.wait_for_answer(peer, request, "any", alias)
    return answer.kind is Kind.RESPONSE


async def _interrupt(context: StepContext, body: Act) -> None:
    params = {"threadId": context.thread(body.thread), "turnId": context.turn(body.turn)}
    accepted = await _is_answered_by_result(context, "turn/interrupt", params)
    if body.turn_is_running and not accepted:
        raise StepFailed(
            FailureKind.REFUSED, "turn/interrupt is refused, though the turn is running"
        )
    if accepted:
        # The model's stream is still held: the turn must end without it.
        context.set_target("the end of the interrupted turn")
        await context.peer().inbox.wait(partial(_ends_turn_of, params["threadId"]))


async def _steer(context: StepContext, body: Act) -> None:
    params = {
        "threadId": context.thread(body.thread),
        "input": [{"type": "text", "text": ADDED_TEXT}],
        "expectedTurnId": context.turn(body.turn),
    }
    accepted = await _is_answered_by_result(context, "turn/steer", params)
    if body.turn_is_running and not accepted:
        raise StepFailed(FailureKind.REFUSED, "turn/steer is refused, though the turn is running")
    if body.turn_has_ended and accepted:
        raise StepFailed(FailureKind.REFUSED, "turn/steer is accepted, though the turn has ended")
    context.values["steered"] = accepted


async def _second_turn(context: StepContext, body: Act) -> None:
    inputs = [{"type": "text", "text": "A second turn."}]
    params = {"threadId": context.thread(body.thread), "input": inputs, **context.turn_params}
    accepted = await _is_answered_by_result(context, "turn/start", params, SECOND_TURN)
    if body.turn_has_ended and not accepted:
        raise StepFailed(FailureKind.REFUSED, "turn/start is refused, though no turn is running")


async def _answer(context: StepContext, body: Act) -> None:
    """Decline an open server request, or answer the last one a second time."""
    peer = context.peer()
    questions = [frame for frame in peer.inbox.frames if frame.kind is Kind.REQUEST]
    unanswered = [
        frame for frame in questions if any(frame is open_ for open_ in peer.questions.values())
    ]
    question = (unanswered or questions)[-1]
    await peer.answer(question, _denial(question), deliberate=not unanswered)


def _denial(question: Frame) -> dict[str, Any]:
    if question.method == "item/tool/call":
        return {"success": False, "contentItems": []}
    return {"decision": "decline"}


@plays(SettleStep)
async def settle(context: StepContext, step: SettleStep) -> None:
    """Wait for the ends of the turns, and check that accepted input reached the model once.

    In a turn that failed or was interrupted it need not reach the model.
    """
    body = step.settle
    if body.turn in context.unanswered_requests:
        peer, request, expect = context.unanswered_requests[body.turn]
        await context.wait_for_answer(peer, request, expect, body.turn)
    inbox = context.peer().inbox
    statuses: dict[str, str] = {}
    for alias in (body.turn, SECOND_TURN):
        turn_id = context.cast.turns.get(alias, "")
        if turn_id:
            context.set_target(f"the end of {alias}")
            thread = context.cast.thread_of[alias]
            end = await inbox.wait(partial(ends_turn, thread, turn_id))
            statuses[alias] = text(dig(end.params, "turn", "status"))
    if "steered" in context.values:
        turn_completed = statuses.get(body.turn) == "completed"
        _check_added_input(
            context, accepted=bool(context.values["steered"]), turn_completed=turn_completed
        )


def _check_added_input(context: StepContext, *, accepted: bool, turn_completed: bool) -> None:
    inputs = [json.dumps(call.body.get("input")) for call in context.model.calls]
    counts = [text.count(ADDED_TEXT) for text in inputs]
    if not accepted and any(counts):
        raise StepFailed(FailureKind.REFUSED, "the input of a refused turn/steer reached the model")
    if accepted and turn_completed and not any(counts):
        raise StepFailed(
            FailureKind.REFUSED, "the input of an accepted turn/steer never reached the model"
        )
    if accepted and max(counts, default=0) > 1:
        raise StepFailed(
            FailureKind.REFUSED, "the input of an accepted turn/steer reached the model twice"
        )
