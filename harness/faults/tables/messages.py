"""Faults of single messages and answers."""

from typing import Any

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.trace.frame import Frame, Kind
from harness.trace.trace import Trace
from harness.trace.values import obj, text


def _last_answer(scene: Scene) -> Frame:
    """The last successful answer whose loss takes nothing else away than what it said."""
    return scene.answers("thread/read")[-1]


@fault(
    "noise-between-messages",
    rule="frame.well-formed",
    on="plain-turn",
    reason="A line of log output among the messages is none of the message forms.",
)
def noise(scene: Scene) -> Trace:
    """A log line on the wire."""
    message = b"2026-01-01T00:00:00Z INFO listening"
    return op.insert(scene.trace, after=scene.frame(Kind.RESPONSE), message=message)


@fault(
    "bytes-that-are-no-text",
    rule="frame.well-formed",
    on="plain-turn",
    reason="Bytes that are no UTF-8 are no JSON, so none of the message forms.",
)
def no_text(scene: Scene) -> Trace:
    """Invalid UTF-8 inside a message."""
    message = b'{"method": "turn/diff/updated", "params": {"diff": "\xff\xfe"}}'
    return op.insert(scene.trace, after=scene.frame(Kind.RESPONSE), message=message)


@fault(
    "result-is-an-array",
    rule="frame.well-formed",
    on="two-turns-read",
    reason="A response's result is an object.",
)
def array_result(scene: Scene) -> Trace:
    """A result wrapped in an array."""
    answer = _last_answer(scene)
    return op.edit(scene.trace, answer, ("result",), [answer.result])


@fault(
    "params-are-an-array",
    rule="frame.well-formed",
    on="plain-turn",
    reason="A notification's params are an object.",
)
def array_params(scene: Scene) -> Trace:
    """Positional params."""
    frame = scene.statuses()[-1]
    return op.edit(scene.trace, frame, ("params",), list(obj(frame.params).values()))


@fault(
    "server-request-with-text-id",
    rule="frame.well-formed",
    on="plain-turn",
    reason="A server request has a number as its id.",
)
def text_id(scene: Scene) -> Trace:
    """An approval request with a string id."""
    started = scene.turn().started[0]
    message: dict[str, Any] = {
        "method": "item/fileChange/requestApproval",
        "id": "request-1",
        "params": {"threadId": "t", "turnId": "u", "itemId": "i", "reason": "why"},
    }
    return op.insert(scene.trace, after=started, message=message)


@fault(
    "answer-with-another-id",
    rule="response.known-id",
    on="two-turns-read",
    reason="A response carries the id of the request that it answers.",
)
def other_id(scene: Scene) -> Trace:
    """An id that no request has."""
    return op.edit(scene.trace, _last_answer(scene), ("id",), 987654321)


@fault(
    "answer-id-as-text",
    rule="response.known-id",
    on="two-turns-read",
    reason="The id that comes back is the id that was sent, not its text.",
)
def id_as_text(scene: Scene) -> Trace:
    """A number that comes back as a string."""
    answer = _last_answer(scene)
    if not isinstance(answer.id, int):
        raise NotApplied("the id is no number")
    return op.edit(scene.trace, answer, ("id",), str(answer.id))


@fault(
    "answer-given-twice",
    rule="response.once",
    on="two-turns-read",
    reason="A request is answered by one response.",
)
def twice(scene: Scene) -> Trace:
    """The same answer again."""
    return op.duplicate(scene.trace, _last_answer(scene))


@fault(
    "answer-lost",
    rule="request.answered",
    on="two-turns-read",
    reason="Every operation is a request that is answered.",
)
def lost(scene: Scene) -> Trace:
    """No answer."""
    return op.drop(scene.trace, _last_answer(scene))


@fault(
    "result-and-error",
    rule="response.result-xor-error",
    on="two-turns-read",
    reason="A response reports success by its result; an error beside it says the contrary.",
)
def both(scene: Scene) -> Trace:
    """Success and failure at once."""
    error = {"code": -32603, "message": "but it failed"}
    return op.edit(scene.trace, _last_answer(scene), ("error",), error)


