"""The steps of a race: come to a position, act there, see what becomes of it."""

import contextlib
import json
from functools import partial
from typing import Any

import anyio

from harness.client.inbox import Predicate
from harness.errors import TargetGone
from harness.protocol.values import dig, text
from harness.scenario.client_steps import MAIN, StartTurn
from harness.scenario.positions import GATE, Position, Sight
from harness.scenario.races import (
    Act,
    ActStep,
    AgainStep,
    BeginStep,
    ReachStep,
    ReviveStep,
    SettleStep,
)
from harness.scenario.steps.awaited import model_call
from harness.scenario.steps.context import StepContext, StepFailed, UnmetKind, plays
from harness.scenario.steps.waits import ends_turn
from harness.trace.frame import Frame, Kind
from harness.trace.marks import RaceActs

ADDED = "Mind the heron by the lock."
"""What is added by a steer: words that nothing else in a scenario has."""
SECOND, REVIVED = "race-second", "race-revived"
ATTACHED = "race-attached"


@plays(BeginStep)
async def begin(context: StepContext, step: BeginStep) -> None:
    """turn/start, whose answer is not waited for."""
    body = step.begin.turn
    peer = context.peer(body.on)
    request = await peer.send_request("turn/start", turn_params(context, body))
    context.sent[body.alias] = (peer, request, "any")


def turn_params(context: StepContext, body: StartTurn) -> dict[str, Any]:
    """Return the params of turn/start; a raced scenario has one thread, so no marker."""
    given = [{"type": "text", "text": body.text}] if body.input is None else body.input
    params = {"threadId": context.thread(body.thread), "input": context.resolved(given)}
    return params | context.turn_params | context.resolved(body.params)


@plays(ReachStep)
async def reach(context: StepContext, step: ReachStep) -> None:
    """Wait until all that is to be seen there was seen; a turn that ends first never gets there."""
    position: Position = step.reach.position
    thread_id = context.thread(step.reach.thread)
    seen, gone = False, False
    async with anyio.create_task_group() as tasks:

        async def until_its_end() -> None:
            with contextlib.suppress(TargetGone):
                await context.peer().inbox.wait(partial(_ends, thread_id))
                tasks.cancel_scope.cancel()

        if position.before_end:
            tasks.start_soon(until_its_end)
        try:
            for sight in position.sights:
                await _seen(context, thread_id, sight)
            seen = True
        except TargetGone:
            gone = True
        tasks.cancel_scope.cancel()
    if gone:
        raise TargetGone("the server closed the connection")
    if not seen:
        raise StepFailed(UnmetKind.NOT_REACHED, f"the turn ended before {position.name}")


async def _seen(context: StepContext, thread_id: str, sight: Sight) -> None:
    inbox = context.peer().inbox
    match sight.what:
        case "gate":
            await context.or_gone(partial(context.model.gates.reached, GATE), "the model's stream")
        case "pipe":
            name = sight.method
            await context.or_gone(partial(context.model.gates.reached, name), f"the pipe {name}")
        case "model-end":
            ended = partial(context.model.called, sight.nth, ended=True)
            await context.or_gone(ended, model_call(sight.nth, ended=True))
        case "turn-end":
            context.waits_for("the end of the turn")
            await inbox.wait(partial(_ends, thread_id))
        case "message":
            context.waits_for(f"{sight.method} ({sight.nth})")
            await inbox.wait(_nth(sight.nth, partial(_is_told, thread_id, sight.method)))
        case "started" | "completed":
            context.waits_for(f"{sight.method} {sight.nth} {sight.what}")
            told = partial(_shows, thread_id, "item/started", sight.method)
            begun = await inbox.wait(_nth(sight.nth, told))
            if sight.what == "completed":
                item = text(dig(begun.params, "item", "id"))
                await inbox.wait(partial(_completes, thread_id, item))


def _nth(number: int, matches: Predicate) -> Predicate:
    """The `number`-th frame that matches; an inbox asks about each frame once, in order."""
    count = 0

    def counted(frame: Frame) -> bool:
        nonlocal count
        matched = matches(frame)
        count += matched
        return matched and count == number

    return counted


def _is_told(thread_id: str, method: str, frame: Frame) -> bool:
    asked = frame.kind in (Kind.NOTIFICATION, Kind.REQUEST) and frame.from_target
    if not asked or frame.method != method or dig(frame.params, "threadId") != thread_id:
        return False
    # Of errors those that announce another try are meant.
    return method != "error" or dig(frame.params, "willRetry") is True


def _shows(thread_id: str, method: str, kind: str, frame: Frame) -> bool:
    return _is_told(thread_id, method, frame) and dig(frame.params, "item", "type") == kind


def _completes(thread_id: str, item: str, frame: Frame) -> bool:
    return _is_told(thread_id, "item/completed", frame) and dig(frame.params, "item", "id") == item


def _ends(thread_id: str, frame: Frame) -> bool:
    return _is_told(thread_id, "turn/completed", frame)


@plays(ActStep)
async def act(context: StepContext, step: ActStep) -> None:
    """The action itself."""
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
            context.waits_for("the end of the server's output after the end of its input")
            await context.connections.disconnect(MAIN)
        case "kill":
            context.waits_for("the end of the killed server")
            await context.connections.kill()


