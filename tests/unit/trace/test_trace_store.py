"""Trace files: round trips, truncated files, and files that are not traces."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.trace.frame import Damage, DamageKind, Kind
from harness.trace.marks import GateOpened, ModelCall, Setup
from harness.trace.store import TraceFormatError, lines, load, read, reframe, save
from harness.trace.trace import FORMAT_VERSION, End, Mark, StderrLine, Trace
from tests.rules.traces import Talk

FULL = (
    Talk("round-trip")
    .mark(Setup(active=True))
    .start_thread()
    .says(b"\xff\xfe no text")
    .sends(b"{", deliberate=True)
    .says(b'{"method": "cut o', note="cut")
    .on("c2")
    .tells("a", text="\u2028\u00e9\U0001f600\r\n")
    .mark(GateOpened("g"))
    .trace(End.TIMED_OUT)
)


def described(trace: Trace) -> list[object]:
    return [
        trace.header,
        trace.end,
        [(mark.after, mark.body, round(mark.at, 6)) for mark in trace.marks],
        [
            (f.seq, round(f.at, 6), f.connection, f.direction, f.origin, f.raw, f.json, f.kind)
            for f in trace.frames
        ],
        [(f.deliberate, f.damage) for f in trace.frames],
    ]


def test_a_stored_trace_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "t.jsonl"
    save(FULL, path)
    assert described(load(path)) == described(FULL)
    assert [file.name for file in path.parent.iterdir()] == ["t.jsonl"]


def test_standard_error_is_in_the_end_line_with_its_place() -> None:
    wrote = [StderrLine(0.5, 1, "a \x1b[31m \u202e"), StderrLine(0.75, 4, "")]
    rows = list(lines(replace(FULL, stderr=wrote)))
    assert json.loads(rows[-1])["stderr"] == [line._asdict() for line in wrote]
    assert json.loads(list(lines(FULL))[-1]) == {"end": "timed-out"}
    assert read(rows, name="t").stderr == wrote
    without_two = [row for row in rows if json.loads(row).get("frame") not in (1, 2)]
    assert [line.after for line in read(without_two, name="t").stderr] == [0, 2]


def test_bytes_that_are_no_text_are_kept_in_base64() -> None:
    rows = [json.loads(line) for line in lines(FULL)]
    assert [row["frame"] for row in rows if "raw64" in row] == [3]


def test_marks_stand_between_the_frames_where_they_happened() -> None:
    kinds = [next(iter(json.loads(line))) for line in lines(FULL)]
    assert kinds == ["trace", "mark", *["frame"] * 7, "mark", "end"]


def test_a_file_cut_anywhere_keeps_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    save(FULL, path)
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for size in range(first, len(whole) - 1, 3):
        path.write_bytes(whole[:size])
        trace = load(path)
        complete = sum(b'{"frame"' in line for line in whole[:size].splitlines(keepends=True)[:-1])
        assert trace.end is End.CLOSED or size > whole.rindex(b'{"end"')
        assert len(trace.frames) in (complete, complete + 1)
        assert [f.raw for f in trace.frames] == [f.raw for f in FULL.frames[: len(trace.frames)]]


def test_a_trace_without_its_end_is_closed() -> None:
    rows = [*lines(FULL)][:-1]
    assert read([row + "\n" for row in rows], name="t").end is End.CLOSED


HEADER = next(iter(lines(FULL))) + "\n"


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([], "t:1: empty"),
        (["\n"], "t:1: empty"),
        (["Starting\n"], "t:1: not a trace line"),
        (["[]\n"], "t:1: not a trace line"),
        (['{"trace": {"version": 99}}\n'], "t:1: not a trace line: format version 99"),
        (['{"trace": {"version": 2, "marks": 3}}\n'], "t:1: not a trace line: marks of version 3"),
        (['{"trace": {"version": 2}}\n'], "t:1: not a trace line: marks of version None"),
        (
            [HEADER, '{"mark": "setup", "at": 0, "after": -1, "data": {}}\n'],
            "t:2: not a trace line: setup: no active",
        ),
        ([HEADER, "{\n"], "t:2: not a trace line"),
        ([HEADER, '{"frame": 0}\n'], "t:2: not a trace line: no 'at'"),
        ([HEADER, '{"end": "sometime"}\n'], "t:2: not a trace line"),
        ([HEADER, '{"end": "closed"}\n', '{"end": "closed"}\n'], "t:3: .*a line after the end"),
        (
            [HEADER, '{"frame":0,"at":0,"conn":"c","dir":"up","origin":"target","raw":""}\n'],
            "t:2: not a trace line: 'up'",
        ),
        (
            [HEADER, '{"frame":0,"at":0,"conn":"c","dir":"to-target","origin":"x","raw64":"@"}\n'],
            "t:2: not a trace line",
        ),
    ],
)
def test_an_invalid_trace_is_refused_with_its_line(rows: list[str], problem: str) -> None:
    with pytest.raises(TraceFormatError, match=problem):
        read(rows, name="t")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\xff\xfe\n")
    with pytest.raises(TraceFormatError, match="not UTF-8"):
        load(path)


def test_header_fields_of_a_later_version_are_ignored() -> None:
    row = json.loads(HEADER)
    row["trace"]["added"] = 1
    assert read([json.dumps(row) + "\n"], name="t").header == FULL.header


def test_a_frame_can_be_made_anew_with_other_content() -> None:
    old = FULL.frames[1]
    new = reframe(old, seq=7, value={"method": "x", "text": "\ud800"})
    assert (new.seq, new.kind, new.method) == (7, Kind.NOTIFICATION, "x")
    assert new.json["text"] == "\ud800"
    assert reframe(old, seq=8).json is old.json
    assert reframe(old, seq=8, raw=b"{").kind is Kind.MALFORMED


FORMER = """\
{"trace":{"target":"s","profile":"p","scenario":"x","seed":0,"spec_revision":"","version":1}}
{"mark":"setup","at":0.1,"after":-1,"data":{"active":true}}
{"frame":0,"at":0.2,"conn":"c1","dir":"from-target","origin":"target","raw":"{}"}
{"frame":1,"at":0.2,"conn":"c1","dir":"from-target","origin":"target","raw":"{","note":"cut"}
{"mark":"forgotten","at":0.3,"after":0,"data":{}}
{"mark":"gate","at":0.4,"after":1,"data":{"open":"g"}}
{"end":"quiescent"}
"""


def test_a_file_of_version_1_is_read_and_written_as_one_of_now() -> None:
    former = read(FORMER.splitlines(keepends=True), name="t")
    assert former.marks == [Mark(0.1, -1, Setup(active=True)), Mark(0.4, 1, GateOpened("g"))]
    cut = Damage(DamageKind.UNKNOWN, "cut")
    assert [(one.raw, one.damage) for one in former.frames] == [(b"{}", None), (b"{", cut)]
    again = [*lines(former)]
    assert json.loads(again[0])["trace"]["version"] == FORMAT_VERSION
    assert described(read([row + "\n" for row in again], name="t")) == described(former)


def test_a_mark_may_hold_half_a_surrogate_pair(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    call = ModelCall(call=1, user_texts=("half \ud800",))
    save(Talk().mark(call).trace(), path)
    assert [mark.body for mark in load(path).marks] == [call]
