"""Every fault as a stream: fed frame by frame, it does what its stored form does.

The stored form puts what was held back into its place again; apart from that both are the same.
"""

import dataclasses

import pytest

from harness.faults.base import Fault, StoredOnly, all_faults
from harness.faults.stored import apply
from harness.judge.rules.discovery import all_rules
from harness.trace.frame import Direction, Frame
from harness.trace.store import load
from harness.trace.surface.registry import classify_of
from harness.trace.surfaces import SESSION
from harness.trace.trace import Trace
from tests.faults.feeding import feed
from tools.matrix import GOOD

# Those of the session: of a program there is no stream to stand in between.
FAULTS = {
    name: fault
    for name, fault in all_faults().items()
    if all_rules()[fault.rule].surface == SESSION
}
STREAMS = [fault for fault in FAULTS.values() if not isinstance(fault.change, StoredOnly)]
STORED_ONLY = {
    "accepted-once-and-remembered": "live, the server waits for the answer to its question",
    "declined-and-changed": "the item is another from its start on, before the client has "
    "declined it",
    **dict.fromkeys(
        (
            "mcp-server-args-joined",
            "mcp-server-given-other-arguments",
            "mcp-server-inherits-token",
            "mcp-server-never-called",
            "mcp-server-off-and-offered",
            "mcp-server-result-not-told",
            "mcp-server-token-not-sent",
            "mcp-server-without-env",
        ),
        "the change is in marks: a server's requests are not messages",
    ),
    "retry-not-made": "it takes calls of the model away, and those are marks",
    **dict.fromkeys(
        (
            "effort-not-passed",
            "model-does-not-hear-the-user",
            "model-of-the-turn-forgotten",
            "model-of-the-turn-not-called",
            "refused-input-asked",
            "dropped-turn-sent-to-the-model",
            "earlier-answer-not-sent-to-the-model",
            "earlier-input-not-sent-to-the-model",
            "other-thread-sent-to-the-model",
            "rejected-image-sent-again",
            "schema-kept",
            "schema-not-passed",
            "skill-kept-from-the-model",
            "skills-never-told-to-the-model",
            "steered-input-asked-twice",
            "steered-input-lost",
            "steered-input-shown-and-not-asked",
            "steering-refused-while-the-turn-runs",
            "summary-not-passed",
        ),
        "the change is in marks: model calls are not messages",
    ),
    **dict.fromkeys(
        (
            "archived-by-a-copy",
            "archived-with-other-bytes",
            "ephemeral-on-disk",
            "restored-by-a-copy",
            "restored-nowhere",
            "rollout-not-at-its-path",
        ),
        "the change is in marks: looks at files are not messages",
    ),
    **dict.fromkeys(
        (
            "completed-though-a-client-declined",
            "declined-though-a-client-accepted",
            "ended-otherwise-for-another",
            "item-kept-from-a-subscriber",
            "outcome-differs-for-another",
            "resolved-for-who-answered-alone",
            "told-though-it-has-left",
            "turn-kept-from-a-subscriber",
        ),
        "a stream is one connection, and does not show the other client",
    ),
}
# It keeps turn/started from the client until the client has answered a question: that is the fault.
KEEPS_BACK = {"turn-announced-after-its-question"}


def good(name: str) -> Trace:
    return load(GOOD / f"{name}.jsonl", classify_of=classify_of)


def of_one_client(fault: Fault) -> Trace:
    """The good trace of a fault, cut down to the first connection on which the fault finds a place.

    A stream stands between one client and the server, and sees nothing of other connections.
    """
    trace = good(fault.on)
    for connection in dict.fromkeys(frame.connection for frame in trace.frames):
        frames = [frame for frame in trace.frames if frame.connection == connection]
        mine = dataclasses.replace(trace, frames=frames)
        if feed(fault, mine).applied:
            return mine
    return trace


def wire(frames: list[Frame]) -> list[tuple[Direction, bytes]]:
    return [(frame.direction, frame.raw) for frame in frames]


def test_the_faults_that_do_not_stream_are_few_and_say_why() -> None:
    found = {f.id: f.change.reason for f in FAULTS.values() if isinstance(f.change, StoredOnly)}
    assert found == STORED_ONLY
    # Between a client and an agent nothing passes of what a model or an MCP server gets.
    in_marks = {name for name, reason in found.items() if "marks" in reason}
    assert len(found.keys() - in_marks) < len(FAULTS) / 20


@pytest.mark.parametrize("fault", STREAMS, ids=lambda fault: fault.id)
def test_a_stream_without_marks_does_what_the_stored_form_does(fault: Fault) -> None:
    trace = of_one_client(fault)
    fed = feed(fault, trace)
    assert fed.applied
    in_place = sorted(fed.passed, key=lambda frame: frame.seq)
    assert wire(in_place) == wire(apply(fault, trace).frames)


@pytest.mark.parametrize("fault", STREAMS, ids=lambda fault: fault.id)
def test_nothing_waits_for_the_end_or_for_the_client(fault: Fault) -> None:
    """A message that the client answers must not be held: else a live conversation would stop."""
    trace = of_one_client(fault)
    fed = feed(fault, trace)
    assert fed.rest == []
    ours = [frame.direction is Direction.TO_TARGET for frame in trace.frames]
    kept = [held for held, is_ours in zip(fed.held, ours, strict=True) if is_ours]
    assert any(kept) == (fault.id in KEEPS_BACK)


def test_a_fault_that_finds_no_place_passes_everything_on_unchanged() -> None:
    without_place: set[str] = set()
    for name in ("bare-thread", "interrupted", "file-changes", "reasoning", "told"):
        trace = good(name)
        for fault in STREAMS:
            fed = feed(fault, trace)
            if fed.applied:
                continue
            without_place.add(fault.id)
            assert fed.missing, fault.id
            assert sorted(fed.passed, key=lambda frame: frame.seq) == trace.frames, fault.id
    assert len(without_place) > len(STREAMS) / 2


@pytest.mark.parametrize("direction", Direction)
def test_each_direction_is_passed_on_in_order(direction: Direction) -> None:
    """A frame that was moved has the number of the place that it was moved to."""
    for fault in STREAMS:
        passed = feed(fault, good(fault.on)).passed
        seqs = [frame.seq for frame in passed if frame.direction is direction]
        assert seqs == sorted(seqs), fault.id


@pytest.mark.parametrize("name", ["approved-command", "at-work", "reasoning"])
def test_no_fault_breaks_on_a_server_that_is_wrong_already(name: str) -> None:
    """Any frame may come too early: an answer before its question, an end before the start."""
    frames = good(name).frames
    for place in range(len(frames) - 1):
        order = [*frames]
        order.insert(place, order.pop(place + 1))
        trace = Trace(frames=[dataclasses.replace(one, seq=n) for n, one in enumerate(order)])
        for fault in STREAMS:
            fed = feed(fault, trace)
            assert fed.applied or len(fed.passed) == len(frames), fault.id
