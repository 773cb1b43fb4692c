"""Faults of the model calls of a server, in their marks."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

from harness.faults import stored
from harness.faults.base import Condition, Fault, NotApplied, StoredOnly
from harness.faults.changes import every
from harness.faults.item_selectors import item_in
from harness.faults.operators import edit
from harness.faults.queue import Change
from harness.faults.selectors import Selector, answer_to
from harness.faults.site import FaultSite
from harness.protocol.values import dig, obj
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall
from harness.trace.trace import Mark, Trace

IN_MARKS = "the change is in marks: model calls are not messages"

# Picks one of the accepted turn/start requests, which are given in order.
WhichStart: TypeAlias = Callable[[list[Frame]], Frame]


def granted_starts(site: FaultSite) -> list[Frame]:
    """Return the accepted turn/start requests so far. Raises `NotApplied` for several threads."""
    answers = (frame for frame in site.frames if answer_to("turn/start").fits(site, frame))
    starts = [request for answer in answers if (request := site.request_of(answer)) is not None]
    if len({str(obj(start.params).get("threadId")) for start in starts}) > 1:
        raise NotApplied("no conversation of one thread")
    return starts


def the_first(starts: list[Frame]) -> Frame:
    """Return the first turn/start. Raises `NotApplied` if there is none."""
    return pick_start(starts, lambda _: True, "turn/start")


def first_with(param: str) -> WhichStart:
    """Return a function that picks the first turn/start with this param."""
    return lambda starts: pick_start(
        starts, lambda start: has(start, param), f"turn/start with {param}"
    )


def next_without(param: str) -> WhichStart:
    """Return a function that picks the turn/start after the first one with this param.

    It must not have the param itself.
    """

    def which(starts: list[Frame]) -> Frame:
        start = first_with(param)(starts)
        later = starts[starts.index(start) + 1 :][:1]
        return pick_start(
            later, lambda start: not has(start, param), f"turn/start without {param} after it"
        )

    return which


def first_if_without(param: str) -> WhichStart:
    """Return a function that picks the first turn/start if it lacks this param."""
    return lambda starts: pick_start(
        starts[:1], lambda start: not has(start, param), f"first turn/start without {param}"
    )


def has(start: Frame, param: str) -> bool:
    """Return whether a turn/start has a value for this param that is not empty."""
    return bool(obj(start.params).get(param))


def pick_start(starts: list[Frame], matches: Callable[[Frame], bool], description: str) -> Frame:
    """Return the first turn/start that matches. Raises `NotApplied` for none."""
    start = next((candidate for candidate in starts if matches(candidate)), None)
    if start is None:
        raise NotApplied(f"no {description}")
    return start


def calls_of(site: FaultSite, start: Frame) -> list[Mark[ModelCall]]:
    """Return the model calls in the turn of a turn/start. Raises `NotApplied` if there are none."""
    turns = site.conversation.turns.values()
    ends = [turn.completions[0].seq for turn in turns if turn.request is start and turn.completions]
    calls = [
        mark
        for mark in site.marks_of(ModelCall)
        if ends and start.seq <= mark.after < ends[0] and mark.body.model is not None
    ]
    if not calls:
        raise NotApplied("no model call in the turn")
    return calls


def replace_request(which: WhichStart, **data: Any) -> StoredOnly:
    """Return a change of the model calls in the turn of the picked turn/start."""

    def make(site: FaultSite, trace: Trace) -> Trace:
        calls = calls_of(site, which(granted_starts(site)))
        return stored.replace_marks(trace, calls, lambda call: replace(call, **data))

    return StoredOnly(IN_MARKS, make)


def image_sent_again() -> StoredOnly:
    """Return a change: the calls of a turn have the images of the turn before it."""

    def make(site: FaultSite, trace: Trace) -> Trace:
        turns = [calls_of(site, start) for start in granted_starts(site)]
        for calls, later in pairwise(turns):
            if images := calls[0].body.images:
                return stored.replace_marks(trace, later, lambda call: replace(call, images=images))
        raise NotApplied("no turn after one with an image")

    return StoredOnly(IN_MARKS, make)


def model_of_the_thread(which: WhichStart) -> StoredOnly:
    """Return a change: the turn of the picked turn/start calls the model of the thread."""

    def make(site: FaultSite, trace: Trace) -> Trace:
        calls = calls_of(site, which(granted_starts(site)))
        opened = [frame for frame in site.frames if answer_to("thread/start").fits(site, frame)]
        if not opened:
            raise NotApplied("no answer to thread/start")
        model = str(dig(opened[0].result, "model"))
        return stored.replace_marks(trace, calls, lambda call: replace(call, model=model))

    return StoredOnly(IN_MARKS, make)


def run_elsewhere(which: WhichStart) -> Change:
    """Return a change: the commands of the picked turn run in another folder."""

    def of_the_turn(site: FaultSite, frame: Frame) -> bool:
        if site.item_of(frame) is None or "item" not in obj(frame.params):
            return False
        item = item_in(site, frame)
        try:
            start = which(granted_starts(site))
        except NotApplied:
            return False
        return item.type == "commandExecution" and item.turn.request is start

    return every(
        Selector("command of the turn", of_the_turn),
        edit("params", "item", "cwd", to="/somewhere/else"),
    )


def requires_model_call(which: WhichStart) -> Condition:
    """Return the condition that the model was called in the turn of the picked turn/start."""

    def holds(trace: Trace) -> bool:
        site = FaultSite.of_trace(trace)
        try:
            return bool(calls_of(site, which(granted_starts(site))))
        except NotApplied:
            return False

    return Condition("model call in the turn", holds)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "model-does-not-hear-the-user",
        rule="model.input-arrives",
        on="overrides",
        reason="What the user says in a turn is for the agent, so the model is asked it.",
        change=replace_request(the_first, user_texts=[]),
    ),
    Fault(
        "model-of-the-turn-not-called",
        rule="model.named",
        on="overrides",
        reason="The model of turn/start applies to this turn.",
        change=model_of_the_thread(first_with("model")),
    ),
    Fault(
        "model-of-the-turn-forgotten",
        rule="model.named",
        on="overrides",
        reason="The model of turn/start applies to the turns after it too.",
        change=model_of_the_thread(next_without("model")),
    ),
    Fault(
        "schema-not-passed",
        rule="model.schema-this-turn",
        on="overrides",
        reason="outputSchema binds the last message of its turn, so the model should know it.",
        change=replace_request(first_with("outputSchema"), schema=False),
    ),
    Fault(
        "schema-kept",
        rule="model.schema-this-turn",
        on="overrides",
        reason="outputSchema applies to its turn only.",
        change=replace_request(next_without("outputSchema"), schema=True),
    ),
    Fault(
        "rejected-image-sent-again",
        rule="model.rejected-left-out",
        on="image-rejected",
        reason="A model that has rejected an image rejects it again; the text does not say so.",
        change=image_sent_again(),
    ),
    Fault(
        "effort-not-passed",
        rule="model.effort-passed",
        on="overrides",
        reason="An effort that the model never hears of changes nothing; the text does not say so.",
        change=replace_request(first_with("effort"), effort=""),
    ),
    Fault(
        "summary-not-passed",
        rule="model.summary-passed",
        on="overrides",
        reason="A summary that the model never hears of changes nothing; the text does not say so.",
        change=replace_request(first_with("summary"), summary=""),
    ),
    Fault(
        "command-ignores-the-cwd-of-its-turn",
        rule="turn.cwd-applies",
        on="commands",
        reason="cwd of turn/start applies to this turn.",
        change=run_elsewhere(first_with("cwd")),
        condition=requires_model_call(first_with("cwd")),
    ),
    Fault(
        "cwd-of-a-turn-forgotten",
        rule="turn.cwd-applies",
        on="commands",
        reason="cwd of turn/start applies to the turns after it too.",
        change=run_elsewhere(next_without("cwd")),
        condition=requires_model_call(next_without("cwd")),
    ),
    Fault(
        "command-outside-its-thread",
        rule="thread.cwd-used",
        on="commands",
        reason="A thread's working directory is the one captured for it.",
        change=run_elsewhere(first_if_without("cwd")),
        condition=requires_model_call(first_if_without("cwd")),
    ),
)
