"""The operators on whole traces: pure, numbered anew, marks in their place."""

import pytest

from harness.faults import stored as op
from harness.faults.site import NotApplied
from harness.trace.frame import Direction, Kind, Origin
from harness.trace.marks import GateOpened
from harness.trace.trace import Trace
from tests.rules.traces import Talk


@pytest.fixture
def trace() -> Trace:
    """Four notifications a, b, c, d with a mark between b and c."""
    return (
        Talk()
        .tells("a", x=1)
        .tells("b")
        .mark(GateOpened("f"))
        .tells("c", list=[1, 2])
        .tells("d")
        .trace()
    )


def methods(trace: Trace) -> str:
    assert [frame.seq for frame in trace.frames] == list(range(len(trace.frames)))
    return "".join(frame.method for frame in trace.frames)


def test_drop_takes_frames_away(trace: Trace) -> None:
    assert methods(op.drop(trace, trace.frames[0], trace.frames[2])) == "bd"


def test_duplicate_puts_a_copy_behind(trace: Trace) -> None:
    assert methods(op.duplicate(trace, trace.frames[1])) == "abbcd"


def test_move_goes_both_ways(trace: Trace) -> None:
    assert methods(op.move(trace, trace.frames[0], after=trace.frames[2])) == "bcad"
    assert methods(op.move(trace, trace.frames[3], after=trace.frames[0])) == "adbc"


def test_swap_exchanges_two(trace: Trace) -> None:
    assert methods(op.swap(trace, trace.frames[0], trace.frames[3])) == "dbca"


def test_edit_sets_one_value_and_writes_it_to_the_raw_bytes(trace: Trace) -> None:
    changed = op.edit(trace, trace.frames[2], ("params", "list", 1), "two")
    assert changed.frames[2].params == {"list": [1, "two"]}
    assert b'"two"' in changed.frames[2].raw


def test_edit_can_change_what_kind_of_message_it_is(trace: Trace) -> None:
    assert op.edit(trace, trace.frames[0], ("method",), 5).frames[0].kind is Kind.MALFORMED


def test_remove_takes_a_member_away(trace: Trace) -> None:
    assert op.remove(trace, trace.frames[0], ("params", "x")).frames[0].params == {}


def test_rename_changes_whole_values_only() -> None:
    trace = Talk().tells("m", id="thr_1", other="thr_1-a", deep=[{"of": "thr_1"}]).trace()
    (frame,) = op.rename(trace, trace.frames, "thr_1", "x").frames
    assert frame.params == {"id": "x", "other": "thr_1-a", "deep": [{"of": "x"}]}


def test_insert_writes_on_the_connection_of_its_anchor() -> None:
    trace = Talk().tells("a").on("c2").tells("b").trace()
    changed = op.insert(trace, after=trace.frames[1], message={"method": "c"})
    assert methods(changed) == "abc"
    assert changed.frames[2].connection == "c2"
    own = op.insert(trace, after=trace.frames[0], message=b"\xff", origin=Origin.HARNESS)
    assert own.frames[1].direction is Direction.TO_TARGET
    assert own.frames[1].kind is Kind.MALFORMED


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (lambda t: op.drop(t, t.frames[0]), 0),
        (lambda t: op.drop(t, t.frames[3]), 1),
        (lambda t: op.duplicate(t, t.frames[0]), 2),
        (lambda t: op.duplicate(t, t.frames[2]), 1),
        (lambda t: op.insert(t, after=t.frames[1], message={"method": "x"}), 2),
    ],
)
def test_marks_stay_behind_the_frames_they_followed(trace, change, after) -> None:
    assert [mark.after for mark in change(trace).marks] == [after]


def test_remark_changes_the_data_of_marks(trace: Trace) -> None:
    changed = op.remark(trace, trace.marks, lambda _: GateOpened("g"))
    assert [mark.body for mark in changed.marks] == [GateOpened("g")]
    same = op.remark(trace, [], lambda _: GateOpened("g"))
    assert [mark.body for mark in same.marks] == [GateOpened("f")]


def test_no_operator_touches_the_trace_it_is_given(trace: Trace) -> None:
    before = [(frame.seq, frame.raw, str(frame.json)) for frame in trace.frames]
    frames = trace.frames
    op.drop(trace, frames[0])
    op.move(trace, frames[0], after=frames[2])
    op.edit(trace, frames[2], ("params", "list", 0), 9)
    op.remove(trace, frames[2], ("params", "list", 0))
    op.rename(trace, frames, "a", "z")
    op.remark(trace, trace.marks, lambda _: GateOpened("g"))
    assert trace.marks[0].body == GateOpened("f")
    assert [(frame.seq, frame.raw, str(frame.json)) for frame in trace.frames] == before
    assert trace.frames is frames


@pytest.mark.parametrize("path", [("result", "decision"), ("params", "list", 0, "x"), ("no",)])
def test_a_message_that_lacks_the_place_is_none_that_the_fault_applies_to(
    trace: Trace, path: tuple[str | int, ...]
) -> None:
    with pytest.raises(NotApplied):
        op.remove(trace, trace.frames[2], path)
    if len(path) > 1:
        with pytest.raises(NotApplied):
            op.edit(trace, trace.frames[2], path, "value")
