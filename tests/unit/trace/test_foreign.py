"""Foreign recordings: distinguished from our own traces, and read as frames of a live run."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.protocol.values import MISSING, dig
from harness.trace import foreign
from harness.trace.foreign import guess_names, load_any, read
from harness.trace.frame import Damage, DamageKind, Direction, Frame, Kind, Origin
from harness.trace.marks import RecorderNote
from harness.trace.store import TraceFormatError, save
from harness.trace.trace import End, Mark, Trace
from tests.rules.traces import Talk

NAMES = {"TurnError.agentErrorInfo": "otherErrorInfo"}
ERROR = {"message": "no", "otherErrorInfo": "Other"}


def nowhere(type_name: str, method: str, part: str) -> tuple[tuple[str | int, ...], ...]:
    return ()


def in_errors(type_name: str, method: str, part: str) -> tuple[tuple[str | int, ...], ...]:
    return (("error",),) if (type_name, method) == ("TurnError", "error") else ()


def line(at: float, direction: str, msg: Any = MISSING, **more: Any) -> str:
    return json.dumps(
        {"t": at, "dir": direction, **({} if msg is MISSING else {"msg": msg}), **more}
    )


def reading(*lines: str) -> Trace:
    return read(lines, name="folder/talk.jsonl", names={}, paths_of=nowhere)


def asks(at: float, identifier: Any, method: str = "m") -> str:
    return line(at, "C>S", {"method": method, "id": identifier, "params": {}})


def answers(at: float, identifier: Any) -> str:
    return line(at, "S>C", {"id": identifier, "result": {}})


def test_a_recording_becomes_frames_with_their_times_and_sides() -> None:
    trace = reading(asks(0.5, 1), answers(0.75, 1), line(1, "S>C", {"method": "n", "params": {}}))
    assert [(f.kind, f.direction, f.origin, f.at) for f in trace.frames] == [
        (Kind.REQUEST, Direction.TO_TARGET, Origin.HARNESS, 0.5),
        (Kind.RESPONSE, Direction.FROM_TARGET, Origin.TARGET, 0.75),
        (Kind.NOTIFICATION, Direction.FROM_TARGET, Origin.TARGET, 1.0),
    ]
    assert trace.frames[0].raw == b'{"method":"m","id":1,"params":{}}'
    assert not any(f.deliberate or f.damage for f in trace.frames)
    assert (trace.end, trace.header.scenario) == (End.CLOSED, "talk")


def test_notes_of_the_recorder_are_marks_between_frames() -> None:
    trace = reading(asks(0, 1), line(0.2, "##", {"note": "look", "rc": 0}), answers(0.3, 1))
    assert trace.marks == [Mark(0.2, 0, RecorderNote("look", status=0))]


def test_a_process_after_the_end_of_another_is_another_connection() -> None:
    end = line(1, "##", {"note": "server stdout EOF", "rc": 0})
    again = line(1.1, "##", {"note": "--- server process restarted ---"})
    trace = reading(asks(0, 1), answers(0.1, 1), end, again, asks(2, 1), answers(3, 1), end)
    assert [f.connection for f in trace.frames] == ["c1", "c1", "c2", "c2"]
    assert not any(f.deliberate for f in trace.frames)


def of_raw(text: str, length: int, direction: str) -> Frame:
    return reading(line(0, direction, raw=text, rawlen=length)).frames[0]


def test_text_that_is_no_message_stays_text_and_a_client_meant_it() -> None:
    frame = of_raw("not json", 8, "C>S")
    assert (frame.raw, frame.kind, frame.damage) == (b"not json", Kind.MALFORMED, None)
    assert frame.deliberate
    assert not of_raw("not json", 8, "S>C").deliberate


def test_a_line_that_the_recording_cut_says_so_and_is_not_parsed() -> None:
    frame = of_raw('{"method":"m"}', 3000, "S>C")
    assert frame.damage == Damage(DamageKind.NOT_KEPT, "a line of 3000; the recording kept 14")
    assert frame.json is MISSING


@pytest.mark.parametrize(
    ("lines", "deliberate"),
    [
        ((asks(0, 7), asks(1, 7), answers(2, 7)), [False, True, False]),
        ((asks(0, 7), answers(1, 7), asks(2, 7)), [False, False, False]),
        ((asks(0, 7), asks(1, "7")), [False, False]),
        ((asks(0, None), asks(1, None), asks(2, True)), [True, True, True]),
    ],
)
def test_an_id_that_waits_for_its_answer_is_used_again_only_on_purpose(
    lines: tuple[str, ...], deliberate: list[bool]
) -> None:
    assert [f.deliberate for f in reading(*lines).frames] == deliberate


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "t:2: not a line of a recording"),
        ("[]", "t:2: not a line of a recording"),
        ('{"t": 1, "dir": "C>S"}', "t:2: not a line of a recording: no 'msg'"),
        ('{"dir": "C>S", "msg": {}}', "t:2: not a line of a recording: no 't'"),
        ('{"t": "x", "dir": "C>S", "msg": {}}', "t:2: not a line of a recording"),
        ('{"t": 1, "dir": "up", "msg": {}}', "t:2: not a line of a recording: dir 'up'"),
        ('{"t": 1, "dir": "C>S", "raw": 5}', "t:2: not a line of a recording"),
    ],
)
def test_a_line_that_is_none_is_refused_with_its_number(text: str, problem: str) -> None:
    with pytest.raises(TraceFormatError) as caught:
        read([asks(0, 1), text, asks(1, 2)], name="t", names={}, paths_of=nowhere)
    assert str(caught.value).startswith(problem)


def written(folder: Path, *lines: str) -> Path:
    path = folder / "recording.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


FAILED = line(0, "S>C", {"method": "error", "params": {"error": ERROR}})


def info_of(trace: Trace) -> Any:
    return dig(trace.frames[0].params, "error", "agentErrorInfo")


def test_the_renames_of_a_profile_are_applied_and_raw_bytes_stay(tmp_path: Path) -> None:
    trace = load_any(written(tmp_path, FAILED), in_errors, names=NAMES)
    assert info_of(trace) == "Other"
    assert b"otherErrorInfo" in trace.frames[0].raw
    assert trace.header.names == NAMES


def test_without_a_profile_the_renames_are_guessed_by_the_names_that_occur(tmp_path: Path) -> None:
    known = ({}, {"TurnError.agentErrorInfo": "anotherName"}, NAMES)
    assert info_of(load_any(written(tmp_path, FAILED), in_errors, candidates=known)) == "Other"
    assert info_of(load_any(written(tmp_path, FAILED), in_errors, candidates=known[:2])) is MISSING
    assert (
        info_of(load_any(written(tmp_path, FAILED), in_errors, names={}, candidates=known))
        is MISSING
    )


def test_a_name_that_is_only_a_value_is_no_guess() -> None:
    assert guess_names([line(0, "S>C", {"text": "otherErrorInfo"})], [NAMES]) == {}


def test_a_trace_of_ours_is_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "ours.jsonl"
    save(Talk("ours").start_thread().trace(End.QUIESCENT), path)
    trace = load_any(path, nowhere)
    assert trace.end is End.QUIESCENT
    assert trace.header.target != foreign.TARGET


@pytest.mark.parametrize("text", ["", "# title\n", "{}\n", "[1]\n", '{"t": 1}\n', "[" * 100_000])
def test_a_file_that_is_neither_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "neither.jsonl"
    path.write_text(text)
    with pytest.raises(TraceFormatError) as caught:
        load_any(path, nowhere)
    assert str(caught.value).startswith(f"{path}:1: neither a trace")
    assert "\n" not in str(caught.value)


def test_a_recording_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bytes.jsonl"
    path.write_bytes(asks(0, 1).encode() + b'\n{"t": 1, "dir": "##", "msg": "\xff"}\n')
    with pytest.raises(TraceFormatError, match="not UTF-8 text"):
        load_any(path, nowhere)


def test_a_line_separator_inside_a_message_does_not_end_the_line(tmp_path: Path) -> None:
    message = {"method": "n", "params": {"delta": "one\u2028two\x85"}}
    entry = json.dumps({"t": 0, "dir": "S>C", "msg": message}, ensure_ascii=False)
    assert load_any(written(tmp_path, entry), nowhere).frames[0].json == message
