"""A conversation as an outline: what is below what, what is open, and what a search finds."""

import json
from dataclasses import replace
from typing import Any

import pytest

from harness.judge.verdict import Level, Place, Row, Verdict
from harness.protocol.values import show_path
from harness.report.diagram.build import build_diagram
from harness.report.diagram.model import FindingMark, Missing
from harness.report.outline.build import build_outline
from harness.report.outline.folding import Outline
from harness.report.outline.node import MAX_DEPTH, MAX_MEMBERS, MAX_VALUE_CHARACTERS, json_nodes
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder
from harness.trace.trace import Trace


def conversation(deltas: int = 3) -> Trace:
    """Two turns, the first with an item of some deltas."""
    recorder = Recorder()

    def say(message: dict[str, Any], direction: Direction = Direction.FROM_TARGET) -> None:
        recorder.record(json.dumps(message).encode(), direction)

    for number in (1, 2):
        ids = {"threadId": "thr_1", "turnId": f"turn_{number}"}
        turn = {"turn": {"id": f"turn_{number}", "status": "inProgress"}}
        say({"id": number, "method": "turn/start", "params": {}}, Direction.TO_TARGET)
        say({"id": number, "result": turn})
        if number == 1:
            say({"method": "item/started", "params": {**ids, "item": {"id": "i1"}}})
            for _ in range(deltas):
                of_item = {**ids, "itemId": "i1", "delta": "Word "}
                say({"method": "item/agentMessage/delta", "params": of_item})
            say({"method": "item/completed", "params": {**ids, "item": {"id": "i1"}}})
        say({"method": "turn/completed", "params": {**ids, **turn}})
    return recorder.trace


def violation(frame: int, path: str) -> Row:
    places = (Place(frame, path),)
    return Row("turn.status", "turn t1", Verdict.FAIL, Level.MUST, (frame,), places=places)


def outline_of(trace: Trace, *findings: Row) -> Outline:
    diagram = build_diagram(trace, findings)
    rows = tuple(row for row in diagram.rows if not isinstance(row, Missing))
    return Outline(build_outline(replace(diagram, rows=rows), trace))


def shown(outline: Outline) -> list[str]:
    return [f"{'  ' * line.depth}{line.node.text}" for line in outline.lines]


def test_rows_are_below_their_turn_and_item() -> None:
    assert shown(outline_of(conversation())) == [
        "turn turn_1: 6 rows",
        "  client → server  turn/start  #0",
        "  server → client  turn/start result inProgress  #1",
        "  item i1: 3 rows",
        "    server → client  item/started  #2",
        "    server → client  item/agentMessage/delta, 3 times: Word Word Word ",
        "    server → client  item/completed  #6",
        "  server → client  turn/completed inProgress (turn_1)  #7",
        "turn turn_2: 3 rows",
        "  client → server  turn/start  #8",
        "  server → client  turn/start result inProgress  #9",
        "  server → client  turn/completed inProgress (turn_2)  #10",
        "end: closed",
    ]


def test_deltas_unfold_to_messages_and_these_to_their_members() -> None:
    outline = outline_of(conversation())
    assert outline.find("3 times")
    outline.open()
    assert shown(outline)[6:9] == [
        f"      server → client  item/agentMessage/delta 'Word '  #{number}" for number in (3, 4, 5)
    ]
    outline.move(1)
    outline.open()
    assert '          "delta": "Word "' in "\n".join(shown(outline))
    outline.move(2)
    outline.close()
    assert outline.current_line.node.key == "#3"
    assert len(outline.lines) == 16


def test_closing_hides_a_turn_and_selects_it() -> None:
    outline = outline_of(conversation())
    outline.move(2)
    outline.close()
    assert shown(outline)[:2] == ["turn turn_1: 6 rows", "turn turn_2: 3 rows"]
    assert outline.cursor == 0
    outline.toggle()
    assert len(outline.lines) == 13


