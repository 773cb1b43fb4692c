"""A trace as rows of a sequence diagram: messages, folds, silences, notes, missing messages."""

from typing import Any

import pytest

from harness.judge.judge import feed_trace
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Place, Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.report.diagram.build import build_diagram
from harness.report.diagram.labels import (
    MAX_DETAIL_CHARACTERS,
    MAX_LABEL_CHARACTERS,
    row_label,
)
from harness.report.diagram.model import (
    Diagram,
    Folded,
    Message,
    MessageKind,
    Missing,
    Note,
    NoteKind,
    Silence,
)
from harness.report.results.outcome import Finding
from harness.trace.frame import Direction
from harness.trace.marks import CallEnd, GateOpened, ServerEnded, StepBegins
from harness.trace.mcp_marks import McpAnswer, McpRequest, McpTransport
from harness.trace.recorder import Recorder
from harness.trace.surface.registry import classify_of
from harness.trace.surfaces import SDK
from harness.trace.trace import End, Header, StderrLine, Trace
from tests.rules.traces import Talk, agent_message, turn_object

TO_CLIENT = Direction.FROM_TARGET


def judged(trace: Trace) -> Diagram:
    """The diagram of a trace with the findings of all rules of sessions."""
    rules = [rule for rule in all_rules().values() if rule.surface == "session"]
    return build_diagram(trace, feed_trace(load_book(), trace, rules=rules).finish(trace.end))


def messages(diagram: Diagram) -> list[Message]:
    return [row for row in diagram.rows if isinstance(row, Message)]


def missing(diagram: Diagram) -> list[Missing]:
    return [row for row in diagram.rows if isinstance(row, Missing)]


def notes(diagram: Diagram) -> list[tuple[NoteKind, str]]:
    return [(row.kind, row.text) for row in diagram.rows if isinstance(row, Note)]


def violation(frame: int, path: str, *others: int) -> Row:
    return Row(
        "turn.status",
        "turn t1",
        Verdict.FAIL,
        Level.MUST,
        frames=(frame, *others),
        expected="done",
        actual="undone",
        places=(Place(frame, path),) if path else (),
    )


def test_request_answer_error_and_notification_are_arrows_of_their_kinds() -> None:
    talk = Talk().asks("thread/start").answers({"thread": {"id": "thr_1"}})
    talk.asks("thread/read").refuses("not now").tells("turn/started", turn=turn_object())
    rows = messages(build_diagram(talk.trace()))
    assert [(row.kind, row.source, row.target) for row in rows] == [
        (MessageKind.REQUEST, "client", "server"),
        (MessageKind.RESPONSE, "server", "client"),
        (MessageKind.REQUEST, "client", "server"),
        (MessageKind.ERROR, "server", "client"),
        (MessageKind.NOTIFICATION, "server", "client"),
    ]
    assert [row.frame for row in rows] == [0, 1, 2, 3, 4]
    assert [row.answers for row in rows] == [None, 0, None, 2, None]
    assert rows[1].label == "thread/start result thr_1"
    assert rows[3].label.startswith("thread/read error")
    assert rows[3].label.endswith("not now")
    assert rows[4].label == "turn/started inProgress"


def test_deltas_of_one_item_in_a_row_are_one_row() -> None:
    talk = Talk().start_thread().start_turn()
    talk.started(agent_message("m", "")).delta("m", "He").delta("m", "l").delta("m", "lo")
    talk.delta("n", "a").delta("n", "b")
    rows = build_diagram(talk.trace(End.CLOSED)).rows
    [fold] = [row for row in rows if isinstance(row, Folded)]
    assert (fold.count, fold.last - fold.first, fold.text) == (3, 2, "Hello")
    # Two deltas are no longer than their fold would be.
    deltas = [row for row in rows if isinstance(row, Message) and "delta" in row.label]
    assert [row.frame for row in deltas] == [fold.last + 1, fold.last + 2]


def test_delta_with_a_finding_stays_a_row_of_its_own() -> None:
    talk = Talk().tells("item/agentMessage/delta", itemId="m", delta="a")
    for _ in range(6):
        talk.tells("item/agentMessage/delta", itemId="m", delta="a")
    rows = build_diagram(talk.trace(), [violation(3, "params.delta")]).rows
    folds = [row for row in rows if isinstance(row, Folded)]
    assert [(fold.first, fold.last) for fold in folds] == [(0, 2), (4, 6)]
    [wrong] = [row for row in rows if isinstance(row, Message)]
    assert [(mark.rule, mark.level, mark.path) for mark in wrong.marks] == [
        ("turn.status", "MUST", "params.delta")
    ]


