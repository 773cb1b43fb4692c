"""Order of messages as far as rules may know it: `Trace.before`, and the order of arrival."""

from harness.trace.marks import EndingBegins, GateOpened
from harness.trace.order import (
    by_arrival,
    came_before,
    came_between,
    earliest,
    frames_before,
    frames_between,
    marked_before,
)
from harness.trace.trace import Trace
from tests.rules.traces import Talk


def five() -> Trace:
    """Request 1 sent, a notification, its answer, request 2 sent, a notification on c2."""
    talk = Talk().asks("a").tells("n").answers({}).asks("b")
    return talk.on("c2").tells("n").trace()


def test_within_one_direction_order_is_known() -> None:
    trace = five()
    request, told, answer, second, _ = trace.frames
    assert trace.before(told, answer) is True
    assert trace.before(answer, told) is False
    assert trace.before(request, second) is True


def test_a_request_comes_before_its_answer() -> None:
    trace = five()
    request, _, answer, _, _ = trace.frames
    assert trace.before(request, answer) is True
    assert trace.before(answer, request) is False


def test_a_message_seen_before_a_request_was_written_before_it() -> None:
    trace = five()
    _, told, _, second, _ = trace.frames
    assert trace.before(told, second) is True
    assert trace.before(second, told) is False


def test_a_message_seen_after_a_request_may_have_been_written_before_it() -> None:
    trace = five()
    request, told, _, _, _ = trace.frames
    assert trace.before(request, told) is None
    assert trace.before(told, request) is None


def test_two_connections_have_no_common_order() -> None:
    trace = five()
    assert trace.before(trace.frames[1], trace.frames[4]) is None
    assert trace.before(trace.frames[4], trace.frames[0]) is None


def test_an_id_of_another_type_is_no_answer() -> None:
    trace = Talk().asks("a").says({"id": "1", "result": {}}).trace()
    assert trace.before(trace.frames[0], trace.frames[1]) is None


def test_the_order_of_arrival_is_the_order_that_is_known() -> None:
    frames = five().frames
    known = [
        (first, second)
        for first in frames
        for second in frames
        if first is not second and five().before(first, second) is not None
    ]
    assert len(known) > 5
    for first, second in known:
        assert came_before(first, second) is five().before(first, second)


def test_the_order_of_arrival_is_of_any_two_messages() -> None:
    request, told, answer, second, elsewhere = five().frames
    assert came_before(request, told)
    assert not came_before(told, request)
    assert not came_before(told, told)
    assert came_before(second, elsewhere)
    assert came_between(request, told, answer)
    assert not came_between(told, request, answer)
    assert not came_between(request, answer, answer)
    assert by_arrival([answer, told, request]) == [request, told, answer]
    assert earliest([answer, told]) is told
    assert earliest([]) is None


def test_parts_of_a_trace_are_cut_between_messages() -> None:
    trace = five()
    request, told, answer, second, _ = trace.frames
    assert frames_between(trace, request, second) == [told, answer]
    assert frames_between(trace, request, told) == []
    assert frames_before(trace, second, 2) == [told, answer]
    assert frames_before(trace, told, 2) == [request]


def test_a_mark_is_before_what_came_after_it() -> None:
    trace = Talk().asks("a").mark(GateOpened("a")).answers({}).trace()
    request, answer = trace.frames
    assert marked_before(trace.marks[0], answer)
    assert not marked_before(trace.marks[0], request)


def test_marks_are_found_by_kind() -> None:
    trace = Talk().mark(GateOpened("a")).mark(EndingBegins()).mark(GateOpened("b")).trace()
    assert [mark.body.gate for mark in trace.marks_of(GateOpened)] == ["a", "b"]
