"""Faults of turn/steer, and of rejections about a running turn."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.faults import stored
from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.changes import first, in_sequence
from harness.faults.operators import answer_by, edit, insert_by, refuse, rename_ids
from harness.faults.selectors import Selector, answer_to, refusal_of, turn_completed, turn_in
from harness.faults.site import FaultSite
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import ModelCall
from harness.trace.trace import Mark, Trace

UNHEARD = "the change is in marks: model calls are not messages"
OTHER_ID = "turn_404404"


def granted_steer() -> Selector:
    """Select the answer to an accepted turn/steer with a text."""
    return answer_to("turn/steer").where(lambda site, f: bool(steered_text(site, f)), "with a text")


def refused_steer() -> Selector:
    """Select the answer to a turn/steer that was rejected with an error object."""
    return refusal_of("turn/steer").where(
        lambda _, f: isinstance(f.error, dict), "with an error object"
    )


def steered_text(site: FaultSite, frame: Frame) -> str:
    """Return the first text in the input of the request that a frame answers."""
    return first_text(site.params_of(frame).get("input"))


def first_text(parts: Any) -> str:
    """Return the first text of an input, "" if there is none."""
    return next((text(obj(part).get("text")) for part in arr(parts) if "text" in obj(part)), "")


def after_a_completed_turn() -> Selector:
    """Select any answer to a turn/steer sent after a completed turn of this client."""

    def is_late(site: FaultSite, frame: Frame) -> bool:
        request = site.request_of(frame)
        return request is not None and any(
            turn.status == "completed" and turn.completions[0].seq < request.seq
            for turn in site.conversation.turns.values()
            if site.is_our_turn(turn)
        )

    def answers(site: FaultSite, frame: Frame) -> bool:
        request = site.request_of(frame)
        return request is not None and request.method == "turn/steer" and is_late(site, frame)

    return Selector("turn/steer after the end of a turn", answers)


def ended_turn(site: FaultSite, _: Frame) -> str:
    """Return the id of the first completed turn that this client started."""
    turns = site.conversation.turns.values()
    return next(turn.id for turn in turns if turn.status == "completed" and site.is_our_turn(turn))


def was_steered(site: FaultSite, frame: Frame) -> bool:
    """Return whether a turn/steer of the turn of `frame` was accepted."""
    turn = turn_in(site, frame)
    return any(
        granted_steer().fits(site, other) and site.params_of(other).get("expectedTurnId") == turn.id
        for other in site.frames
    )


def announced_again(site: FaultSite, frame: Frame) -> Any:
    """Return the turn/started of a turn, with another id."""
    turn = turn_in(site, frame)
    return rename_ids(turn.starts[0].json, {turn.id: OTHER_ID})


def ended_again(site: FaultSite, frame: Frame) -> Any:
    """Return the turn/completed of a turn, with another id."""
    return rename_ids(frame.json, {turn_in(site, frame).id: OTHER_ID})


def message(method: str) -> Callable[[FaultSite, Frame], dict[str, Any]]:
    """Return a function that builds an item message of the turn that a turn/interrupt named."""

    def build(site: FaultSite, frame: Frame) -> dict[str, Any]:
        params = site.params_of(frame)
        item = {"type": "agentMessage", "id": "msg-404404", "text": "On."}
        ids = {"threadId": params.get("threadId"), "turnId": params.get("turnId")}
        return {"method": method, "params": {**ids, "item": item}}

    return build


def first_steer(site: FaultSite, pick: Selector) -> tuple[Frame, str]:
    """Return the first answer that `pick` selects, and the text of its request.

    Raises `NotApplied` if there is none.
    """
    answer = next((frame for frame in site.frames if pick.fits(site, frame)), None)
    if answer is None:
        raise NotApplied(f"no {pick.description}")
    return answer, steered_text(site, answer)


def calls_with(site: FaultSite, words: str) -> list[Mark[ModelCall]]:
    """Return the model calls with this input. Raises `NotApplied` if there are none."""
    calls = [
        mark
        for mark in site.marks_of(ModelCall)
        if any(words in user_text for user_text in mark.body.user_texts or ())
    ]
    if not calls:
        raise NotApplied("no model call with the input")
    return calls


def remove_from_calls(site: FaultSite, trace: Trace, words: str) -> Trace:
    """Remove the user's texts with these words from all model calls."""

    def without(call: ModelCall) -> ModelCall:
        texts = call.user_texts or ()
        return replace(
            call, user_texts=tuple(user_text for user_text in texts if words not in user_text)
        )

    return stored.replace_marks(trace, calls_with(site, words), without)


