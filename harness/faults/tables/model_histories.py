"""Faults of the history that a server sends to the model, in the marks of its calls."""

from dataclasses import replace
from itertools import pairwise

from harness.faults import stored
from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.site import FaultSite
from harness.faults.tables.model_calls import IN_MARKS
from harness.faults.tables.steering import first_text
from harness.protocol.values import dig, obj
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall, ModelEnd
from harness.trace.trace import Mark, Trace

ON = "sent-histories"


def inputs(site: FaultSite) -> list[tuple[str, str, int]]:
    """Return the thread, the first text and the position of each turn/start, in order."""
    return [
        (str(dig(frame.params, "threadId")), _text(frame), frame.seq)
        for frame in site.frames
        if frame.method == "turn/start"
    ]


def _text(start: Frame) -> str:
    return first_text(obj(start.params).get("input"))


def add_recalled(call: Mark[ModelCall], *words: str) -> ModelCall:
    """Return the content of a call that contains these texts too."""
    return replace(call.body, recalled=(*(call.body.recalled or ()), *words))


def calls_after(site: FaultSite, seq: int) -> list[Mark[ModelCall]]:
    """Return the model calls after a position. Raises `NotApplied` if there are none."""
    calls = [mark for mark in site.marks_of(ModelCall) if mark.after >= seq]
    if not calls:
        raise NotApplied("no later model call")
    return calls


def send_dropped_turn(site: FaultSite, trace: Trace) -> Trace:
    """Send the last turn before a rollback with the calls after it."""
    rollbacks = [frame.seq for frame in site.frames if frame.method == "thread/rollback"]
    if not rollbacks:
        raise NotApplied("no rollback")
    words = [text for _, text, seq in inputs(site) if seq < rollbacks[0]][-1:]
    calls = calls_after(site, rollbacks[0])[:1]
    return stored.replace_marks(trace, calls, lambda _: add_recalled(calls[0], *words))


def forget(site: FaultSite, trace: Trace, lost: str) -> Trace:
    """Remove an earlier text from all calls after the first turn."""

    def without(call: ModelCall) -> ModelCall:
        said, recalled = call.user_texts or (), call.recalled or ()
        return replace(
            call,
            user_texts=tuple(words for words in said if words != lost),
            recalled=tuple(words for words in recalled if words != lost),
        )

    later = [seq for _, _, seq in inputs(site)][1:2]
    if not lost or not later:
        raise NotApplied("no turn after another one")
    return stored.replace_marks(trace, calls_after(site, later[0]), without)


def forget_input(site: FaultSite, trace: Trace) -> Trace:
    """Remove the input of the first turn from all calls of later turns."""
    return forget(site, trace, next((text for _, text, _ in inputs(site)), ""))


def forget_answer(site: FaultSite, trace: Trace) -> Trace:
    """Remove the model's first answer from all calls of later turns."""
    answers = [message.text for mark in site.marks_of(ModelEnd) for message in mark.body.texts]
    return forget(site, trace, next(iter(answers), ""))


def send_other_thread(site: FaultSite, trace: Trace) -> Trace:
    """Send the input of another thread's turn with the call of the turn after it."""
    for (other, words, _), (thread, _, seq) in reversed(list(pairwise(inputs(site)))):
        if other != thread:
            call = calls_after(site, seq)[0]
            changed = add_recalled(call, words)
            return stored.replace_marks(trace, [call], lambda _, changed=changed: changed)
    raise NotApplied("no turns of several threads")


FAULTS: tuple[Fault, ...] = (
    Fault(
        "dropped-turn-sent-to-the-model",
        rule="rollback.unheard",
        on=ON,
        reason="A turn that was dropped is no part of the conversation any more.",
        change=StoredOnly(IN_MARKS, send_dropped_turn),
    ),
    Fault(
        "earlier-input-not-sent-to-the-model",
        rule="model.history-sent",
        on=ON,
        reason="A turn goes on with the conversation of its thread.",
        change=StoredOnly(IN_MARKS, forget_input),
    ),
    Fault(
        "earlier-answer-not-sent-to-the-model",
        rule="model.history-sent",
        on=ON,
        reason="The model's own answers are part of the conversation of a thread.",
        change=StoredOnly(IN_MARKS, forget_answer),
    ),
    Fault(
        "other-thread-sent-to-the-model",
        rule="model.other-threads-unheard",
        on=ON,
        reason="A turn is added to the thread that it names, and to no other.",
        change=StoredOnly(IN_MARKS, send_other_thread),
    ),
)