def test_only_the_wrong_message_of_a_proof_is_marked_as_wrong() -> None:
    talk = Talk().asks("thread/start").answers({}).tells("turn/started", turn=turn_object())
    diagram = build_diagram(talk.trace(), [violation(2, "params.turn.status", 0)])
    marks = {row.frame: row.marks for row in messages(diagram)}
    assert [mark.in_proof for mark in marks[0]] == [True]
    assert not marks[1]
    assert [(mark.path, mark.in_proof) for mark in marks[2]] == [("params.turn.status", False)]
    assert "expected done; actual undone" in marks[2][0].text
    # Without a member, the last message of the proof is the one.
    marks = {
        row.frame: row.marks
        for row in messages(build_diagram(talk.trace(), [violation(0, "", 2, 99)]))
    }
    assert [mark.in_proof for mark in (*marks[0], *marks[2])] == [True, False]


def test_first_member_of_a_finding_is_the_wrong_one() -> None:
    talk = Talk().asks("thread/start").answers({}).tells("turn/started", turn=turn_object())
    places = (Place(0, "params.a"), Place(0, "params.b"), Place(2, "params.turn"))
    finding = Finding("scenario.expectation", "a differs", places=places)
    marks = {row.frame: row.marks for row in messages(build_diagram(talk.trace(), [finding]))}
    assert [(mark.path, mark.in_proof) for mark in marks[0]] == [("params.a", False)]
    assert [(mark.path, mark.in_proof) for mark in marks[2]] == [("params.turn", True)]


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.NOT_EXERCISED])
def test_rows_that_are_no_violations_mark_nothing(verdict: Verdict) -> None:
    row = Row("turn.status", "turn t1", verdict, Level.MUST, frames=(0,))
    diagram = build_diagram(Talk().asks("thread/start").trace(End.CLOSED), [row])
    assert messages(diagram)[0].marks == ()


def test_known_violation_has_the_level_known() -> None:
    row = Row("turn.status", "turn t1", Verdict.KNOWN, Level.MUST, frames=(0,))
    diagram = build_diagram(Talk().asks("thread/start").trace(End.CLOSED), [row])
    assert [mark.level for mark in messages(diagram)[0].marks] == ["KNOWN"]


def test_message_that_never_came_is_a_missing_row_with_its_findings() -> None:
    diagram = judged(Talk().start_thread().start_turn().trace())
    owed = {row.label: row for row in missing(diagram)}
    completed = owed["turn/completed"]
    assert (completed.source, completed.target) == ("server", "client")
    assert "turn.completes" in [mark.rule for mark in completed.marks]
    # The answer by which it is owed belongs to the proof and is not wrong.
    assert completed.because is not None
    reply = next(row for row in messages(diagram) if row.frame == completed.because)
    assert {mark.in_proof for mark in reply.marks} == {True}
    assert len(owed) == len(missing(diagram))


def test_missing_answer_dangles_from_the_server() -> None:
    diagram = judged(Talk().asks("thread/list").trace())
    [owed] = missing(diagram)
    assert (owed.label, owed.source, owed.target) == ("answer to thread/list", "server", "client")
    assert [mark.rule for mark in owed.marks] == ["request.answered"]


def test_message_owed_by_a_cut_off_trace_has_no_findings() -> None:
    [owed] = missing(judged(Talk().asks("thread/list").trace(End.TIMED_OUT)))
    assert (owed.label, owed.because, owed.marks) == ("answer to thread/list", 0, ())


def test_message_that_came_too_late_is_missing_before_the_one_that_shows_it() -> None:
    talk = Talk().start_thread().start_turn().completed(agent_message("m", "hi"))
    diagram = judged(talk.end_turn().trace())
    place = next(
        index
        for index, row in enumerate(diagram.rows)
        if isinstance(row, Missing) and row.label == "item/started"
    )
    after = diagram.rows[place + 1]
    assert isinstance(after, Message)
    assert after.label == "item/completed agentMessage"


def test_calls_of_models_and_tools_have_columns_of_their_own() -> None:
    talk = Talk().asks("thread/start").calls("hel\u202elo").ends(outcome=CallEnd.DISCONNECTED)
    call = McpRequest(
        number=1, server="tiny", transport=McpTransport.STDIO, method="tools/call", tool="add"
    )
    talk.mark(call).mark(McpAnswer(number=1, texts=("5",)))
    diagram = build_diagram(talk.trace(End.CLOSED))
    assert [column.label for column in diagram.participants] == [
        "client",
        "server",
        "model",
        "MCP tiny",
    ]
    rows = messages(diagram)[1:]
    assert [(row.source, row.target) for row in rows] == [
        ("server", "model"),
        ("model", "server"),
        ("server", "tool1"),
        ("tool1", "server"),
    ]
    assert [row.kind for row in rows[:2]] == [MessageKind.REQUEST, MessageKind.ERROR]
    assert rows[2].label == "tools/call add"
    assert '"mark": "mcp-request"' in rows[2].detail
    assert "hel\\u202elo" in rows[0].detail


