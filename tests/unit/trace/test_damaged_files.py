"""Trace files that lost lines, were cut off or edited: the rest is read, the loss reported."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.cli.commands.check_clients import check_client
from harness.cli.commands.stored_traces import check_trace
from harness.trace.foreign import load_any
from harness.trace.marks import ClientLeft, RecorderNote
from harness.trace.store import lines, read
from harness.trace.trace import End, Trace
from tests.rules.traces import Talk


def nowhere(type_name: str, method: str, part: str) -> tuple[tuple[str | int, ...], ...]:
    return ()


TALK = (
    Talk("damaged")
    .start_thread()
    .start_turn()
    .tells("turn/completed", threadId="thr_1", turn={"id": "turn_1", "status": "completed"})
    .mark(ClientLeft("c1"))
    .mark(RecorderNote("the server ended", server_ended=True, status=0))
    .trace(End.CLOSED)
)
ROWS = [json.loads(line) for line in lines(TALK)]
FRAMES = [number for number, row in enumerate(ROWS) if "frame" in row]
FOREIGN: list[dict[str, Any]] = [
    {"t": 0.5, "dir": "C>S", "msg": {"method": "initialize", "id": 1}},
    {"t": 0.6, "dir": "S>C", "msg": {"id": 1, "result": {"userAgent": "agent/1"}}},
]


def written(folder: Path, rows: Sequence[Any]) -> Path:
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def read_rows(rows: Sequence[Any]) -> Trace:
    return read([json.dumps(row) + "\n" for row in rows], name="t")


def test_whole_file_is_not_damaged() -> None:
    assert read_rows([*ROWS]).damage == []


@pytest.mark.parametrize("removed", FRAMES)
def test_file_without_one_message_names_it_and_is_judged(removed: int, tmp_path: Path) -> None:
    path = written(tmp_path, ROWS[:removed] + ROWS[removed + 1 :])
    trace = check_trace(path).trace
    check_client(path)
    seq, count = ROWS[removed]["frame"], len(trace.frames)
    place = f"between #{seq - 1} and #{seq}" if seq < count else f"after #{seq - 1}, the last"
    place = place if seq else "before the first"
    assert trace.damage == [f"messages are missing: 1 {place}; was the file edited?"]
    assert trace.begins_late is (seq == 0)
    assert [mark.after for mark in trace.marks] == [len(trace.frames) - 1] * 2


def test_marks_stay_between_the_messages_that_are_left() -> None:
    talk = Talk("t").start_thread().mark(ClientLeft("c1")).start_turn().trace(End.CLOSED)
    rows = [json.loads(line) for line in lines(talk)]
    trace = read_rows(rows[:1] + rows[3:])
    assert trace.damage == ["messages are missing: 2 before the first; was the file edited?"]
    assert trace.marks[0].after == talk.marks[0].after - 2


def test_numbers_out_of_order_are_reported_and_the_marks_stay_in_the_file() -> None:
    again, last = FRAMES[1:3], FRAMES[-1]
    rows = [*ROWS[: again[1]], ROWS[again[0]], *ROWS[again[1] : last], *ROWS[last + 1 :]]
    trace = read_rows(rows)
    assert trace.damage == ["the numbers of its messages are not in order: was it edited?"]
    assert {mark.after for mark in trace.marks} == {len(trace.frames) - 1}


def test_file_without_its_end_line_says_so() -> None:
    trace = read_rows(ROWS[:-1])
    assert trace.damage == ["the file has no end line: what came after is not known"]


@pytest.mark.parametrize("rows", [ROWS[:4], FOREIGN], ids=["trace", "recording"])
def test_file_cut_off_in_a_line_is_read_up_to_it(rows: Sequence[Any], tmp_path: Path) -> None:
    path = written(tmp_path, rows)
    path.write_bytes(path.read_bytes()[:-9])
    trace = load_any(path, nowhere)
    assert len(trace.frames) == sum("mark" not in row and "trace" not in row for row in rows) - 1
    assert trace.damage == [
        f"the file is cut off in line {len(rows)}: what came after is not known"
    ]


def test_clock_that_goes_back_is_reported_with_its_line(tmp_path: Path) -> None:
    foreign = [FOREIGN[0], FOREIGN[1] | {"t": 0.1}]
    assert load_any(written(tmp_path, foreign), nowhere).damage == [
        "the time goes back by 0.4 s in line 2"
    ]
    last = FRAMES[-1]
    rows = [*ROWS[:last], ROWS[last] | {"at": ROWS[last]["at"] - 2}, *ROWS[last + 1 :]]
    [words] = read_rows(rows).damage
    assert words.endswith(f"s in line {last + 1}")


@pytest.mark.parametrize("where", ["frame", "after"])
def test_number_beyond_all_messages_costs_no_memory(where: str) -> None:
    rows = [row | {where: 10**15} if where in row else row for row in [*ROWS[:2], *ROWS[-3:]]]
    [words] = read_rows(rows).damage
    assert re.search(r"^messages are missing: 10{15} (before|after) ", words)


LATE: list[dict[str, Any]] = [
    {"t": 0.1, "dir": "S>C", "msg": {"id": 6, "result": {}}},
    {"t": 0.2, "dir": "C>S", "msg": {"id": 8, "method": "thread/list", "params": {}}},
    {"t": 0.3, "dir": "S>C", "msg": {"id": 8, "result": {"data": [], "nextCursor": None}}},
    {"t": 0.4, "dir": "S>C", "msg": {"id": 7, "result": {}}},
    {"t": 0.5, "dir": "S>C", "msg": {"id": 9, "result": {}}},
]


def unknown_ids(rows: Sequence[Any], folder: Path) -> list[str]:
    violations = check_trace(written(folder, rows)).violations
    return [row.subject for row in violations if row.rule == "response.known-id"]


def test_answers_to_requests_before_the_beginning_are_left_open(tmp_path: Path) -> None:
    unknown = "what was sent before its beginning is not known"
    [words] = load_any(written(tmp_path, LATE[1:]), nowhere).damage
    assert words == f"there is no initialize in it: {unknown}"
    assert unknown_ids(LATE[1:], tmp_path) == ["answer id 9"]
    [words] = load_any(written(tmp_path, [*LATE, *FOREIGN]), nowhere).damage[:1]
    assert words == f"it begins with an answer: {unknown}"
    assert unknown_ids([*LATE, *FOREIGN], tmp_path) == ["answer id 9"]
    assert unknown_ids([*FOREIGN, *LATE[3:]], tmp_path) == ["answer id 7", "answer id 9"]


def test_recording_of_the_server_alone_says_so_and_accuses_no_answer(tmp_path: Path) -> None:
    rows = [row for row in LATE if row["dir"] == "S>C"]
    [words] = load_any(written(tmp_path, rows), nowhere).damage
    assert words.startswith("no message of the client (C>S) is in it")
    assert unknown_ids(rows, tmp_path) == []
