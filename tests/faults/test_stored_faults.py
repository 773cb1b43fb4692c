"""Faults on stored traces: pure, numbered anew, marks in their place, one connection."""

import pytest

from harness.faults import stored
from harness.faults.base import Condition, NotApplied, StoredOnly
from harness.faults.changes import delay, every, first, requires
from harness.faults.operators import drop, duplicate, edit
from harness.faults.queue import Change
from harness.faults.selectors import notification, turn_completed
from harness.trace.frame import Direction, Kind, Origin
from harness.trace.marks import GateOpened
from harness.trace.trace import Trace
from tests.faults.feeding import fault_of
from tests.rules.good_traces import plain_turn
from tests.rules.traces import Talk


@pytest.fixture
def trace() -> Trace:
    """Four notifications a, b, c, d with a mark between b and c."""
    return (
        Talk()
        .tells("a")
        .tells("b")
        .mark(GateOpened("f"))
        .tells("c", list=[1, 2])
        .tells("d")
        .trace()
    )


def methods(trace: Trace) -> str:
    assert [frame.seq for frame in trace.frames] == list(range(len(trace.frames)))
    return "".join(frame.method for frame in trace.frames)


def applied(change: Change | StoredOnly, trace: Trace, given: Condition | None = None) -> Trace:
    return stored.apply(fault_of(change, given), trace)


def test_a_fault_is_applied_and_the_frames_numbered_anew(trace: Trace) -> None:
    assert methods(applied(first(notification("b"), drop), trace)) == "acd"
    late = delay(notification("a"), "c", lambda _, __, now: now.method == "c")
    assert methods(applied(late, trace)) == "bcad"


@pytest.mark.parametrize(
    ("method", "operator", "after"),
    [("a", drop, 0), ("d", drop, 1), ("a", duplicate, 2), ("c", duplicate, 1)],
)
def test_marks_stay_behind_the_frames_they_followed(trace, method, operator, after) -> None:
    changed = applied(first(notification(method), operator), trace)
    assert [mark.after for mark in changed.marks] == [after]


def test_a_mark_stays_between_the_frames_that_a_moved_frame_has_passed(trace: Trace) -> None:
    late = delay(notification("a"), "d", lambda _, __, now: now.method == "d")
    changed = applied(late, trace)
    assert (methods(changed), changed.marks[0].after) == ("bcda", 0)


def test_a_fault_acts_on_the_first_connection_that_has_a_place() -> None:
    trace = Talk().tells("a").on("c2").tells("b").on("c3").tells("b").trace()
    changed = applied(every(notification("b"), edit("method", to="B")), trace)
    assert [(f.connection, f.method) for f in changed.frames] == [
        ("c1", "a"),
        ("c2", "B"),
        ("c3", "b"),
    ]


def test_frames_of_other_connections_keep_their_place() -> None:
    trace = Talk().tells("a").on("c2").tells("x").on("c1").tells("b").trace()
    assert methods(applied(first(notification("a"), duplicate), trace)) == "aaxb"


def test_marks_of_several_clients_are_those_of_none() -> None:
    """With several clients the model call of a mark may belong to either of them."""

    def shows_marks(site, trace):
        raise NotApplied(f"{len(site.marks_of(GateOpened))} marks")

    alone = Talk().tells("a").mark(GateOpened("f")).trace()
    with pytest.raises(NotApplied, match="1 marks"):
        applied(StoredOnly("why", shows_marks), alone)
    two = Talk().tells("a").mark(GateOpened("f")).on("c2").tells("b").trace()
    with pytest.raises(NotApplied, match="0 marks"):
        applied(StoredOnly("why", shows_marks), two)


def test_a_rules_condition_is_asked_of_the_whole_trace() -> None:
    given = requires(turn_completed("failed"))
    change = first(notification("turn/started"), drop)
    assert len(applied(change, plain_turn()).frames) == len(plain_turn().frames) - 1
    with pytest.raises(NotApplied, match="no turn/completed failed"):
        applied(change, plain_turn(), given)
    assert applied(change, plain_turn(), requires(turn_completed("completed")))


def test_a_trace_without_frames_has_no_place_for_any_fault() -> None:
    with pytest.raises(NotApplied, match="no frames"):
        applied(first(notification("a"), drop), Talk().trace())


def test_drop_change_and_insert(trace: Trace) -> None:
    assert methods(stored.drop(trace, trace.frames[0], trace.frames[2])) == "bd"
    changed = stored.change(trace, trace.frames[:2], lambda m: {**m, "method": m["method"] * 2})
    assert methods(changed) == "aabbcd"
    own = stored.insert(trace, after=trace.frames[0], message=b"\xff", origin=Origin.HARNESS)
    assert (own.frames[1].direction, own.frames[1].kind) == (Direction.TO_TARGET, Kind.MALFORMED)
    assert [mark.after for mark in own.marks] == [2]


def test_remark_changes_the_data_of_the_marks_given_and_unmark_takes_marks_away(
    trace: Trace,
) -> None:
    changed = stored.replace_marks(trace, trace.marks, lambda _: GateOpened("g"))
    assert [mark.body for mark in changed.marks] == [GateOpened("g")]
    same = stored.replace_marks(trace, [], lambda _: GateOpened("g"))
    assert [mark.body for mark in same.marks] == [GateOpened("f")]
    assert stored.remove_marks(trace, lambda mark: mark.body == GateOpened("f")).marks == []
    assert len(stored.remove_marks(trace, lambda mark: mark.body == GateOpened("g")).marks) == 1


def test_the_trace_given_is_never_touched(trace: Trace) -> None:
    before = [(frame.seq, frame.raw, str(frame.json)) for frame in trace.frames]
    frames = list(trace.frames)
    applied(first(notification("c"), edit("params", "list", 0, to=9)), trace)
    stored.drop(trace, frames[0])
    stored.change(trace, frames, lambda message: message.clear() or message)
    stored.insert(trace, after=frames[0], message={"method": "x"})
    stored.replace_marks(trace, trace.marks, lambda _: GateOpened("g"))
    assert trace.marks[0].body == GateOpened("f")
    assert [(frame.seq, frame.raw, str(frame.json)) for frame in trace.frames] == before
    assert trace.frames == frames
