"""Faults of turn/steer, and of what is refused about a running turn."""

import json
from typing import Any

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.trace.frame import Frame
from harness.trace.trace import Mark, Trace
from harness.trace.values import arr, dig, obj, text


def _granted(scene: Scene) -> tuple[Frame, Frame]:
    """A turn/steer that was granted, with a text, and its answer."""
    for answer in scene.answers("turn/steer"):
        request = scene.request_of(answer)
        if _said(request):
            return request, answer
    raise NotApplied("no text was added")


def _said(request: Frame) -> str:
    return _first_text(obj(request.params).get("input"))


def _first_text(parts: Any) -> str:
    return next((text(obj(part).get("text")) for part in arr(parts) if "text" in obj(part)), "")


def _shown(scene: Scene, request: Frame) -> list[Frame]:
    """What the server tells of the userMessage that shows an input."""
    said = _said(request)
    return [
        frame
        for method in ("item/started", "item/completed")
        for frame in scene.notified(method)
        if dig(frame.params, "item", "type") == "userMessage"
        and _first_text(dig(frame.params, "item", "content")) == said
    ]


def _heard(scene: Scene, request: Frame) -> list[Mark]:
    """The model calls that hold an input."""
    said = _said(request)
    calls = [
        mark
        for mark in scene.trace.marks_of("model-call")
        if any(said in text(words) for words in arr(mark.data.get("user_texts")))
    ]
    if not calls:
        raise NotApplied("no model call with the input")
    return calls


def _unheard(trace: Trace, calls: list[Mark], said: str) -> Trace:
    for mark in calls:
        texts = [words for words in arr(mark.data.get("user_texts")) if said not in text(words)]
        trace = op.remark(
            trace, [one for one in trace.marks if one.data == mark.data], user_texts=texts
        )
    return trace


def _refused(scene: Scene) -> tuple[Frame, Frame]:
    """A turn/steer that was refused."""
    for frame in scene.trace.frames:
        request = scene.conversation.request_of(frame)
        if request is not None and request.method == "turn/steer" and isinstance(frame.error, dict):
            return request, frame
    raise NotApplied("no turn/steer was refused")


def _answered(trace: Trace, answer: Frame, **members: Any) -> Trace:
    """With another answer to the same request."""
    return op.change(trace, [answer], lambda message: {"id": message["id"], **members})


@fault(
    "steering-of-no-turn-granted",
    rule="steer.precondition",
    on="steering",
    reason="turn/steer fails where its id is not the active turn's.",
)
def of_no_turn(scene: Scene) -> Trace:
    """Success for a turn that there is not."""
    request, answer = _refused(scene)
    turn_id = obj(request.params).get("expectedTurnId")
    return _answered(scene.trace, answer, result={"turnId": turn_id})


@fault(
    "steering-of-an-ended-turn-granted",
    rule="steer.precondition",
    on="steering",
    reason="turn/steer fails where no turn is active.",
)
def of_an_ended_turn(scene: Scene) -> Trace:
    """Success for a turn that had ended."""
    turn = scene.turn("completed")
    for frame in scene.trace.frames:
        request = scene.conversation.request_of(frame)
        late = request is not None and request.seq > turn.completed[0].seq
        if request is not None and request.method == "turn/steer" and late:
            return _answered(scene.trace, frame, result={"turnId": turn.id})
    raise NotApplied("no turn/steer after the end of a turn")


@fault(
    "steering-names-another-turn",
    rule="steer.names-turn",
    on="steered",
    reason="The answer names the turn that took the input, which is the expected one.",
)
def names_another(scene: Scene) -> Trace:
    """Another turn's id in the answer."""
    _, answer = _granted(scene)
    return op.edit(scene.trace, answer, ("result", "turnId"), "turn_404404")


