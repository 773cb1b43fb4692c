"""Faults of ids: answers, server requests, and the harness's own answers."""

from typing import Any

from harness.faults.approval_selectors import decision, question
from harness.faults.base import Fault
from harness.faults.changes import delay, first, in_sequence, requires
from harness.faults.operators import drop, duplicate, edit, edit_by, insert, insert_by, remove
from harness.faults.selectors import (
    from_target,
    our_frame,
    read_with_turns,
    turn_completed,
    turn_in,
    turn_started,
)
from harness.faults.site import COMMAND, FaultSite
from harness.protocol.values import arr, obj, text
from harness.trace.correlation import same_id
from harness.trace.frame import Frame, Kind, Origin

TROUBLE = {"code": -32603, "message": "it failed"}
NOT_ASKED_FOR = {"id": 404404, "result": {"decision": "accept"}}


def with_an_id_of_its_own(site: FaultSite, frame: Frame) -> bool:
    """Return whether no request of the client so far has the id of the answered server request."""
    return not any(
        our_frame(Kind.REQUEST).fits(site, f) and same_id(f.id, frame.id) for f in site.frames
    )


def answer_of_its_own(_: FaultSite, frame: Frame) -> dict[str, Any]:
    """Return a forged response in which the server answers its own approval request."""
    return {"id": frame.id, "result": {"decision": "accept"}}


def another_request(_: FaultSite, frame: Frame) -> dict[str, Any]:
    """Return another server request with the id of an open one."""
    return {"method": "harness/ask", "id": frame.id, "params": {}}


def failure(_: FaultSite, frame: Frame) -> dict[str, Any]:
    """Return an error with the id of an answer."""
    return {"id": frame.id, "error": TROUBLE}


def command_as_text(_: FaultSite, frame: Frame) -> str:
    """Return the command of an approval request as one string."""
    return " ".join(text(word) for word in arr(obj(frame.params).get("command")))


def its_question_is_answered(site: FaultSite, late: Frame, now: Frame) -> bool:
    """Return whether `now` answers an approval request of the turn of `late`."""
    turn = turn_in(site, late)
    return site.find_approval(lambda a: a.answer is now and a.turn is turn) is not None


def about_no_thread(site: FaultSite, frame: Frame) -> bool:
    """Return whether a request names an unknown thread, so that it will be rejected."""
    thread_id = text(obj(frame.params).get("threadId"))
    thread = site.conversation.threads.get(thread_id)
    return bool(thread_id) and (thread is None or not thread.opening_answers)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "answer-without-id",
        rule="frame.well-formed",
        on="two-turns-read",
        reason="A response carries the id of its request; without one nobody can tell whose it is.",
        change=first(read_with_turns(), remove("id")),
    ),
    Fault(
        "result-then-error",
        rule="response.once",
        on="two-turns-read",
        reason="A request is answered by one response: a failure after the success is a second.",
        change=first(read_with_turns(), insert_by(failure)),
    ),
    Fault(
        "error-with-another-id",
        rule="response.known-id",
        on="refused",
        reason="An error answers a request too, so its id is that of one.",
        change=first(from_target(Kind.ERROR), edit("id", to=987654321)),
    ),
    Fault(
        "answer-to-a-question-of-its-own",
        rule="response.known-id",
        on="approved-command",
        reason="A response answers a request of the client, not one that the server sent itself.",
        change=first(
            decision().where(with_an_id_of_its_own, "with an id that no request of ours has"),
            insert_by(answer_of_its_own),
        ),
    ),
    Fault(
        "server-request-without-item",
        rule="shape.server-request",
        on="approved-command",
        reason="An approval request names the item.",
        change=first(question(), remove("params", "itemId")),
    ),
    Fault(
        "asked-command-is-text",
        rule="shape.server-request",
        on="approved-command",
        reason="The command in the request to approve it is an array of strings.",
        change=first(question(COMMAND), edit_by("params", "command", value=command_as_text)),
    ),
    Fault(
        "server-request-id-reused-while-open",
        rule="server-request.id-unique",
        on="approved-command",
        reason="The client's answer names the request by its id, so it can be one request only.",
        change=first(question(), insert_by(another_request)),
    ),
    Fault(
        "server-request-sent-twice",
        rule="server-request.id-unique",
        on="approved-command",
        reason="A request that comes twice with one id cannot be answered twice.",
        change=first(question(), duplicate),
    ),
    Fault(
        "server-request-without-id",
        rule="method.right-form",
        on="approved-command",
        reason="A request has an id; without one it is a notification, and nobody may answer.",
        change=in_sequence(first(question(), remove("id")), first(decision(), drop)),
        condition=requires(decision()),
    ),
    Fault(
        "notification-with-an-id",
        rule="method.right-form",
        on="plain-turn",
        reason="A notification has no id: the client would have to answer it.",
        change=first(turn_completed(), edit("id", to=404404)),
    ),
    Fault(
        "notification-is-answered",
        rule="notification.not-answered",
        on="plain-turn",
        reason="Nobody answers a notification.",
        change=first(our_frame(Kind.NOTIFICATION), insert({"id": None, "error": TROUBLE})),
    ),
    Fault(
        "turn-announced-after-its-question",
        rule="turn.streamed",
        on="approved-command",
        reason="Notifications come while the work goes on, so before the client is asked in it.",
        change=delay(turn_started(), "answer to a question of the turn", its_question_is_answered),
    ),
    Fault(
        "own-decision-of-no-meaning",
        rule="harness.own-answer",
        on="approved-command",
        reason="The decisions are listed; another word is our own defect.",
        change=first(decision(), edit("result", "decision", to="approved")),
    ),
    Fault(
        "own-answer-given-twice",
        rule="harness.own-answer",
        on="approved-command",
        reason="A question is answered once; a second answer is our own defect.",
        change=first(decision(), duplicate),
    ),
    Fault(
        "own-answer-to-nothing",
        rule="harness.own-answer",
        on="plain-turn",
        reason="We answer what was asked; an answer to nothing is our own defect.",
        change=first(turn_started(), insert(NOT_ASKED_FOR, Origin.HARNESS)),
    ),
    Fault(
        "own-request-id-reused-while-open",
        rule="harness.own-request-id",
        on="refused",
        reason="Two open requests of ours with one id are our own defect.",
        change=first(
            our_frame(Kind.REQUEST).where(about_no_thread, "about an unknown thread"), duplicate
        ),
    ),
)
