"""Steps that wait for a message, the end of a turn, a gate or a model call, or open a gate.

No wait depends on time, except that `or_silence` ends one.
"""

from functools import partial

from harness.protocol.values import dig, text
from harness.scenario.client_steps import OpenStep, Wait, WaitStep
from harness.scenario.paths import describe_expected, describe_nearest, has_values
from harness.scenario.patience import Patience
from harness.scenario.steps.context import FailureKind, StepContext, StepFailed, plays
from harness.scenario.steps.wait_targets import (
    WaitTarget,
    awaited_notification_kind,
    end_of_turn,
    gate,
    model_call,
)
from harness.trace.frame import Frame, Kind
from harness.trace.marks import GateOpened


@plays(OpenStep)
async def open_gate(context: StepContext, step: OpenStep) -> None:
    """Open a gate, and mark it."""
    context.model.gates.open(step.open)
    context.peer().recorder.mark(GateOpened(step.open))


@plays(WaitStep)
async def wait(context: StepContext, step: WaitStep) -> None:
    """Wait for the one event that the step names."""
    body = step.wait
    frame: Frame | None = None
    match body.awaited_kinds[0]:
        case "turn":
            frame = await _wait_for_turn(context, body)
        case "idle":
            await _wait_until_idle(context, body)
        case "gate":
            name = body.gate or ""
            wait_for_gate = partial(context.model.gates.wait_until_reached, name)
            await context.wait_unless_gone(wait_for_gate, gate(name))
        case "model":
            await _wait_for_model(context, body)
        case "answer":
            peer, request, expect = context.unanswered_requests[body.answer or ""]
            context.awaited = await context.wait_for_answer(peer, request, expect, body.answer)
        case "message":
            expected = context.resolve(body.message)
            frame = await context.take_frame(
                body.on,
                lambda frame: has_values(frame.json, expected),
                describe_expected("a message", expected),
                lambda: describe_nearest(
                    [seen_frame.json for seen_frame in context.peer(body.on).inbox.frames], expected
                ),
            )
        case _ if body.or_silence:
            with Patience(context.peer(body.on).recorder, context.bounds.settle).wait():
                await _wait_for_message(context, body)
        case _:
            frame = await _wait_for_message(context, body)
    context.awaited = frame or context.awaited
    if body.alias is not None and frame is not None:
        context.values[body.alias] = frame.json if body.message is not None else frame.params


async def _wait_for_turn(context: StepContext, body: Wait) -> Frame:
    alias = body.turn or ""
    turn_id = context.turn(alias)
    context.set_target(end_of_turn(alias))
    ends = partial(ends_turn, context.cast.thread_of[alias], turn_id)
    frame = await context.peer(body.on).inbox.wait(ends)
    status = text(dig(frame.params, "turn", "status"))
    if body.statuses and status not in body.statuses:
        cause = text(dig(frame.params, "turn", "error", "message"))
        raise StepFailed(
            FailureKind.OTHER_END,
            f"turn {alias} ended as {status or 'nothing'}"
            f"{f' ({cause})' if cause else ''}; expected {' or '.join(body.statuses)}",
        )
    return frame


async def _wait_until_idle(context: StepContext, body: Wait) -> None:
    """Wait for the end of all turns of a thread so far, also of those that no step started.

    If the thread's last reported status is active, wait for another status too.
    """
    thread, inbox = context.thread(body.idle or ""), context.peer(body.on).inbox
    turn_ids = [
        text(dig(frame.params, "turn", "id"))
        for frame in inbox.frames
        if frame.method == "turn/started" and dig(frame.params, "threadId") == thread
    ]
    for turn_id in turn_ids:
        context.set_target(end_of_turn(turn_id))
        await inbox.wait(partial(ends_turn, thread, turn_id))
    status_indexes = [
        index for index, frame in enumerate(inbox.frames) if _thread_status(thread, frame)
    ]
    if status_indexes and _thread_status(thread, inbox.frames[status_indexes[-1]]) == "active":
        context.set_target("the end of its being active")
        await inbox.wait(
            lambda frame: _thread_status(thread, frame) not in ("", "active"),
            start=status_indexes[-1] + 1,
        )


def _thread_status(thread: str, frame: Frame) -> str:
    """Return the status of this thread that a message reports, "" for other messages."""
    if frame.method != "thread/status/changed" or dig(frame.params, "threadId") != thread:
        return ""
    return text(dig(frame.params, "status", "type"))


async def _wait_for_message(context: StepContext, body: Wait) -> Frame:
    """Wait for one of several notifications, or for a server request; return its frame."""
    is_notification = body.notification is not None
    names = body.notification if body.notification is not None else body.request or ""
    methods = [names] if isinstance(names, str) else names
    kind = Kind.NOTIFICATION if is_notification else Kind.REQUEST
    conditions = context.resolve(body.where)

    def has_method(frame: Frame) -> bool:
        return frame.kind is kind and frame.method in methods

    def matches(frame: Frame) -> bool:
        return has_method(frame) and has_values(frame.params, conditions)

    def describe_nearest_message() -> str:
        frames = filter(has_method, context.peer(body.on).inbox.frames)
        return describe_nearest([frame.params for frame in frames], conditions, within=("params",))

    message_words = " or ".join(methods) if is_notification else f"the server request {methods[0]}"
    words = describe_expected(message_words, conditions)
    single = isinstance(body.notification, str)
    target = WaitTarget(
        words, words, awaited_notification_kind(methods[0], conditions) if single else ""
    )
    return await context.take_frame(body.on, matches, target, describe_nearest_message)


async def _wait_for_model(context: StepContext, body: Wait) -> None:
    model_wait = body.model
    if model_wait is None:
        return
    target = model_call(model_wait.call, until_ended=model_wait.ended)
    await context.wait_unless_gone(
        partial(context.model.wait_for_call, model_wait.call, until_ended=model_wait.ended), target
    )


def ends_turn(thread: str, turn_id: str, frame: Frame) -> bool:
    """Return whether a message is the end of that turn; it may lack a thread id."""
    if frame.method != "turn/completed" or dig(frame.params, "turn", "id") != turn_id:
        return False
    return (text(dig(frame.params, "threadId")) or thread) == thread
