"""A fault at work on lines: when it acts, and which lines it holds back or leaves unchanged."""

import json
from typing import Any

import pytest

from harness.errors import UsageError
from harness.faults.base import Fault, StoredOnly, all_faults
from harness.faults.changes import delay, every, first
from harness.faults.live import fault as live_faults
from harness.faults.live.fault import FaultActed, FaultGaveUp, LiveFault
from harness.faults.operators import drop, duplicate, rewrite
from harness.faults.queue import Change
from harness.faults.selectors import notification
from harness.faults.stored import apply
from harness.trace.frame import Direction
from tests.faults.feeding import fault_of
from tests.faults.test_live_faults import STREAMS, of_one_client


class Line:
    """A live fault, fed with notifications of the server by their names."""

    def __init__(self, change: Change, *, after: int = 0, once: bool = False) -> None:
        self.told: list[FaultActed | FaultGaveUp] = []
        self.live = LiveFault(fault_of(change), after=after, once=once, report=self.told.append)

    def story(self, names: str) -> str:
        """The names passed after each, `a|b|` and so on."""
        return "|".join(self.passed(json.dumps({"method": name}).encode()) for name in names)

    def passed(self, raw: bytes) -> str:
        return "".join(frame.method for frame in self.live.feed(raw, Direction.FROM_TARGET))


def late(name: str, behind: str) -> Change:
    return delay(notification(name), behind, lambda _, __, now: now.method == behind)


def test_a_fault_acts_at_each_of_its_places() -> None:
    line = Line(first(notification("a"), duplicate))
    assert line.story("abab") == "aa|b|aa|b"
    assert line.live.places_acted == 2


def test_once_it_acts_at_the_first_place_only() -> None:
    assert Line(first(notification("a"), drop), once=True).story("abab") == "|b|a|b"


def test_a_fault_that_never_ends_goes_on_though_it_acts_once() -> None:
    assert Line(every(notification("a"), drop), once=True).story("abab") == "|b||b"


def test_the_first_places_can_be_spared() -> None:
    assert Line(first(notification("a"), drop), after=2).story("abaaba") == "a|b|a||b|"
    assert Line(every(notification("a"), drop), after=1, once=True).story("aaa") == "a||"
    assert Line(late("a", "b"), after=1).story("abab") == "a|b||ba"


def test_frames_held_in_vain_go_on_when_it_is_quiet() -> None:
    line = Line(late("a", "z"))
    assert line.story("ab") == "|b"
    assert line.live.held_count == 1
    assert [frame.method for frame in line.live.release_on_silence()] == ["a"]
    assert line.live.missing == "no z after a"
    assert line.live.release_on_silence() == []
    assert [type(one) for one in line.told] == [FaultGaveUp]
    assert line.story("az") == "|za"


def test_no_more_than_a_bound_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_faults, "MAX_HELD_BYTES", 50)
    line = Line(late("a", "z"))
    assert line.story("abcde") == "|b|c|d|e"
    line.live.end()
    assert line.passed(b'{"method": "a", "params": "%s"}' % (b"x" * 50)) == "a"
    assert isinstance(line.told[-1], FaultGaveUp)
    assert line.told[-1].reason == "too much is held"


def test_held_frames_come_at_the_end() -> None:
    line = Line(late("a", "z"))
    line.story("a")
    assert [frame.method for frame in line.live.end()] == ["a"]
    assert line.live.end() == []


def test_bytes_that_no_fault_touches_stay_as_they_are() -> None:
    line = Line(first(notification("a"), drop))
    for raw in (b"no json", b'{ "method" :"b"}\r', b"\xff\x00", b"", b' {"method": "c"} '):
        passed = line.live.feed(raw, Direction.FROM_TARGET)
        assert [(one.raw, one.direction) for one in passed] == [(raw, Direction.FROM_TARGET)]


def test_it_tells_what_was_done_to_which_message() -> None:
    line = Line(first(notification("a"), duplicate))
    line.story("aba")
    acted = [one for one in line.told if isinstance(one, FaultActed)]
    assert [(one.acts[0].action, one.acts[0].frame.method, one.before) for one in acted] == [
        ("repeated", "a", 0),
        ("repeated", "a", 1),
    ]


def test_a_fault_for_stored_traces_is_refused() -> None:
    stored = fault_of(StoredOnly("it needs the marks", lambda _, trace: trace))
    with pytest.raises(UsageError, match="a-fault cannot be live: it needs the marks"):
        LiveFault(stored)


@pytest.mark.parametrize("fault", STREAMS, ids=lambda fault: fault.id)
def test_every_fault_acts_live_as_it_does_on_a_stored_trace(fault: Fault) -> None:
    """With `once`, on the good trace that the fault is proved on; order within a direction only."""
    trace = of_one_client(fault)
    live = LiveFault(fault, once=True)
    passed = [
        one for frame in trace.frames for one in live.feed(frame.raw, frame.direction)
    ] + live.end()
    assert live.places_acted
    wanted = apply(all_faults()[fault.id], trace).frames
    for direction in Direction:
        got = [one.raw for one in passed if one.direction is direction]
        assert got == [one.raw for one in wanted if one.direction is direction]


def test_changes_are_reported_without_the_messages_content() -> None:
    def secret(message: Any) -> Any:
        return {**message, "params": {**message["params"], "new\x1b": "s3cret"}}

    told: list[FaultActed | FaultGaveUp] = []
    live = LiveFault(fault_of(first(notification("a"), rewrite(secret))), report=told.append)
    raw = json.dumps({"method": "a", "params": {"turnId": "u\x1b1", "text": "s3cret"}}).encode()
    live.feed(raw, Direction.FROM_TARGET)
    (acted,) = told
    assert isinstance(acted, FaultActed)
    (words,) = acted.words
    assert words.startswith("changed a (u")
    assert words.endswith(r"): params.new\x1b")
    assert "\x1b" not in words
    assert "s3cret" not in words
