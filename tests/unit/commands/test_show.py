"""A stored trace as it is shown: filters, pairs, silences, findings, JSON."""

import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from harness.cli.commands.show import show_trace
from harness.cli.commands.stored_traces import check_trace
from harness.cli.commands.trace_filter import TraceFilter
from harness.errors import UsageError
from harness.trace.frame import Direction, Origin
from harness.trace.marks import ModelCall, ModelEnd
from harness.trace.recorder import Recorder
from harness.trace.store import save
from harness.trace.trace import End, Header

ROOT = Path(__file__).parents[3]
APPROVAL = "item/commandExecution/requestApproval"
ASKED = {"threadId": "thr_1", "turnId": "turn_1", "itemId": "call_1"}
ITEM = {"type": "commandExecution", "id": "call_1", "command": "touch a", "status": "inProgress"}


class Session:
    """A recording by a clock that a test moves; times are milliseconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self.recorder = Recorder(Header(profile="spec"), clock=lambda: self.now / 1000)

    def sent(self, at: float, message: dict[str, Any]) -> None:
        self.now = at
        raw = json.dumps(message).encode()
        self.recorder.record(raw, Direction.TO_TARGET, origin=Origin.HARNESS)

    def received(self, at: float, message: dict[str, Any]) -> None:
        self.now = at
        self.recorder.record(json.dumps(message).encode(), Direction.FROM_TARGET)

    def mark(self, at: float, body: ModelCall | ModelEnd) -> None:
        self.now = at
        self.recorder.mark(body)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A turn that waits for the model, for the client, for a command, and for a second start."""
    session = Session()
    start = {"threadId": "thr_1", "input": []}
    session.sent(1, {"id": 1, "method": "thread/start", "params": {}})
    session.received(9, {"id": 1, "result": {"thread": {"id": "thr_1"}}})
    session.sent(10, {"id": 2, "method": "turn/start", "params": start})
    session.received(12, {"id": 2, "result": {"turn": {"id": "turn_1"}}})
    turn = {"threadId": "thr_1", "turn": {"id": "turn_1", "status": "inProgress"}}
    session.received(13, {"method": "turn/started", "params": turn})
    session.mark(20, ModelCall(call=1))
    session.mark(2020, ModelEnd(call=1))
    item = {"threadId": "thr_1", "turnId": "turn_1", "item": ITEM}
    session.received(2030, {"method": "item/started", "params": item})
    session.received(2031, {"id": 0, "method": APPROVAL, "params": ASKED})
    session.sent(10331, {"id": 0, "result": {"decision": "accept"}})
    session.received(13331, {"method": "item/completed", "params": item})
    session.sent(14000, {"id": 3, "method": "thread/start", "params": {}})
    session.received(16500, {"id": 3, "result": {"thread": {"id": "thr_2"}}})
    session.sent(19500, {"id": 4, "method": "thread/read", "params": {"threadId": "thr_2"}})
    session.recorder.trace.end = End.CLOSED
    stored = tmp_path / "trace.jsonl"
    save(session.recorder.trace, stored)
    return stored


def numbers(path: Path, **options: Any) -> list[int]:
    return [frame.seq for frame in show_trace(path, TraceFilter(**options)).frames]


def test_request_and_answer_name_each_other_with_the_time_between(path: Path) -> None:
    lines = list(show_trace(path).lines())
    assert any("#0 " in line and line.endswith("[answered by #1 after 8.0 ms]") for line in lines)
    answer = next(line for line in lines if "#1 " in line and "[answers" in line)
    assert answer.endswith("[answers thread/start #0 after 8.0 ms]")
    assert any(line.endswith(f"[answers {APPROVAL} #6 after 8300.0 ms]") for line in lines)
    assert any("#11 " in line and line.endswith("[never answered]") for line in lines)


def test_each_silence_says_what_was_waited_for(path: Path) -> None:
    gaps = [str(gap) for gap in show_trace(path).gaps]
    assert gaps == [
        "2.0 s: waiting for the model (call 1)",
        f"8.3 s: waiting for the client to answer {APPROVAL} (#6)",
        "3.0 s: waiting for the commandExecution call_1 (#5)",
        "2.5 s: waiting for the server to answer thread/start (#9)",
        "3.0 s: waiting for the server to end turn turn_1",
    ]
    lines = list(show_trace(path).lines())
    place = next(index for index, line in enumerate(lines) if "8.3 s: waiting" in line)
    assert "shape.server-request" in lines[place - 1]  # A finding on the message before.
    assert "#6 " in lines[place - 2]
    assert "#7 " in lines[place + 1]


