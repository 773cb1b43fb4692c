"""The recorder: numbering, time, bounds, listeners, renames; and the renamer itself."""

import json
from typing import Any

import pytest

from harness.protocol.values import MISSING
from harness.trace.frame import Damage, DamageKind, Direction, Frame, Origin
from harness.trace.marks import GateOpened
from harness.trace.names import Path, Renamer
from harness.trace.recorder import Recorder, TraceFull
from harness.trace.trace import Mark

IN, OUT = Direction.FROM_TARGET, Direction.TO_TARGET
PLACES: dict[tuple[str, str, str], tuple[Path, ...]] = {
    ("TurnError", "error", "params"): (("error",),),
    ("TurnError", "turn/read", "result"): (("turns", "*", "error"), ("last",)),
}


def paths_of(type_name: str, method: str, part: str) -> tuple[Path, ...]:
    return PLACES.get((type_name, method, part), ())


@pytest.fixture
def renamer() -> Renamer:
    return Renamer({"TurnError.agentErrorInfo": "codexErrorInfo"}, paths_of)


def test_frames_are_numbered_and_timed_from_the_beginning() -> None:
    times = iter([100.0, 100.5, 102.0, 103.0, 104.0])
    recorder = Recorder(clock=lambda: next(times))
    assert recorder.last_frame_at == 0.0
    recorder.record(b"{}", IN)
    recorder.record(b"{}", OUT)
    assert [(f.seq, f.at) for f in recorder.trace.frames] == [(0, 0.5), (1, 2.0)]
    assert recorder.last_frame_at == 2.0
    assert recorder.mark(GateOpened("g")) == Mark(3.0, 1, GateOpened("g"))
    assert recorder.elapsed_seconds() == 4.0


def test_the_origin_follows_the_direction_unless_given() -> None:
    recorder = Recorder()
    assert recorder.record(b"{}", IN).origin is Origin.TARGET
    assert recorder.record(b"{}", OUT).origin is Origin.HARNESS
    assert recorder.record(b"{}", IN, origin=Origin.HARNESS).origin is Origin.HARNESS


def test_a_line_that_the_transport_cut_is_not_parsed() -> None:
    assert (
        Recorder().record(b"{}", IN, damage=Damage(DamageKind.TOO_LONG, "16 MiB")).json is MISSING
    )


def test_listeners_hear_of_each_frame_and_mark_once_it_is_in_the_trace() -> None:
    recorder = Recorder()
    heard: list[Any] = []

    def listen(frame: Frame) -> None:
        assert recorder.trace.frames[-1] is frame
        heard.append(frame.seq)

    recorder.listeners.append(listen)
    recorder.mark_listeners.append(lambda mark: heard.append(mark.kind))
    recorder.record(b"{}", IN)
    recorder.mark(GateOpened("g"))
    assert heard == [0, "gate"]


def test_a_flood_of_messages_or_bytes_is_ended() -> None:
    few = Recorder(max_frames=2)
    few.record(b"a", IN)
    few.record(b"b", IN)
    with pytest.raises(TraceFull, match="more than 2 messages"):
        few.record(b"c", IN)
    assert len(few.trace.frames) == 2
    small = Recorder(max_bytes=10)
    small.record(b"12345", IN)
    with pytest.raises(TraceFull):
        small.record(b"123456", IN)


def record(recorder: Recorder, message: Any, direction: Direction = IN, conn: str = "c1") -> Frame:
    return recorder.record(json.dumps(message).encode(), direction, connection=conn)


def test_a_notification_is_renamed_by_its_method_and_its_bytes_stay(renamer: Renamer) -> None:
    message = {"method": "error", "params": {"error": {"codexErrorInfo": "x"}, "n": 1}}
    frame = record(Recorder(renamer=renamer), message)
    assert frame.params == {"error": {"agentErrorInfo": "x"}, "n": 1}
    assert b"codexErrorInfo" in frame.raw


def test_an_answer_is_renamed_by_the_method_of_its_request(renamer: Renamer) -> None:
    recorder = Recorder(renamer=renamer)
    record(recorder, {"method": "turn/read", "id": 1}, OUT)
    record(recorder, {"method": "other", "id": 1}, OUT, "c2")
    result = {"turns": [{"error": {"codexErrorInfo": "x"}}, {"error": None}], "last": {}}
    assert record(recorder, {"id": 1, "result": result}, IN, "c2").result == result
    assert record(recorder, {"id": 1, "result": result}).result == {
        "turns": [{"error": {"agentErrorInfo": "x"}}, {"error": None}],
        "last": {},
    }
    assert record(recorder, {"id": 1, "result": result}).result == result


def test_ids_that_cannot_be_paired_are_left_alone(renamer: Renamer) -> None:
    recorder = Recorder(renamer=renamer)
    record(recorder, {"method": "turn/read", "id": [1]}, OUT)
    assert record(recorder, {"id": [1], "result": {"last": 1}}).result == {"last": 1}
    assert recorder.record(b"[]", IN).json == []


@pytest.mark.parametrize(
    "params",
    [{}, {"error": None}, {"error": [{"codexErrorInfo": 1}]}, {"error": "codexErrorInfo"}, []],
)
def test_a_message_without_the_place_is_left_alone(renamer: Renamer, params: Any) -> None:
    message = {"method": "error", "params": params}
    assert renamer.apply(message, "error", "params") == message


def test_a_name_of_the_spec_that_is_there_already_wins(renamer: Renamer) -> None:
    message = {"params": {"error": {"codexErrorInfo": 1, "agentErrorInfo": 2}}}
    assert renamer.apply(message, "error", "params") == message


def test_renaming_copies_and_never_changes_its_input(renamer: Renamer) -> None:
    message = {"params": {"error": {"codexErrorInfo": 1}, "kept": {"a": 1}}}
    renamed = renamer.apply(message, "error", "params")
    assert message["params"]["error"] == {"codexErrorInfo": 1}
    assert renamed["params"]["kept"] is message["params"]["kept"]


def test_without_renames_a_message_passes_through() -> None:
    message = {"params": {}}
    assert Renamer({}, paths_of).apply(message, "error", "params") is message


def test_later_frames_of_a_complete_trace_go_to_a_copy() -> None:
    recorder = Recorder()
    recorder.record(b"{}", OUT)
    recorder.mark(GateOpened("g"))
    whole = recorder.take_snapshot()
    recorder.mark(GateOpened("h"))
    assert recorder.record(b"{}", IN).seq == 1
    assert (len(whole.frames), len(whole.marks)) == (1, 1)
    assert (len(recorder.trace.frames), len(recorder.trace.marks)) == (2, 2)
    assert recorder.trace.header is whole.header