def test_lines_of_other_surfaces_have_the_names_of_their_events() -> None:
    recorder = Recorder(Header(surface=SDK), classify=classify_of(SDK))
    for line in (b'{"wrote": {"type": "turn.started"}}', b'{"ended": 0, "id": 1}', b"no JSON", b""):
        recorder.record(line, TO_CLIENT)
    diagram = build_diagram(recorder.trace)
    assert [column.label for column in diagram.participants] == ["client", "SDK"]
    assert [row.label for row in messages(diagram)] == [
        "turn.started",
        '{"ended": 0, "id": 1}',
        "no JSON",
        "(an empty line)",
    ]


def test_notification_to_a_tool_is_no_request() -> None:
    call = McpRequest(
        number=1, server="tiny", transport=McpTransport.HTTP, method="notifications/initialized"
    )
    [row] = messages(build_diagram(Talk().mark(call).trace(End.CLOSED)))
    assert row.kind is MessageKind.NOTIFICATION


def test_clients_at_once_have_columns_and_one_after_the_other_share_one() -> None:
    talk = Talk().asks("initialize").on("c2").asks("initialize").on("c1").asks("thread/list")
    together = build_diagram(talk.trace(End.CLOSED))
    assert [column.id for column in together.participants] == ["client1", "client2", "server"]
    assert [row.source for row in messages(together)] == ["client1", "client2", "client1"]
    after = Talk().asks("initialize").mark(ServerEnded(killed=True)).on("c2").asks("initialize")
    one = build_diagram(after.trace(End.CLOSED))
    assert [column.id for column in one.participants] == ["client", "server"]
    assert (NoteKind.PROCESS, "connection c2 begins") in notes(one)
    assert any("killed" in words for kind, words in notes(one) if kind is NoteKind.PROCESS)


def test_further_clients_share_the_last_column() -> None:
    talk = Talk()
    for _ in range(2):
        for number in range(8):
            talk.on(f"c{number}").asks("thread/list")
    diagram = build_diagram(talk.trace(End.CLOSED))
    assert [column.label for column in diagram.participants][-2:] == ["client c5, c6, c7", "server"]
    assert len(diagram.participants) == 7


def test_steps_gates_and_standard_error_are_notes() -> None:
    talk = Talk().mark(StepBegins("request", 7)).asks("thread/list").mark(GateOpened("g1"))
    assert notes(build_diagram(talk.trace(End.CLOSED), stderr="one\ntwo\n")) == [
        (NoteKind.STEP, "request (line 7)"),
        (NoteKind.GATE, "gate g1 opens"),
        (NoteKind.STDERR, "one"),
        (NoteKind.STDERR, "two"),
        (NoteKind.END, "end: closed"),
    ]


def test_timed_lines_of_standard_error_stand_between_the_messages() -> None:
    trace = Talk().asks("a").mark(GateOpened("g1")).asks("b").trace(End.CLOSED)
    gate_at = trace.marks[0].at
    trace.stderr = [
        StderrLine(0.0, -1, "early"),
        StderrLine(gate_at - 0.001, 0, "\x1b[2;31mbefore\x1b[0m \x1b[2J"),
        StderrLine(gate_at + 0.001, 0, "after"),
        *(StderrLine(9.0, 1, f"line {number} \x07") for number in range(20)),
    ]
    rows = build_diagram(trace, stderr="the end of it").rows
    shown = [one for one in rows if not isinstance(one, Missing)]
    assert [one.text if isinstance(one, Note) else row_label(one) for one in shown] == [
        *("early", "a", "before \\x1b[2J", "gate g1 opens", "after", "b"),
        *("20 lines, the last: line 19 \\x07", "end: closed"),
    ]
    [many] = [one for one in rows if isinstance(one, Note) and one.detail]
    assert many.detail.splitlines() == [f"line {number} \\x07" for number in range(20)]
    assert many.time == 9.0
    part = build_diagram(trace, frames=trace.frames[:1])
    assert NoteKind.STDERR not in [kind for kind, _ in notes(part)]