@fault(
    "steering-starts-a-turn",
    rule="steer.starts-no-turn",
    on="steered",
    reason="turn/steer starts no new turn.",
)
def starts_a_turn(scene: Scene) -> Trace:
    """A whole turn that nobody asked for, after the answer and after the end of the first."""
    request, _ = _granted(scene)
    params = obj(request.params)
    named = text(params.get("threadId")), text(params.get("expectedTurnId"))
    turn = scene.conversation.turn_at(*named)
    if turn is None or not turn.started or not turn.completed:
        raise NotApplied("a turn that was announced and ended")
    trace, after = scene.trace, turn.completed[0]
    for frame in (turn.completed[0], turn.started[0]):
        message = json.loads(frame.raw.replace(turn.id.encode(), b"turn_404404"))
        trace = op.insert(trace, after=after, message=message)
    return trace


@fault(
    "steering-refused-while-the-turn-runs",
    rule="steer.granted",
    on="steering",
    reason="Input is added to the active turn when its id is given.",
)
def refused_while_running(scene: Scene) -> Trace:
    """An error, and nothing of the input anywhere."""
    request, answer = _granted(scene)
    trace = _unheard_of(scene, request)
    same = next(frame for frame in trace.frames if frame.json == answer.json)
    return _answered(trace, same, error={"code": -32600, "message": "not now"})


def _unheard_of(scene: Scene, request: Frame) -> Trace:
    trace = _unheard(scene.trace, _heard(scene, request), _said(request))
    return op.drop(trace, *_shown(scene, request))


@fault(
    "interrupt-refused-while-the-turn-runs",
    rule="interrupt.granted",
    on="interrupted",
    reason="A turn in progress is interrupted by turn/interrupt.",
)
def interrupt_refused(scene: Scene) -> Trace:
    """An error, and then the turn goes on to an end of its own."""
    [answer, *_] = scene.answers("turn/interrupt")
    turn = scene.turn("interrupted")
    completed = turn.completed[0]
    trace = op.edit(scene.trace, completed, ("params", "turn", "status"), "completed")
    trace = _answered(trace, trace.frames[answer.seq], error={"code": -32600, "message": "no"})
    more = {"type": "agentMessage", "id": "msg-404404", "text": "On."}
    where = {"threadId": turn.thread_id, "turnId": turn.id, "item": more}
    for method in ("item/completed", "item/started"):
        news = {"method": method, "params": where}
        trace = op.insert(trace, after=trace.frames[answer.seq], message=news)
    return trace


@fault(
    "steered-input-lost",
    rule="steer.input-kept",
    on="steering",
    reason="The input of turn/steer is appended to the active turn.",
)
def lost(scene: Scene) -> Trace:
    """The answer is success, and the input is nowhere."""
    request, _ = _granted(scene)
    return _unheard_of(scene, request)


@fault(
    "steered-input-shown-and-not-asked",
    rule="steer.input-arrives",
    on="steering",
    reason="What is added to a turn is for the agent, so the model is asked it.",
)
def not_asked(scene: Scene) -> Trace:
    """A userMessage, and no model call with it."""
    request, _ = _granted(scene)
    return _unheard(scene.trace, _heard(scene, request), _said(request))


@fault(
    "steered-input-asked-twice",
    rule="steer.applied-once",
    on="steering",
    reason="What one turn/steer adds is added once.",
)
def asked_twice(scene: Scene) -> Trace:
    """The same words twice in a call."""
    request, _ = _granted(scene)
    call = _heard(scene, request)[0]
    texts = [*arr(call.data.get("user_texts")), _said(request)]
    return op.remark(scene.trace, [call], user_texts=texts)


@fault(
    "refused-input-asked",
    rule="steer.refused-unheard",
    on="steering",
    reason="A turn/steer that fails appends nothing.",
)
def refused_and_asked(scene: Scene) -> Trace:
    """What was refused is in the last model call."""
    request, _ = _refused(scene)
    calls = scene.trace.marks_of("model-call")
    if not calls or not _said(request):
        raise NotApplied("a model call")
    texts = [*arr(calls[-1].data.get("user_texts")), _said(request)]
    return op.remark(scene.trace, [calls[-1]], user_texts=texts)
