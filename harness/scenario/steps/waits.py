"""Waiting: for the end of a turn, a message, an answer, a gate, a model call; and opening gates.

Nothing waits by the clock.
"""

from functools import partial

from harness.protocol.values import dig, text
from harness.scenario.client_steps import OpenStep, Wait, WaitStep
from harness.scenario.paths import described, fits, nearest_of
from harness.scenario.steps.awaited import (
    Awaited,
    end_of_turn,
    gate,
    model_call,
    notification_wanted,
)
from harness.scenario.steps.context import StepContext, StepFailed, UnmetKind, plays
from harness.trace.frame import Frame, Kind
from harness.trace.marks import GateOpened


@plays(OpenStep)
async def open_gate(context: StepContext, step: OpenStep) -> None:
    """Open a gate of the model's side."""
    context.model.gates.open(step.open)
    context.peer().recorder.mark(GateOpened(step.open))


@plays(WaitStep)
async def wait(context: StepContext, step: WaitStep) -> None:
    """Wait for the one thing that the step names."""
    body = step.wait
    frame: Frame | None = None
    match body.what[0]:
        case "turn":
            frame = await _turn(context, body)
        case "idle":
            await _idle(context, body)
        case "gate":
            name = body.gate or ""
            reached = partial(context.model.gates.reached, name)
            await context.or_gone(reached, gate(name))
        case "model":
            await _model(context, body)
        case "answer":
            peer, request, expect = context.sent[body.answer or ""]
            await context.answer_to(peer, request, expect, body.answer)
        case "message":
            where = context.resolved(body.message)
            frame = await context.take(
                body.on,
                lambda frame: fits(frame.json, where),
                described("a message", where),
                lambda: nearest_of([one.json for one in context.peer(body.on).inbox.frames], where),
            )
        case _:
            frame = await _named(context, body)
    if body.alias is not None and frame is not None:
        context.values[body.alias] = frame.json if body.message is not None else frame.params


async def _turn(context: StepContext, body: Wait) -> Frame:
    alias = body.turn or ""
    turn_id = context.turn(alias)
    context.waits_for(end_of_turn(alias))
    ends = partial(ends_turn, context.cast.thread_of[alias], turn_id)
    frame = await context.peer(body.on).inbox.wait(ends)
    status = text(dig(frame.params, "turn", "status"))
    if body.statuses and status not in body.statuses:
        cause = text(dig(frame.params, "turn", "error", "message"))
        raise StepFailed(
            UnmetKind.OTHER_END,
            f"turn {alias} ended as {status or 'nothing'}"
            f"{f' ({cause})' if cause else ''}; expected {' or '.join(body.statuses)}",
        )
    return frame


async def _idle(context: StepContext, body: Wait) -> None:
    """The end of whatever runs on a thread, also of what no step started.

    A turn that began has its end; and where the thread was said to be active, that is over too.
    """
    thread, inbox = context.thread(body.idle or ""), context.peer(body.on).inbox
    begun = [
        text(dig(frame.params, "turn", "id"))
        for frame in inbox.frames
        if frame.method == "turn/started" and dig(frame.params, "threadId") == thread
    ]
    for turn_id in begun:
        context.waits_for(end_of_turn(turn_id))
        await inbox.wait(partial(ends_turn, thread, turn_id))
    told = [at for at, frame in enumerate(inbox.frames) if _status(thread, frame)]
    if told and _status(thread, inbox.frames[told[-1]]) == "active":
        context.waits_for("the end of its being active")
        await inbox.wait(
            lambda frame: _status(thread, frame) not in ("", "active"), start=told[-1] + 1
        )


def _status(thread: str, frame: Frame) -> str:
    """The status of a thread that a message tells, "" for none."""
    if frame.method != "thread/status/changed" or dig(frame.params, "threadId") != thread:
        return ""
    return text(dig(frame.params, "status", "type"))


async def _named(context: StepContext, body: Wait) -> Frame:
    """A notification of one of some methods, or a server request of one."""
    told = body.notification is not None
    named = body.notification if body.notification is not None else body.request or ""
    methods = [named] if isinstance(named, str) else named
    kind = Kind.NOTIFICATION if told else Kind.REQUEST
    where = context.resolved(body.where)

    def named_so(frame: Frame) -> bool:
        return frame.kind is kind and frame.method in methods

    def matches(frame: Frame) -> bool:
        return named_so(frame) and fits(frame.params, where)

    def came() -> str:
        frames = filter(named_so, context.peer(body.on).inbox.frames)
        return nearest_of([frame.params for frame in frames], where, within=("params",))

    what = " or ".join(methods) if told else f"the server request {methods[0]}"
    words = described(what, where)
    single = isinstance(body.notification, str)
    awaited = Awaited(words, words, notification_wanted(methods[0], where) if single else "")
    return await context.take(body.on, matches, awaited, came)


async def _model(context: StepContext, body: Wait) -> None:
    wanted = body.model
    if wanted is None:
        return
    what = model_call(wanted.call, ended=wanted.ended)
    await context.or_gone(partial(context.model.called, wanted.call, ended=wanted.ended), what)


def ends_turn(thread: str, turn_id: str, frame: Frame) -> bool:
    """Return whether a message is the end of that turn; one that names no thread is about any."""
    if frame.method != "turn/completed" or dig(frame.params, "turn", "id") != turn_id:
        return False
    return (text(dig(frame.params, "threadId")) or thread) == thread
