"""Effects of faults on the frames that they pick."""

import pytest

from harness.faults.changes import first, throughout
from harness.faults.item_selectors import item_started
from harness.faults.operators import (
    Operator,
    answer,
    drop,
    duplicate,
    edit,
    edit_by,
    insert,
    insert_by,
    refuse,
    remove,
    rename_ids,
    rewrite,
)
from harness.faults.selectors import answer_to, notification
from harness.trace.frame import Direction, Frame, Kind, Origin
from harness.trace.trace import Trace
from tests.faults.feeding import Fed, feed
from tests.rules.good_traces import plain_turn
from tests.rules.traces import Talk


@pytest.fixture
def trace() -> Trace:
    """Notifications a, b, c; b has params."""
    return Talk().tells("a").tells("b", x=1, list=[1, 2]).tells("c").trace()


def on_b(trace: Trace, *operators: Operator) -> Fed:
    return feed(first(notification("b"), *operators), trace)


def b_after(trace: Trace, *operators: Operator) -> Frame:
    (changed,) = on_b(trace, *operators).steps[1]
    return changed


def test_drop_and_duplicate(trace: Trace) -> None:
    assert on_b(trace, drop).story == "a||c|"
    assert on_b(trace, duplicate).story == "a|bb|c|"


def test_edit_sets_one_value_and_writes_it_to_the_raw_bytes(trace: Trace) -> None:
    changed = b_after(trace, edit("params", "list", 1, to="two"))
    assert changed.params == {"x": 1, "list": [1, "two"]}
    assert b'"two"' in changed.raw


def test_edit_can_change_what_kind_of_message_it_is(trace: Trace) -> None:
    assert b_after(trace, edit("method", to=5)).kind is Kind.MALFORMED


def test_edits_of_one_frame_add_up(trace: Trace) -> None:
    changed = b_after(trace, edit("params", "x", to=2), edit("params", "y", to=3), duplicate_params)
    assert changed.params == {"x": 2, "y": 3, "list": [1, 2, 1, 2]}


def duplicate_params(queue, frame) -> None:
    rewrite(lambda m: {**m, "params": {**m["params"], "list": m["params"]["list"] * 2}})(
        queue, frame
    )


def test_a_value_can_depend_on_the_frame_and_the_conversation(trace: Trace) -> None:
    changed = b_after(
        trace, edit_by("params", "x", value=lambda site, f: [len(site.frames), f.seq])
    )
    assert changed.params["x"] == [2, 1]


def test_remove_takes_a_member_away(trace: Trace) -> None:
    assert b_after(trace, remove("params", "x")).params == {"list": [1, 2]}


def test_insert_writes_on_the_connection_and_in_the_direction_of_its_origin() -> None:
    trace = Talk().on("c2").tells("b").trace()
    (_, told), (_, own) = (
        on_b(trace, insert({"method": "c"})).steps[0],
        on_b(trace, insert(b"\xff", Origin.HARNESS)).steps[0],
    )
    assert (told.method, told.connection, told.direction) == ("c", "c2", Direction.FROM_TARGET)
    assert (own.kind, own.connection, own.direction) == (Kind.MALFORMED, "c2", Direction.TO_TARGET)


def test_inserted_frames_can_depend_on_the_frame(trace: Trace) -> None:
    again = insert_by(lambda _, frame: {"method": frame.method * 2})
    assert on_b(trace, again).story == "a|bbb|c|"


def test_an_answer_is_replaced_by_another_to_the_same_request() -> None:
    trace = Talk().asks("thread/read").answers({"thread": {}}).trace()
    for operator, rest in (
        (answer(result=[]), {"result": []}),
        (refuse("no"), {"error": {"code": -32602, "message": "no"}}),
    ):
        changed = feed(first(answer_to("thread/read"), operator), trace).passed[-1]
        assert changed.json == {"id": trace.frames[0].id, **rest}


def test_throughout_changes_all_that_is_told_of_an_item() -> None:
    trace = plain_turn()
    fed = feed(throughout(item_started("agentMessage"), edit("params", "turnId", to="x")), trace)
    changed = [f.method for f in fed.passed if f.params == {**f.params, "turnId": "x"}]
    delta = "item/agentMessage/delta"
    assert changed == ["item/started", delta, delta, "item/completed"]


def test_renamed_changes_whole_values_only() -> None:
    value = {"id": "thr_1", "other": "thr_1-a", "deep": [{"of": "thr_1"}], "thr_1": 1}
    expected = {"id": "x", "other": "thr_1-a", "deep": [{"of": "x"}], "thr_1": 1}
    assert rename_ids(value, {"thr_1": "x"}) == expected


@pytest.mark.parametrize("operator", [remove("params", "no"), edit("params", "x", "y", to=1)])
def test_a_message_that_lacks_the_place_is_passed_on_unchanged(
    trace: Trace, operator: Operator
) -> None:
    fed = on_b(trace, operator)
    assert (fed.passed, fed.applied) == (trace.frames, False)
    assert fed.missing.startswith("no ")


def test_no_operator_touches_the_frame_that_came(trace: Trace) -> None:
    before = str(trace.frames[1].json)
    on_b(trace, edit("params", "list", 0, to=9), remove("params", "x"))
    assert str(trace.frames[1].json) == before