async def _attach(context: StepContext, body: Act) -> None:
    """A further client opens the thread; where there is one connection, the same client again.

    Resuming a thread that is loaded may be refused.
    """
    on = ATTACHED
    context.waits_for("a further connection")
    try:
        await context.connections.connect(on)
    except StepFailed as failed:
        if failed.kind is not UnmetKind.NOT_OFFERED:
            raise
        on = MAIN
    peer = context.peer(on)
    request = await peer.send_request("thread/resume", {"threadId": context.thread(body.thread)})
    context.waits_for("the answer to thread/resume")
    await context.answer_to(peer, request, "any", None)


@plays(AgainStep)
async def again(context: StepContext, step: AgainStep) -> None:
    """The killed server starts again over the same home."""
    context.waits_for("the restarted server")
    await context.connections.restart()


@plays(ReviveStep)
async def revive(context: StepContext, step: ReviveStep) -> None:
    """A thread of the killed server is read and resumed, and takes a turn.

    A server that keeps no threads may refuse each of these; what it shows is the rules' business.
    The rest of the script is left out: the thread may have other settings now.
    """
    context.model.skip_script()
    named = {"threadId": context.thread(step.revive.thread)}
    await _try(context, "thread/read", {**named, "includeTurns": True})
    if not await _try(context, "thread/resume", named):
        return
    given = [{"type": "text", "text": "Go on where you were."}]
    params = {**named, "input": given, **context.turn_params}
    if await _try(context, "turn/start", params, REVIVED):
        context.waits_for("the end of the turn of the thread that was resumed")
        ends = partial(ends_turn, named["threadId"], context.turn(REVIVED))
        await context.peer().inbox.wait(ends)
        await _try(context, "thread/read", {**named, "includeTurns": True})


async def _try(
    context: StepContext, method: str, params: dict[str, Any], alias: str | None = None
) -> bool:
    """Return whether a request was answered by a result."""
    peer = context.peer()
    request = await peer.send_request(method, params)
    answer = await context.answer_to(peer, request, "any", alias)
    return answer.kind is Kind.RESPONSE


async def _interrupt(context: StepContext, body: Act) -> None:
    params = {"threadId": context.thread(body.thread), "turnId": context.turn(body.turn)}
    accepted = await _try(context, "turn/interrupt", params)
    if body.certain and not accepted:
        raise StepFailed(UnmetKind.REFUSED, "turn/interrupt is refused, though the turn is running")
    if accepted:
        # The model is still held: the turn must end without it.
        context.waits_for("the end of the interrupted turn")
        await context.peer().inbox.wait(partial(_ends, params["threadId"]))


async def _steer(context: StepContext, body: Act) -> None:
    params = {
        "threadId": context.thread(body.thread),
        "input": [{"type": "text", "text": ADDED}],
        "expectedTurnId": context.turn(body.turn),
    }
    accepted = await _try(context, "turn/steer", params)
    if body.certain and not accepted:
        raise StepFailed(UnmetKind.REFUSED, "turn/steer is refused, though the turn is running")
    if body.ended and accepted:
        raise StepFailed(UnmetKind.REFUSED, "turn/steer is accepted, though the turn has ended")
    context.values["steered"] = accepted


async def _second_turn(context: StepContext, body: Act) -> None:
    given = [{"type": "text", "text": "A second turn."}]
    params = {"threadId": context.thread(body.thread), "input": given, **context.turn_params}
    accepted = await _try(context, "turn/start", params, SECOND)
    if body.ended and not accepted:
        raise StepFailed(UnmetKind.REFUSED, "turn/start is refused, though no turn is running")


async def _answer(context: StepContext, body: Act) -> None:
    """Decline what is asked, or answer once more what was answered."""
    peer = context.peer()
    asked = [one for one in peer.inbox.frames if one.kind is Kind.REQUEST]
    unanswered = [one for one in asked if any(one is open_ for open_ in peer.questions.values())]
    question = (unanswered or asked)[-1]
    await peer.answer(question, _denial(question), deliberate=not unanswered)


def _denial(question: Frame) -> dict[str, Any]:
    if question.method == "item/tool/call":
        return {"success": False, "contentItems": []}
    return {"decision": "decline"}


@plays(SettleStep)
async def settle(context: StepContext, step: SettleStep) -> None:
    """Wait for the ends of the turns; an accepted input has then reached the model, once.

    In a turn that failed or was interrupted it need not have come so far.
    """
    body = step.settle
    if body.turn in context.sent:
        peer, request, expect = context.sent[body.turn]
        await context.answer_to(peer, request, expect, body.turn)
    inbox = context.peer().inbox
    statuses: dict[str, str] = {}
    for alias in (body.turn, SECOND):
        turn_id = context.cast.turns.get(alias, "")
        if turn_id:
            context.waits_for(f"the end of {alias}")
            thread = context.cast.thread_of[alias]
            end = await inbox.wait(partial(ends_turn, thread, turn_id))
            statuses[alias] = text(dig(end.params, "turn", "status"))
    if "steered" in context.values:
        whole = statuses.get(body.turn) == "completed"
        _check_added(context, accepted=bool(context.values["steered"]), whole=whole)


def _check_added(context: StepContext, *, accepted: bool, whole: bool) -> None:
    inputs = [json.dumps(call.body.get("input")) for call in context.model.calls]
    counts = [one.count(ADDED) for one in inputs]
    if not accepted and any(counts):
        raise StepFailed(UnmetKind.REFUSED, "the input of a refused turn/steer reached the model")
    if accepted and whole and not any(counts):
        raise StepFailed(
            UnmetKind.REFUSED, "the input of an accepted turn/steer never reached the model"
        )
    if accepted and max(counts, default=0) > 1:
        raise StepFailed(
            UnmetKind.REFUSED, "the input of an accepted turn/steer reached the model twice"
        )
