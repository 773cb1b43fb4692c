"""Faults of turn/steer, and of what is refused about a running turn."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.faults import stored
from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.changes import first, in_turn
from harness.faults.operators import answer_by, edit, insert_by, refuse, renamed
from harness.faults.selectors import (
    Selector,
    answer_to,
    refusal_of,
    turn_completed,
    turn_in,
)
from harness.faults.site import FaultSite
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import ModelCall
from harness.trace.trace import Mark, Trace

UNHEARD = "it changes what the model was asked, and that is in marks"
OTHER_ID = "turn_404404"


def granted() -> Selector:
    """A turn/steer with a text that was granted."""
    return answer_to("turn/steer").where(lambda site, f: bool(said(site, f)), "with a text")


def refused() -> Selector:
    """A turn/steer that was refused with an error object."""
    return refusal_of("turn/steer").where(
        lambda _, f: isinstance(f.error, dict), "with an error object"
    )


def said(site: FaultSite, frame: Frame) -> str:
    """The first text of the input that was answered."""
    return first_text(site.asked(frame).get("input"))


def first_text(parts: Any) -> str:
    """The first text of an input, "" where there is none."""
    return next((text(obj(part).get("text")) for part in arr(parts) if "text" in obj(part)), "")


def after_a_completed_turn() -> Selector:
    """Any answer to a turn/steer that was sent when a turn of ours had been completed."""

    def late(site: FaultSite, frame: Frame) -> bool:
        request = site.request_of(frame)
        return request is not None and any(
            turn.status == "completed" and turn.completed[0].seq < request.seq
            for turn in site.conversation.turns.values()
            if site.ours(turn)
        )

    def answers(site: FaultSite, frame: Frame) -> bool:
        request = site.request_of(frame)
        return request is not None and request.method == "turn/steer" and late(site, frame)

    return Selector("turn/steer after the end of a turn", answers)


def ended_turn(site: FaultSite, _: Frame) -> str:
    """The id of the first turn of ours that was completed."""
    turns = site.conversation.turns.values()
    return next(turn.id for turn in turns if turn.status == "completed" and site.ours(turn))


def was_steered(site: FaultSite, frame: Frame) -> bool:
    """Return whether a turn/steer for a turn was granted."""
    turn = turn_in(site, frame)
    return any(
        granted().fits(site, one) and site.asked(one).get("expectedTurnId") == turn.id
        for one in site.frames
    )


def announced_again(site: FaultSite, frame: Frame) -> Any:
    """The turn/started of a turn, with another id."""
    turn = turn_in(site, frame)
    return renamed(turn.started[0].json, {turn.id: OTHER_ID})


def ended_again(site: FaultSite, frame: Frame) -> Any:
    """The turn/completed of a turn, with another id."""
    return renamed(frame.json, {turn_in(site, frame).id: OTHER_ID})


def message(method: str) -> Callable[[FaultSite, Frame], dict[str, Any]]:
    """A whole message of the turn whose turn/interrupt is answered."""

    def told(site: FaultSite, frame: Frame) -> dict[str, Any]:
        asked = site.asked(frame)
        item = {"type": "agentMessage", "id": "msg-404404", "text": "On."}
        where = {"threadId": asked.get("threadId"), "turnId": asked.get("turnId")}
        return {"method": method, "params": {**where, "item": item}}

    return told


def steered(site: FaultSite, pick: Selector) -> tuple[Frame, str]:
    """The answer to the first such turn/steer, and the text it brought."""
    found = next((one for one in site.frames if pick.fits(site, one)), None)
    if found is None:
        raise NotApplied(f"no {pick.what}")
    return found, said(site, found)


def heard(site: FaultSite, words: str) -> list[Mark[ModelCall]]:
    """The model calls that hold an input."""
    calls = [
        mark
        for mark in site.marks_of(ModelCall)
        if any(words in one for one in mark.body.user_texts or ())
    ]
    if not calls:
        raise NotApplied("no model call with the input")
    return calls


def unheard(site: FaultSite, trace: Trace, words: str) -> Trace:
    """The model was never asked these words."""

    def without(call: ModelCall) -> ModelCall:
        texts = call.user_texts or ()
        return replace(call, user_texts=tuple(one for one in texts if words not in one))

    return stored.remark(trace, heard(site, words), without)


def unshown(site: FaultSite, trace: Trace, words: str) -> Trace:
    """No userMessage shows these words."""
    shown = [
        one
        for one in site.frames
        if one.kind is Kind.NOTIFICATION
        and dig(one.params, "item", "type") == "userMessage"
        and first_text(dig(one.params, "item", "content")) == words
    ]
    return stored.drop(trace, *shown)


def refused_while_running(site: FaultSite, trace: Trace) -> Trace:
    """An error, and nothing of the input anywhere."""
    given, words = steered(site, granted())
    error = {"id": given.id, "error": {"code": -32600, "message": "not now"}}
    trace = stored.change(unheard(site, trace, words), [given], lambda _: error)
    return unshown(site, trace, words)


def lost(site: FaultSite, trace: Trace) -> Trace:
    """The answer is success, and the input is nowhere."""
    _, words = steered(site, granted())
    return unshown(site, unheard(site, trace, words), words)


def not_asked(site: FaultSite, trace: Trace) -> Trace:
    """A userMessage, and no model call with it."""
    return unheard(site, trace, steered(site, granted())[1])


def asked_also(trace: Trace, call: Mark[ModelCall], words: str) -> Trace:
    """A model call with words more."""
    texts = (*(call.body.user_texts or ()), words)
    return stored.remark(trace, [call], lambda body: replace(body, user_texts=texts))


def asked_twice(site: FaultSite, trace: Trace) -> Trace:
    """The same words twice in a call."""
    _, words = steered(site, granted())
    return asked_also(trace, heard(site, words)[0], words)


def refused_and_asked(site: FaultSite, trace: Trace) -> Trace:
    """Put the refused input into the last model call."""
    _, words = steered(site, refused())
    calls = site.marks_of(ModelCall)
    if not calls or not words:
        raise NotApplied("no model call")
    return asked_also(trace, calls[-1], words)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "steering-of-no-turn-granted",
        rule="steer.precondition",
        on="steering",
        reason="turn/steer fails where its id is not the active turn's.",
        change=first(
            refused(),
            answer_by(lambda site, f: {"turnId": site.asked(f).get("expectedTurnId")}),
        ),
    ),
    Fault(
        "steering-of-an-ended-turn-granted",
        rule="steer.precondition",
        on="steering",
        reason="turn/steer fails where no turn is active.",
        change=first(
            after_a_completed_turn(),
            answer_by(lambda site, f: {"turnId": ended_turn(site, f)}),
        ),
    ),
    Fault(
        "steering-names-another-turn",
        rule="steer.names-turn",
        on="steered",
        reason="The answer names the turn that took the input, which is the expected one.",
        change=first(granted(), edit("result", "turnId", to=OTHER_ID)),
    ),
    Fault(
        "steering-starts-a-turn",
        rule="steer.starts-no-turn",
        on="steered",
        reason="turn/steer starts no new turn.",
        change=first(
            turn_completed().where(was_steered, "after turn/steer"),
            insert_by(announced_again),
            insert_by(ended_again),
        ),
    ),
    Fault(
        "steering-refused-while-the-turn-runs",
        rule="steer.granted",
        on="steering",
        reason="Input is added to the active turn when its id is given.",
        change=StoredOnly(UNHEARD, refused_while_running),
    ),
    Fault(
        "interrupt-refused-while-the-turn-runs",
        rule="interrupt.granted",
        on="interrupted",
        reason="A turn in progress is interrupted by turn/interrupt.",
        change=in_turn(
            first(
                answer_to("turn/interrupt"),
                refuse("no", code=-32600),
                insert_by(message("item/started")),
                insert_by(message("item/completed")),
            ),
            first(turn_completed("interrupted"), edit("params", "turn", "status", to="completed")),
        ),
    ),
    Fault(
        "steered-input-lost",
        rule="steer.input-kept",
        on="steering",
        reason="The input of turn/steer is appended to the active turn.",
        change=StoredOnly(UNHEARD, lost),
    ),
    Fault(
        "steered-input-shown-and-not-asked",
        rule="steer.input-arrives",
        on="steering",
        reason="What is added to a turn is for the agent, so the model is asked it.",
        change=StoredOnly(UNHEARD, not_asked),
    ),
    Fault(
        "steered-input-asked-twice",
        rule="steer.applied-once",
        on="steering",
        reason="What one turn/steer adds is added once.",
        change=StoredOnly(UNHEARD, asked_twice),
    ),
    Fault(
        "refused-input-asked",
        rule="steer.refused-unheard",
        on="steering",
        reason="A turn/steer that fails appends nothing.",
        change=StoredOnly(UNHEARD, refused_and_asked),
    ),
)