def test_silence_in_which_nothing_is_outstanding_waits_for_the_client(tmp_path: Path) -> None:
    session = Session()
    session.sent(1, {"id": 1, "method": "thread/list", "params": {}})
    session.received(2, {"id": 1, "result": {"data": []}})
    session.sent(5002, {"id": 2, "method": "thread/list", "params": {}})
    save(session.recorder.trace, tmp_path / "t.jsonl")
    [gap] = show_trace(tmp_path / "t.jsonl").gaps
    assert str(gap) == "5.0 s: waiting for the client"


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"thread": "thr_2"}, [9, 10, 11]),
        ({"turn": "turn_1"}, [2, 3, 4, 5, 6, 7, 8]),
        ({"item": "call_1"}, [5, 6, 7, 8]),
        ({"item": "call"}, [5, 6, 7, 8]),
        ({"method": ["turn/start"]}, [2, 3]),
        ({"method": ["item/*"]}, [5, 6, 7, 8]),
        ({"method": ["turn/start", "thread/read"]}, [2, 3, 11]),
        ({"direction": "to-target"}, [0, 2, 7, 9, 11]),
        ({"direction": "from-target", "method": ["thread/start"]}, [1, 10]),
        ({"since": "14s"}, [9, 10, 11]),
        ({"until": "10"}, [0, 1, 2]),
        ({"since": "10ms", "until": "2.031s", "thread": "thr_1"}, [2, 3, 4, 5, 6]),
    ],
)
def test_filters_choose_messages_with_their_answers(
    path: Path, options: dict[str, Any], shown: list[int]
) -> None:
    methods = options.pop("method", ())
    assert numbers(path, methods=methods, **options) == shown


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"thread": "thr_9"}, "--thread 'thr_9': no message names this thread; there are thr_1, "),
        ({"thread": "thr_"}, "--thread 'thr_': 2 ids begin or end so; there are thr_1, thr_2"),
        ({"turn": "thr_1"}, "--turn 'thr_1': no message names this turn; there are turn_1"),
        ({"methods": ["turn/strat"]}, "did you mean 'turn/start'"),
        ({"direction": "up"}, "--direction 'up': expected to-target or from-target"),
        ({"since": "soon"}, "--since 'soon': expected a time such as 8300, 8.3s or 2m"),
    ],
)
def test_filter_that_names_nothing_says_what_there_is(
    path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError) as error:
        numbers(path, **options)
    assert words in str(error.value)


def test_events_are_left_out_only_by_filters_of_messages(path: Path) -> None:
    assert any("· model-call" in line for line in show_trace(path).lines())
    chosen = show_trace(path, TraceFilter(until="1s"))
    assert any("· model-call" in line for line in chosen.lines())
    assert not any("· model-end" in line for line in chosen.lines())
    chosen = show_trace(path, TraceFilter(thread="thr_1"))
    assert not any("· model-call" in line for line in chosen.lines())


def test_findings_of_the_check_are_marked_at_their_messages(path: Path) -> None:
    shown = show_trace(path)
    marked = [line for line in shown.lines() if line.startswith("  !")]
    assert any("#8 " in line for line in marked)
    assert any(line.startswith("      MUST   shape.response: ") for line in shown.lines())
    hidden = list(show_trace(path, TraceFilter(thread="thr_2")).lines())
    assert any("finding(s) on messages that are not shown" in line for line in hidden)


def test_one_message_goes_with_no_filter(path: Path) -> None:
    with pytest.raises(UsageError, match="--message and --line show one message"):
        show_trace(path, TraceFilter(thread="thr_1"), message=3)


def test_colours_are_only_added_around_the_text(path: Path) -> None:
    coloured = "\n".join(show_trace(path, colour=True).lines())
    assert "\x1b[" in coloured
    assert "\x1b" not in "\n".join(show_trace(path).lines())


def test_json_has_pairs_gaps_and_findings(path: Path) -> None:
    shown = json.loads(json.dumps(show_trace(path, TraceFilter(turn="turn_1")).json()))
    by_number = {entry["message"]: entry for entry in shown["messages"]}
    assert list(by_number) == [2, 3, 4, 5, 6, 7, 8]
    assert by_number[7]["answers"] == {"message": 6, "after": 8300.0}
    assert by_number[6]["answeredBy"] == {"message": 7, "after": 8300.0}
    assert by_number[2]["json"]["method"] == "turn/start"
    assert {"milliseconds": 2031.0, "duration": 8300.0} | {
        "waitingFor": f"the client to answer {APPROVAL} (#6)"
    } in shown["gaps"]
    assert any(row["rule"] == "shape.response" for row in shown["findings"])


def test_a_message_can_be_named_by_its_line_as_check_does(path: Path) -> None:
    check = check_trace(path)
    report = "\n".join(check.lines())
    named = re.search(r"shape\.response: .* \(#(\d+), line (\d+)\)$", report, re.M)
    assert named
    number, line = int(named[1]), int(named[2])
    assert f"#{number} (line {line}) " in "\n".join(show_trace(path).lines())
    assert show_trace(path, line=line).message == number
    finding = next(row for row in check.json()["findings"] if row["rule"] == "shape.response")
    assert (finding["messages"][-1], finding["lines"][-1]) == (number, line)
    shown = re.search(r"^  a message in full: harness show (\S+) --message (\d+)$", report, re.M)
    assert shown
    assert any(
        text.startswith("  * ")
        for text in show_trace(Path(shown[1]), message=int(shown[2])).lines()
    )
    with pytest.raises(UsageError, match=r"no message in this line; the nearest one is in line 2$"):
        show_trace(path, line=1)


def test_a_profile_of_the_servers_version_is_suggested_until_it_is_named() -> None:
    recording = ROOT / "fixtures" / "traces" / "real-0.107.0" / "cmd_accept.jsonl"
    hint = "--target codex-0.107 marks the known deviations of this version"
    assert next(islice(show_trace(recording).lines(), 1, None)).endswith(hint)
    assert any(line.endswith(hint) for line in check_trace(recording).lines())
    named = show_trace(recording, target="codex-0.107").lines()
    assert not any(line.endswith(hint) for line in named)