def test_search_opens_what_it_finds_and_goes_round() -> None:
    outline = outline_of(conversation())
    outline.set_all(is_open=False)
    assert [line.node.text for line in outline.lines] == [
        "turn turn_1: 6 rows",
        "turn turn_2: 3 rows",
        "end: closed",
    ]
    assert outline.find('"ITEMID"') is False  # Of deltas the text is searched.
    assert outline.find("TURN/COMPLETED")
    assert outline.current_line.node.key == "#7"
    assert outline.find("turn/completed")
    assert outline.current_line.node.key == "#10"
    assert outline.find("turn/completed")
    assert outline.find("turn/completed", -1)
    assert outline.current_line.node.key == "#10"
    before = outline.cursor
    assert not outline.find("nowhere")
    assert outline.cursor == before


def test_findings_are_counted_and_gone_through() -> None:
    outline = outline_of(conversation(), violation(7, "params.turn.status"), violation(9, ""))
    assert [line.node.finding_count for line in outline.lines if line.depth == 0] == [1, 1, 0]
    places = []
    for step in (1, 1, 1, -1):
        assert outline.find_finding(step)
        places.append(outline.current_line.node.key)
    assert places == ["#7", "#9", "#7", "#9"]
    assert not outline_of(conversation()).find_finding()


def test_findings_that_come_later_leave_what_is_open_and_selected() -> None:
    trace = conversation()
    outline = outline_of(trace)
    outline.find("#10")
    outline.open()
    outline.move(3)
    before = shown(outline), outline.cursor
    outline.replace(outline_of(trace, violation(10, "params")).nodes)
    assert (shown(outline), outline.cursor) == before
    assert [
        line.node.text for line in outline.lines if line.node.kind == "json" and line.node.marks
    ]


def test_wrong_member_has_the_mark_and_a_missing_one_its_parent() -> None:
    value = {"params": {"turn": {"status": "odd"}, "list": [1, 2]}}
    marks = [
        FindingMark("status", "MUST", "params.turn.status"),
        FindingMark("missing", "MUST", "params.turn.id"),
        FindingMark("second", "MUST", show_path(("params", "list", 1))),
        FindingMark("whole", "MUST", "nothing.here"),
    ]
    nodes = json_nodes("#0", value, marks)
    marked = {mark.rule: node.text.strip() for node in nodes for mark in node.marks}
    assert marked == {
        "status": '"status": "odd"',
        "missing": '"turn": {',
        "second": "2",
        "whole": "{",
    }


def test_long_wide_and_deep_values_are_cut() -> None:
    deep: Any = "end"
    for _ in range(3 * MAX_DEPTH):
        deep = [deep]
    nodes = json_nodes(
        "#0", {"long": "x" * 10**7, "wide": [0] * (MAX_MEMBERS + 9), "deep": deep}, []
    )
    assert len(nodes) < MAX_MEMBERS + 2 * MAX_DEPTH + 10
    assert max(len(node.text) for node in nodes) < MAX_VALUE_CHARACTERS + 100
    assert "…9 more" in {node.text.strip() for node in nodes}


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\u202etxt", "\n", "\x9b31m", "\ud800"])
def test_hostile_text_is_escaped(hostile: str) -> None:
    recorder = Recorder()
    ids = {"turnId": hostile, "itemId": hostile, "delta": hostile}
    for _ in range(3):
        message = {"method": hostile, "params": {**ids, hostile: hostile}}
        recorder.record(json.dumps(message).encode(), Direction.FROM_TARGET)
    recorder.record(hostile.encode("utf-8", "replace"), Direction.FROM_TARGET)
    outline = outline_of(recorder.trace, violation(3, hostile))
    for _ in range(60):
        outline.open()
        outline.move(1)
    assert len(outline.lines) > 30
    assert "".join(line.node.text for line in outline.lines).isprintable()


def test_empty_conversation_has_one_line() -> None:
    assert [line.node.text for line in Outline([]).lines] == ["no message"]