@fault(
    "result-member-missing",
    rule="shape.response",
    on="plain-turn",
    reason="The result of thread/start names the model.",
)
def result_member(scene: Scene) -> Trace:
    """A reply to thread/start without its model."""
    answer = scene.answers("thread/start", lambda f: "model" in obj(f.result))[0]
    return op.remove(scene.trace, answer, ("result", "model"))


@fault(
    "notification-member-missing",
    rule="shape.notification",
    on="plain-turn",
    reason="An agentMessage has a text.",
)
def event_member(scene: Scene) -> Trace:
    """An item/started without the text of its agentMessage."""
    item = scene.item("agentMessage")
    return op.remove(scene.trace, item.started[0], ("params", "item", "text"))


@fault(
    "status-as-a-word",
    rule="shape.notification",
    on="plain-turn",
    reason="A thread's status is an object with a type, not a string.",
)
def status_word(scene: Scene) -> Trace:
    """A bare string where the status object belongs."""
    return op.edit(scene.trace, scene.statuses("active")[0], ("params", "status"), "active")


@fault(
    "unheard-of-notification",
    rule="method.known",
    on="plain-turn",
    reason="The text does not name it: legal, and worth recording.",
)
def unheard(scene: Scene) -> Trace:
    """A notification of a name that nobody has."""
    message: dict[str, Any] = {"method": "harness/unheardOf", "params": {}}
    return op.insert(scene.trace, after=scene.frame(Kind.RESPONSE), message=message)


@fault(
    "own-request-of-wrong-shape",
    rule="harness.own-frame",
    on="plain-turn",
    reason="The cwd that we send is a string; anything else is our own defect.",
)
def own_shape(scene: Scene) -> Trace:
    """A number where our request should have a folder."""
    return op.edit(scene.trace, scene.sent("thread/start"), ("params", "cwd"), 5)


@fault(
    "turn-announced-before-its-reply",
    rule="response.before-effects",
    on="plain-turn",
    reason="The text gives no order: recorded, since clients trip over it.",
)
def reply_late(scene: Scene) -> Trace:
    """The reply to turn/start after turn/started."""
    turn = scene.turn(where=lambda t: t.reply is not None and t.reply.seq < t.started[0].seq)
    if turn.reply is None:
        raise NotApplied("no reply")
    return op.move(scene.trace, turn.reply, after=turn.started[0])


@fault(
    "interrupt-answered-last",
    rule="response.before-effects",
    on="interrupted",
    reason="The end of the turn comes after the answer to turn/interrupt.",
)
def interrupt_late(scene: Scene) -> Trace:
    """The answer to turn/interrupt after the turn's end."""
    answer = scene.answers("turn/interrupt")[0]
    turn_id = text(obj(scene.request_of(answer).params).get("turnId"))
    turn = scene.turn("interrupted", where=lambda t: t.id == turn_id)
    if turn.completed[0].seq < answer.seq:
        raise NotApplied("the turn ends before the answer already")
    return op.move(scene.trace, answer, after=turn.completed[0])


@fault(
    "interrupt-answered-with-members",
    rule="interrupt.reply-empty",
    on="interrupted",
    reason="The result of turn/interrupt is {}; more than that is recorded.",
)
def interrupt_filled(scene: Scene) -> Trace:
    """A result with something in it."""
    answer = scene.answers("turn/interrupt")[0]
    return op.edit(scene.trace, answer, ("result", "interrupted"), True)


@fault(
    "interrupt-answered-with-null",
    rule="interrupt.reply-empty",
    on="interrupted",
    reason="The result of turn/interrupt is {}, not null.",
)
def interrupt_null(scene: Scene) -> Trace:
    """null in place of the empty object."""
    return op.edit(scene.trace, scene.answers("turn/interrupt")[0], ("result",), None)
