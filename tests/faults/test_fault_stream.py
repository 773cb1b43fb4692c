"""The stream that faults act on: frames passed on, held back, and no longer changeable."""

import pytest

from harness.faults.base import StoredOnly
from harness.faults.changes import delay, every, first, in_sequence, throughout
from harness.faults.item_selectors import item_started
from harness.faults.operators import drop, duplicate, edit, insert
from harness.faults.queue import FrameQueue, Steps
from harness.faults.selectors import Selector, Verdict, notification
from harness.faults.site import FaultSite, NotApplied
from harness.faults.stored import apply
from harness.faults.stream import FaultStream
from harness.trace.frame import Frame
from harness.trace.trace import Trace
from tests.faults.feeding import fault_of, feed
from tests.rules.traces import Talk, agent_message


@pytest.fixture
def trace() -> Trace:
    """Notifications a, b, c, d of the server, and a request r of the client between b and c."""
    return Talk().tells("a").tells("b").asks("r").tells("c").tells("d").trace()


def known_with(method: str, verdict: Verdict) -> Selector:
    """b, of which nothing is known until that method has come."""

    def fits(site: FaultSite, frame: Frame) -> Verdict:
        if frame.method != "b":
            return False
        return verdict if any(one.method == method for one in site.frames) else None

    return Selector("b", fits)


def test_a_frame_that_is_not_picked_passes_at_once(trace: Trace) -> None:
    assert feed(first(notification("b"), drop), trace).story == "a||r|c|d|"


def test_first_acts_once_and_every_each_time() -> None:
    trace = Talk().tells("a").tells("b").tells("a").trace()
    assert feed(first(notification("a"), duplicate), trace).story == "aa|b|a|"
    assert feed(every(notification("a"), duplicate), trace).story == "aa|b|aa|"


def test_a_frame_is_held_until_it_is_known_whether_it_fits(trace: Trace) -> None:
    fed = feed(first(known_with("d", True), duplicate), trace)
    assert fed.story == "a||r||bbcd|"
    assert fed.held == [0, 1, 1, 2, 0]


def test_a_held_frame_that_does_not_fit_passes_unchanged(trace: Trace) -> None:
    fed = feed(first(known_with("c", False), duplicate), trace)
    assert (fed.story, fed.applied) == ("a||r|bc|d|", False)


def test_undecided_frames_come_out_at_the_end_unchanged(trace: Trace) -> None:
    fed = feed(first(known_with("never", True), drop), trace)
    assert (fed.story, fed.applied, fed.missing) == ("a||r|||bcd", False, "no b")


def test_a_hold_keeps_its_own_direction_back_and_not_the_other(trace: Trace) -> None:
    fed = feed(first(known_with("d", True), drop), trace)
    assert fed.steps[2] == [trace.frames[2]]
    assert [frame.method for frame in fed.steps[4]] == ["c", "d"]


def test_a_later_frame_that_fits_waits_for_an_earlier_one_that_may() -> None:
    trace = Talk().tells("b").tells("c").tells("d").trace()

    def fits(site: FaultSite, frame: Frame) -> Verdict:
        if frame.method == "c":
            return True
        return known_with("d", False).fits(site, frame)

    assert feed(first(Selector("b or c", fits), duplicate), trace).story == "||bccd|"
    assert feed(every(Selector("b or c", fits), duplicate), trace).story == "||bccd|"


def test_a_delayed_frame_lets_the_others_pass(trace: Trace) -> None:
    late = delay(notification("a"), "c", lambda _, __, now: now.method == "c")
    fed = feed(late, trace)
    assert (fed.story, fed.applied) == ("|b|r|ca|d|", True)


def test_a_delayed_frame_that_nothing_lets_pass_comes_at_the_end(trace: Trace) -> None:
    fed = feed(delay(notification("a"), "z", lambda *_: False), trace)
    assert (fed.story, fed.applied, fed.missing) == ("|b|r|c|d|a", False, "no z after a")
    with pytest.raises(NotApplied, match="no z after a"):
        apply(fault_of(delay(notification("a"), "z", lambda *_: False)), trace)


def test_changes_in_turn_never_act_on_an_earlier_frame(trace: Trace) -> None:
    twice = in_sequence(first(notification("c"), drop), first(notification("b"), drop))
    assert feed(twice, trace).story == "a|b|r||d|"


def test_a_fault_without_its_place_says_what_it_looked_for(trace: Trace) -> None:
    fed = feed(first(notification("z"), drop), trace)
    assert (fed.passed, fed.applied, fed.missing) == (trace.frames, False, "no z")


def test_inserted_messages_follow_their_anchor_in_the_order_given(trace: Trace) -> None:
    two = first(notification("b"), insert({"method": "x"}), insert({"method": "y"}))
    assert feed(two, trace).story == "a|bxy|r|c|d|"


def test_a_frame_that_was_passed_on_cannot_be_changed(trace: Trace) -> None:
    def late(queue: FrameQueue) -> Steps:
        earlier = yield
        yield
        assert earlier is not None
        queue.drop(earlier)

    with pytest.raises(ValueError, match=r"frame 0 .* was passed on already"):
        feed(late, trace)


def test_frames_that_wait_can_be_swapped_moved_and_changed(trace: Trace) -> None:
    def shuffle(queue: FrameQueue) -> Steps:
        a = yield
        assert a
        queue.hold(a)
        b = yield
        assert b
        queue.swap(a, b)
        yield
        c = yield
        assert c
        queue.move_before(c, b)
        edit("method", to="A")(queue, a)

    assert feed(shuffle, trace).story == "||r|cbA|d|"


def test_a_delay_sees_what_came_while_its_frame_was_held() -> None:
    trace = Talk().tells("b").tells("c").tells("d").trace()
    late = delay(known_with("d", True), "c", lambda _, __, now: now.method == "c")
    assert feed(late, trace).story == "||cbd|"


def test_an_item_that_was_held_is_changed_as_a_whole() -> None:
    """The answer that makes the turn ours comes when the item has begun already."""
    talk = Talk().start_thread().ask_turn().turn_started().started(agent_message("m", ""))
    trace = talk.delta("m", "Hi").reply_turn().delta("m", "!").trace()
    fed = feed(throughout(item_started(), edit("params", "turnId", to="x")), trace)
    changed = [frame for frame in fed.passed if frame.params == {**frame.params, "turnId": "x"}]
    assert [frame.method.split("/")[-1] for frame in changed] == ["started", "delta", "delta"]


def test_the_stored_form_puts_held_frames_back_in_their_place(trace: Trace) -> None:
    """b is passed on behind r only because it had to wait: in the trace it stays before r."""
    changed = apply(fault_of(first(known_with("d", True), edit("method", to="B"))), trace)
    assert "".join(frame.method for frame in changed.frames) == "aBrcd"
    assert [frame.seq for frame in changed.frames] == list(range(5))


def test_a_fault_for_stored_traces_is_no_stream() -> None:
    stored = fault_of(StoredOnly("it needs the marks", lambda _, trace: trace))
    with pytest.raises(ValueError, match="a-fault is for stored traces only: it needs the marks"):
        FaultStream(stored)