def test_finding_without_a_message_is_a_note() -> None:
    finding = Finding("scenario.timeout", "nothing came\nfor 5 s")
    rows = build_diagram(Talk().asks("thread/list").trace(End.CLOSED), [finding]).rows
    [note] = [row for row in rows if isinstance(row, Note) and row.kind is NoteKind.FINDING]
    assert note.text == "nothing came\\nfor 5 s"
    assert [mark.rule for mark in note.marks] == ["scenario.timeout"]


def test_silence_says_how_long_and_for_what() -> None:
    now = 0.0
    recorder = Recorder(clock=lambda: now)
    recorder.record(b'{"id": 1, "method": "thread/list"}', Direction.TO_TARGET)
    now = 2.5
    recorder.record(b'{"id": 1, "result": {}}', TO_CLIENT)
    [silence] = [row for row in build_diagram(recorder.trace).rows if isinstance(row, Silence)]
    assert (silence.time, silence.seconds) == (0.0, 2.5)
    assert silence.waiting_for == "the server to answer thread/list (#0)"


def test_chosen_messages_leave_out_the_others_and_their_findings() -> None:
    trace = Talk().start_thread().start_turn().trace()
    diagram = build_diagram(trace, [violation(2, "")], frames=trace.frames[:1])
    assert [row.frame for row in messages(diagram)] == [0]
    assert not missing(diagram)
    assert not notes(diagram)


def test_long_lines_are_cut_and_what_is_not_printable_is_escaped() -> None:
    recorder = Recorder()
    recorder.record(b'{"method": "' + b"x" * 5_000_000 + b'"}', TO_CLIENT)
    recorder.record('{"method": "a\u202eb"}'.encode(), TO_CLIENT)
    recorder.record(b"\x1b[31mred\x00\xff", TO_CLIENT)
    rows = messages(build_diagram(recorder.trace))
    assert len(rows[0].label) <= MAX_LABEL_CHARACTERS
    assert len(rows[0].detail) < 2.1 * MAX_DETAIL_CHARACTERS
    assert rows[1].detail == '{"method": "a\\u202eb"}'
    assert rows[2].kind is MessageKind.MALFORMED
    assert all(text.isprintable() for row in rows for text in (row.label, row.detail))


def test_long_line_keeps_the_wrong_member() -> None:
    recorder = Recorder()
    head = '{"method": "a", "params": {"x": "' + "x" * 900_000
    recorder.record(f'{head}", "status": "odd", "y": "{"y" * 900_000}"}}}}'.encode(), TO_CLIENT)
    [row] = messages(build_diagram(recorder.trace, [violation(0, "params.status")]))
    assert '"status": "odd"' in row.detail
    assert len(row.detail) < 2 * MAX_DETAIL_CHARACTERS


def test_json_form_leaves_out_defaults_and_names_each_row() -> None:
    talk = Talk().asks("thread/list")
    plain: dict[str, Any] = build_diagram(talk.trace(End.CLOSED), [violation(0, "id")]).as_json()
    assert plain["version"] == 1
    assert plain["participants"][1] == {"id": "server", "label": "server", "kind": "server"}
    request, owed, end = plain["rows"]
    assert (owed["row"], end) == (
        "missing",
        {"row": "note", "time": end["time"], "kind": "end", "text": "end: closed"},
    )
    assert request == {
        "row": "message",
        "time": request["time"],
        "source": "client",
        "target": "server",
        "label": "thread/list",
        "kind": "request",
        "detail": request["detail"],
        "frame": 0,
        "marks": [
            {
                "rule": "turn.status",
                "level": "MUST",
                "path": "id",
                "text": "turn t1: expected done; actual undone",
            }
        ],
    }


def test_second_of_two_messages_that_must_not_both_come_is_the_wrong_one() -> None:
    talk = Talk().start_thread().start_turn().end_turn().end_turn()
    by_label = [row for row in messages(judged(talk.trace())) if row.label.startswith("turn/compl")]
    wrong = [
        [mark.in_proof for mark in row.marks if mark.rule == "turn.completed-once"]
        for row in by_label
    ]
    assert wrong == [[True], [False]]


def test_turns_are_told_apart_where_there_are_several() -> None:
    talk = (
        Talk()
        .start_thread()
        .start_turn("turn_1")
        .end_turn()
        .start_turn("turn_2")
        .end_turn("turn_2")
    )
    labels = [row.label for row in messages(judged(talk.trace())) if "turn/completed" in row.label]
    assert labels == ["turn/completed completed (turn_1)", "turn/completed completed (turn_2)"]