def drop_user_messages(site: FaultSite, trace: Trace, words: str) -> Trace:
    """Drop the userMessage items with these words."""
    user_messages = [
        frame
        for frame in site.frames
        if frame.kind is Kind.NOTIFICATION
        and dig(frame.params, "item", "type") == "userMessage"
        and first_text(dig(frame.params, "item", "content")) == words
    ]
    return stored.drop(trace, *user_messages)


def refuse_running(site: FaultSite, trace: Trace) -> Trace:
    """Reject an accepted turn/steer, and remove its input from calls and items."""
    answer, words = first_steer(site, granted_steer())
    error = {"id": answer.id, "error": {"code": -32600, "message": "not now"}}
    trace = stored.change(remove_from_calls(site, trace, words), [answer], lambda _: error)
    return drop_user_messages(site, trace, words)


def lose_input(site: FaultSite, trace: Trace) -> Trace:
    """Remove the input of an accepted turn/steer from calls and items."""
    _, words = first_steer(site, granted_steer())
    return drop_user_messages(site, remove_from_calls(site, trace, words), words)


def hide_from_model(site: FaultSite, trace: Trace) -> Trace:
    """Remove the input of an accepted turn/steer from all model calls."""
    return remove_from_calls(site, trace, first_steer(site, granted_steer())[1])


def add_to_call(trace: Trace, call: Mark[ModelCall], words: str) -> Trace:
    """Add words to a model call."""
    texts = (*(call.body.user_texts or ()), words)
    return stored.replace_marks(trace, [call], lambda body: replace(body, user_texts=texts))


def ask_twice(site: FaultSite, trace: Trace) -> Trace:
    """Repeat the input of an accepted turn/steer in a model call that has it."""
    _, words = first_steer(site, granted_steer())
    return add_to_call(trace, calls_with(site, words)[0], words)


def ask_refused_input(site: FaultSite, trace: Trace) -> Trace:
    """Put the input of a rejected turn/steer into the last model call."""
    _, words = first_steer(site, refused_steer())
    calls = site.marks_of(ModelCall)
    if not calls or not words:
        raise NotApplied("no model call")
    return add_to_call(trace, calls[-1], words)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "steering-of-no-turn-granted",
        rule="steer.precondition",
        on="steering",
        reason="turn/steer fails where its id is not the active turn's.",
        change=first(
            refused_steer(),
            answer_by(lambda site, f: {"turnId": site.params_of(f).get("expectedTurnId")}),
        ),
    ),
    Fault(
        "steering-of-an-ended-turn-granted",
        rule="steer.precondition",
        on="steering",
        reason="turn/steer fails where no turn is active.",
        change=first(
            after_a_completed_turn(), answer_by(lambda site, f: {"turnId": ended_turn(site, f)})
        ),
    ),
    Fault(
        "steering-names-another-turn",
        rule="steer.names-turn",
        on="steered",
        reason="The answer names the turn that took the input, which is the expected one.",
        change=first(granted_steer(), edit("result", "turnId", to=OTHER_ID)),
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
        change=StoredOnly(UNHEARD, refuse_running),
    ),
    Fault(
        "interrupt-refused-while-the-turn-runs",
        rule="interrupt.granted",
        on="interrupted",
        reason="A turn in progress is interrupted by turn/interrupt.",
        change=in_sequence(
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
        change=StoredOnly(UNHEARD, lose_input),
    ),
    Fault(
        "steered-input-shown-and-not-asked",
        rule="steer.input-arrives",
        on="steering",
        reason="What is added to a turn is for the agent, so the model is asked it.",
        change=StoredOnly(UNHEARD, hide_from_model),
    ),
    Fault(
        "steered-input-asked-twice",
        rule="steer.applied-once",
        on="steering",
        reason="What one turn/steer adds is added once.",
        change=StoredOnly(UNHEARD, ask_twice),
    ),
    Fault(
        "refused-input-asked",
        rule="steer.refused-unheard",
        on="steering",
        reason="A turn/steer that fails appends nothing.",
        change=StoredOnly(UNHEARD, ask_refused_input),
    ),
)
