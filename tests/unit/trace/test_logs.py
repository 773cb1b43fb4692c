"""Logs of other programs become the frames of a recording, with the right sides and lines."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.protocol.spec.loading import load_book
from harness.trace.foreign import load_any
from harness.trace.frame import Frame
from harness.trace.store import TraceFormatError
from harness.trace.trace import Trace

START = 1_790_000_000.0
ASKED = {"itemId": "i", "threadId": "t", "turnId": "u"}
# The server's request has the id of the client's open one; one notification nobody knows.
TALK: list[tuple[str, dict[str, Any]]] = [
    ("C>S", {"method": "initialize", "id": 1, "params": {"clientInfo": {"name": "{"}}}),
    ("S>C", {"id": 1, "result": {"userAgent": "agent/1 --> {}"}}),
    ("C>S", {"method": "initialized"}),
    ("C>S", {"method": "turn/start", "id": 2, "params": {"threadId": "t", "input": []}}),
    ("S>C", {"method": "item/commandExecution/requestApproval", "id": 2, "params": ASKED}),
    ("C>S", {"id": 2, "result": {"decision": "accept"}}),
    ("S>C", {"id": 2, "result": {"turn": {"id": "u"}}}),
    ("S>C", {"method": "turn/started", "params": {"threadId": "t", "turn": {"id": "u"}}}),
    ("S>C", {"method": "made/up", "params": {}}),
]


def nowhere(type_name: str, method: str, part: str) -> tuple[tuple[str | int, ...], ...]:
    return ()


def load(path: Path) -> Trace:
    return load_any(path, nowhere, sender_of=load_book().sender_of)


def iso(number: int) -> str:
    return f"2026-11-27T20:40:{number:02}.500Z"


def lines(row: Callable[[int, str, dict[str, Any]], Any]) -> str:
    rows = [row(number, side, message) for number, (side, message) in enumerate(TALK)]
    return "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in rows)


def native(number: int, side: str, message: dict[str, Any]) -> dict[str, Any]:
    return {"t": number, "dir": side, "msg": message}


def worded(client: str, server: str) -> dict[str, str]:
    return {"C>S": client, "S>C": server}


FORMS: dict[str, str] = {
    "arrows as dir": lines(lambda n, side, m: {"t": n, "dir": worded("->", "<-")[side], "msg": m}),
    "a log of the client": lines(
        lambda n, side, m: {
            "timestamp": iso(n),
            "direction": worded("send", "receive")[side],
            "message": m,
        }
    ),
    "a log of the server": lines(
        lambda n, side, m: {"ts": 1000 * (START + n), "flow": worded("in", "out")[side], "data": m}
    ),
    "from, and other members": lines(
        lambda n, side, m: {
            "level": "debug",
            "seq": str(n),
            "from": worded("client", "server")[side],
            "payload": m,
        }
    ),
    "a flag": lines(lambda n, side, m: {"at": n, "incoming": side == "S>C", "rpc": m}),
    "the message as text": lines(
        lambda n, side, m: {"t": n, "dir": worded("tx", "rx")[side], "line": json.dumps(m)}
    ),
    "without times": lines(lambda n, side, m: {"dir": side, "msg": m}),
    "text before each": lines(
        lambda n, side, m: f"{iso(n)} DEBUG rpc[{n}] {worded('-->', '<--')[side]} {json.dumps(m)}"
    ),
    "arrows alone": lines(lambda n, side, m: f"{worded('>', '<')[side]} {json.dumps(m)}"),
    "an array": json.dumps([native(n, side, m) for n, (side, m) in enumerate(TALK)]),
    "over several lines": "\n".join(
        json.dumps({"dir": side, "msg": m}, indent=1) for side, m in TALK
    ),
    "between other lines": "starting\n\n"
    + lines(lambda n, side, m: f"{worded('>', '<')[side]} {json.dumps(m)}\nbusy {{{n}}}"),
}


def frames(path: Path) -> list[tuple[Any, ...]]:
    return [shape(frame) for frame in load(path).frames]


def shape(frame: Frame) -> tuple[Any, ...]:
    return frame.kind, frame.direction, frame.connection, frame.raw


@pytest.fixture
def expected(tmp_path: Path) -> list[tuple[Any, ...]]:
    path = tmp_path / "native.jsonl"
    path.write_text(lines(native), "utf-8")
    assert load(path).damage == []
    return frames(path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_log_is_the_recording_that_it_could_be(
    form: str, encoding: str, expected: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    path = tmp_path / "log"
    path.write_text(FORMS[form], encoding)
    assert frames(path) == expected
    trace = load(path)
    assert trace.damage[0].startswith("read as a log: the sides are told apart by ")
    has_times = not any("no times" in words for words in trace.damage)
    assert trace.frames[-1].at == (len(TALK) - 1 if has_times else pytest.approx(0.008))


def test_lines_of_a_log_are_those_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(FORMS["between other lines"], "utf-8")
    trace = load(path)
    assert trace.lines == [3 + 2 * number for number in range(len(TALK))]
    assert f"{len(TALK) + 1} line(s) without a message were left out" in trace.damage


def test_messages_without_a_side_are_counted_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"{json.dumps(message)}\n" for _, message in TALK), "utf-8")
    trace = load(path)
    assert len(trace.frames) == len(TALK) - 1
    assert "1 message(s) were left out: their sender is not clear" in trace.damage


def test_bytes_of_a_message_written_as_text_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    raw = '{ "id" : 1, "method": "initialize" }'
    path.write_text(json.dumps({"t": 0, "dir": "C>S", "msg": raw}) + "\n", "utf-8")
    assert [frame.raw for frame in load(path).frames] == [raw.encode()]


def test_the_same_session_twice_is_two_connections(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(lines(native) * 2, "utf-8")
    trace = load(path)
    assert {frame.connection for frame in trace.frames} == {"c1", "c2"}
    assert any(f"again in line {len(TALK) + 1}: read as another" in one for one in trace.damage)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "no message\n", '{"id": 1}\n[1, 2]\n', "{" * 9_000_000]
)
def test_file_without_a_message_is_one_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(text, "utf-8")
    with pytest.raises(TraceFormatError, match="nor a log with JSON-RPC messages"):
        load(path)
