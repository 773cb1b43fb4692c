"""Faults of what belongs together by an id: answers, server requests, and our own answers."""

from typing import Any

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.trace.frame import Frame, Kind, Origin
from harness.trace.trace import Trace
from harness.trace.values import obj, text

COMMAND = "item/commandExecution/requestApproval"
TROUBLE = {"code": -32603, "message": "it failed"}


def _question(scene: Scene) -> tuple[Frame, Frame]:
    """An approval request and our answer to it."""
    question = scene.frame(Kind.REQUEST, lambda f: f.method.endswith("/requestApproval"))
    answer = scene.conversation.answer_of(question)
    if answer is None:
        raise NotApplied("no answer to it")
    return question, answer


def _own(scene: Scene, kind: Kind) -> Frame:
    for frame in scene.trace.frames:
        if frame.origin is Origin.HARNESS and frame.kind is kind and not frame.deliberate:
            return frame
    raise NotApplied(f"no own {kind}")


@fault(
    "answer-without-id",
    rule="frame.well-formed",
    on="two-turns-read",
    reason="A response carries the id of its request; without one nobody can tell whose it is.",
)
def no_id(scene: Scene) -> Trace:
    """A result that has lost its id."""
    return op.remove(scene.trace, scene.answers("thread/read")[-1], ("id",))


@fault(
    "result-then-error",
    rule="response.once",
    on="two-turns-read",
    reason="A request is answered by one response: a failure after the success is a second.",
)
def result_then_error(scene: Scene) -> Trace:
    """The same request fails after it has succeeded."""
    answer = scene.answers("thread/read")[-1]
    return op.insert(scene.trace, after=answer, message={"id": answer.id, "error": TROUBLE})


@fault(
    "error-with-another-id",
    rule="response.known-id",
    on="refused",
    reason="An error answers a request too, so its id is that of one.",
)
def error_other_id(scene: Scene) -> Trace:
    """A refusal with an id that no request has."""
    return op.edit(scene.trace, scene.frame(Kind.ERROR), ("id",), 987654321)


@fault(
    "answer-to-a-question-of-its-own",
    rule="response.known-id",
    on="approved-command",
    reason="A response answers a request of the client, not one that the server sent itself.",
)
def own_question(scene: Scene) -> Trace:
    """The server answers its own request."""
    question, answer = _question(scene)
    message = {"id": question.id, "result": {"decision": "accept"}}
    clash = [f for f in scene.trace.frames if f.origin is Origin.HARNESS and f.id == question.id
             and f.kind is Kind.REQUEST]  # fmt: skip
    if clash:
        raise NotApplied("a request of ours has the same id")
    return op.insert(scene.trace, after=answer, message=message)


@fault(
    "server-request-without-item",
    rule="shape.server-request",
    on="approved-command",
    reason="An approval request names the item.",
)
def request_member(scene: Scene) -> Trace:
    """No itemId."""
    question, _ = _question(scene)
    return op.remove(scene.trace, question, ("params", "itemId"))


@fault(
    "asked-command-is-text",
    rule="shape.server-request",
    on="approved-command",
    reason="The command in the request to approve it is an array of strings.",
)
def command_text(scene: Scene) -> Trace:
    """The command as one string."""
    question = scene.frame(Kind.REQUEST, lambda f: f.method == COMMAND)
    command: Any = obj(question.params).get("command")
    return op.edit(scene.trace, question, ("params", "command"), " ".join(command))


@fault(
    "server-request-id-reused-while-open",
    rule="server-request.id-unique",
    on="approved-command",
    reason="The client's answer names the request by its id, so it can be one request only.",
)
def id_reused(scene: Scene) -> Trace:
    """Another request with the id of one that is open."""
    question, _ = _question(scene)
    message: dict[str, Any] = {"method": "harness/ask", "id": question.id, "params": {}}
    return op.insert(scene.trace, after=question, message=message)


@fault(
    "server-request-sent-twice",
    rule="server-request.id-unique",
    on="approved-command",
    reason="A request that comes twice with one id cannot be answered twice.",
)
def asked_twice(scene: Scene) -> Trace:
    """The same question again."""
    return op.duplicate(scene.trace, _question(scene)[0])


@fault(
    "server-request-without-id",
    rule="method.right-form",
    on="approved-command",
    reason="A request has an id; without one it is a notification, and nobody may answer.",
)
def request_no_id(scene: Scene) -> Trace:
    """A question that nobody can answer, and nobody does."""
    question, answer = _question(scene)
    trace = op.drop(scene.trace, answer)
    return op.remove(trace, trace.frames[question.seq], ("id",))


@fault(
    "notification-with-an-id",
    rule="method.right-form",
    on="plain-turn",
    reason="A notification has no id: the client would have to answer it.",
)
def told_with_id(scene: Scene) -> Trace:
    """A turn/completed that looks like a request."""
    return op.edit(scene.trace, scene.turn().completed[0], ("id",), 404404)


@fault(
    "notification-is-answered",
    rule="notification.not-answered",
    on="plain-turn",
    reason="Nobody answers a notification.",
)
def answered(scene: Scene) -> Trace:
    """An error with no id, after our notification."""
    own = _own(scene, Kind.NOTIFICATION)
    return op.insert(scene.trace, after=own, message={"id": None, "error": TROUBLE})


@fault(
    "turn-announced-after-its-question",
    rule="turn.streamed",
    on="approved-command",
    reason="Notifications come while the work goes on, so before the client is asked in it.",
)
def kept_back(scene: Scene) -> Trace:
    """turn/started is kept back until the question has been answered."""
    question, answer = _question(scene)
    turn_id = text(obj(question.params).get("turnId"))
    return op.move(
        scene.trace, scene.turn(where=lambda t: t.id == turn_id).started[0], after=answer
    )


@fault(
    "own-decision-of-no-meaning",
    rule="harness.own-answer",
    on="approved-command",
    reason="The decisions are listed; another word is our own defect.",
)
def own_decision(scene: Scene) -> Trace:
    """A decision that the text does not have."""
    return op.edit(scene.trace, _question(scene)[1], ("result", "decision"), "approved")


@fault(
    "own-answer-given-twice",
    rule="harness.own-answer",
    on="approved-command",
    reason="A question is answered once; a second answer is our own defect.",
)
def own_twice(scene: Scene) -> Trace:
    """Our answer again."""
    return op.duplicate(scene.trace, _question(scene)[1])


@fault(
    "own-answer-to-nothing",
    rule="harness.own-answer",
    on="plain-turn",
    reason="We answer what was asked; an answer to nothing is our own defect.",
)
def own_to_nothing(scene: Scene) -> Trace:
    """An answer of ours without a question."""
    message = {"id": 404404, "result": {"decision": "accept"}}
    after = scene.turn().started[0]
    return op.insert(scene.trace, after=after, message=message, origin=Origin.HARNESS)


@fault(
    "own-request-id-reused-while-open",
    rule="harness.own-request-id",
    on="refused",
    reason="Two open requests of ours with one id are our own defect.",
)
def own_id(scene: Scene) -> Trace:
    """The same request sent twice."""
    return op.duplicate(scene.trace, scene.request_of(scene.frame(Kind.ERROR)))
