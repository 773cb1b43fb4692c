"""Faults of single messages and answers."""

from typing import Any

from harness.faults.base import Fault
from harness.faults.changes import delay, first
from harness.faults.item_selectors import item_started
from harness.faults.operators import drop, duplicate, edit, edit_by, insert, remove
from harness.faults.selectors import (
    answer_to,
    from_target,
    our_request,
    read_with_turns,
    status,
    turn_in,
    turn_reply,
    turn_started,
)
from harness.faults.site import FaultSite
from harness.protocol.values import obj, text
from harness.trace.frame import Frame, Kind

LOG_LINE = b"2026-01-01T00:00:00Z INFO listening"
NO_TEXT = b'{"method": "turn/diff/updated", "params": {"diff": "\xff\xfe"}}'
QUESTION = {
    "method": "item/fileChange/requestApproval",
    "id": "request-1",
    "params": {"threadId": "t", "turnId": "u", "itemId": "i", "reason": "why"},
}
UNHEARD_OF: dict[str, Any] = {"method": "harness/unheardOf", "params": {}}
FAILED = {"code": -32603, "message": "but it failed"}


def its_turn_is_announced(site: FaultSite, late: Frame, now: Frame) -> bool:
    """Return whether `now` announces the turn of the reply `late`."""
    return now.method == "turn/started" and site.turn_of(now) is turn_in(site, late)


def not_announced(site: FaultSite, frame: Frame) -> bool:
    """Return whether the turn of a reply was not announced before."""
    return not turn_in(site, frame).starts


def interrupted_turn_ends(site: FaultSite, late: Frame, now: Frame) -> bool:
    """Return whether `now` ends the turn of the answered turn/interrupt as interrupted."""
    turn = site.turn_of(now)
    named = text(site.params_of(late).get("turnId"))
    return (
        now.method == "turn/completed"
        and turn is not None
        and (turn.id, turn.status) == (named, "interrupted")
    )


FAULTS: tuple[Fault, ...] = (
    Fault(
        "noise-between-messages",
        rule="frame.well-formed",
        on="plain-turn",
        reason="A line of log output among the messages is none of the message forms.",
        change=first(from_target(Kind.RESPONSE), insert(LOG_LINE)),
    ),
    Fault(
        "bytes-that-are-no-text",
        rule="frame.well-formed",
        on="plain-turn",
        reason="Bytes that are no UTF-8 are no JSON, so none of the message forms.",
        change=first(from_target(Kind.RESPONSE), insert(NO_TEXT)),
    ),
    Fault(
        "result-is-an-array",
        rule="frame.well-formed",
        on="two-turns-read",
        reason="A response's result is an object.",
        change=first(read_with_turns(), edit_by("result", value=lambda _, f: [f.result])),
    ),
    Fault(
        "params-are-an-array",
        rule="frame.well-formed",
        on="plain-turn",
        reason="A notification's params are an object.",
        change=first(
            status("idle"), edit_by("params", value=lambda _, f: list(obj(f.params).values()))
        ),
    ),
    Fault(
        "server-request-with-text-id",
        rule="frame.well-formed",
        on="plain-turn",
        reason="A server request has a number as its id.",
        change=first(turn_started(), insert(QUESTION)),
    ),
    Fault(
        "answer-with-another-id",
        rule="response.known-id",
        on="two-turns-read",
        reason="A response carries the id of the request that it answers.",
        change=first(read_with_turns(), edit("id", to=987654321)),
    ),
    Fault(
        "answer-id-as-text",
        rule="response.known-id",
        on="two-turns-read",
        reason="The id that comes back is the id that was sent, not its text.",
        change=first(
            read_with_turns().where(lambda _, f: isinstance(f.id, int), "and a number as its id"),
            edit_by("id", value=lambda _, f: str(f.id)),
        ),
    ),
    Fault(
        "answer-given-twice",
        rule="response.once",
        on="two-turns-read",
        reason="A request is answered by one response.",
        change=first(read_with_turns(), duplicate),
    ),
    Fault(
        "answer-lost",
        rule="request.answered",
        on="two-turns-read",
        reason="Every operation is a request that is answered.",
        change=first(read_with_turns(), drop),
    ),
    Fault(
        "result-and-error",
        rule="response.result-xor-error",
        on="two-turns-read",
        reason="A response reports success by its result; an error beside it says the contrary.",
        change=first(read_with_turns(), edit("error", to=FAILED)),
    ),
    Fault(
        "result-member-missing",
        rule="shape.response",
        on="plain-turn",
        reason="The result of thread/start names the model.",
        change=first(
            answer_to("thread/start").where(lambda _, f: "model" in obj(f.result), "with a model"),
            remove("result", "model"),
        ),
    ),
    Fault(
        "notification-member-missing",
        rule="shape.notification",
        on="plain-turn",
        reason="An agentMessage has a text.",
        change=first(item_started("agentMessage"), remove("params", "item", "text")),
    ),
    Fault(
        "status-as-a-word",
        rule="shape.notification",
        on="plain-turn",
        reason="A thread's status is an object with a type, not a string.",
        change=first(status("active"), edit("params", "status", to="active")),
    ),
    Fault(
        "unheard-of-notification",
        rule="method.known",
        on="plain-turn",
        reason="The text does not name it: legal, and worth recording.",
        change=first(from_target(Kind.RESPONSE), insert(UNHEARD_OF)),
    ),
    Fault(
        "own-request-of-wrong-shape",
        rule="harness.own-frame",
        on="plain-turn",
        reason="The cwd that we send is a string; anything else is our own defect.",
        change=first(our_request("thread/start"), edit("params", "cwd", to=5)),
    ),
    Fault(
        "turn-announced-before-its-reply",
        rule="response.before-effects",
        on="plain-turn",
        reason="The text gives no order: recorded, since clients trip over it.",
        change=delay(
            turn_reply().where(not_announced, "before turn/started"),
            "turn/started",
            its_turn_is_announced,
        ),
    ),
    Fault(
        "interrupt-answered-last",
        rule="response.before-effects",
        on="interrupted",
        reason="The end of the turn comes after the answer to turn/interrupt.",
        change=delay(
            answer_to("turn/interrupt"), "end of the turn as interrupted", interrupted_turn_ends
        ),
    ),
    Fault(
        "interrupt-answered-with-members",
        rule="interrupt.reply-empty",
        on="interrupted",
        reason="The result of turn/interrupt is {}; more than that is recorded.",
        change=first(answer_to("turn/interrupt"), edit("result", "interrupted", to=True)),
    ),
    Fault(
        "interrupt-answered-with-null",
        rule="interrupt.reply-empty",
        on="interrupted",
        reason="The result of turn/interrupt is {}, not null.",
        change=first(answer_to("turn/interrupt"), edit("result", to=None)),
    ),
)
