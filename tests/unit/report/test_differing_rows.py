"""Two conversations of one scenario: rows that are alike in both are left out of both."""

from harness.report.diagram.build import build_diagram
from harness.report.diagram.differences import differing_rows
from harness.report.diagram.limit import CONTEXT_ROWS
from harness.report.diagram.model import Diagram, Message, Note, NoteKind, Row
from harness.trace.trace import End
from tests.rules.traces import Talk


def words(row: Row) -> str:
    if isinstance(row, Note):
        return row.text if row.kind is NoteKind.LEFT_OUT else "note"
    return row.label if isinstance(row, Message) else row.row


def talk(thread: str, *methods: str) -> Diagram:
    conversation = Talk()
    for method in methods:
        conversation.tells(method, thread={"id": thread})
    return build_diagram(conversation.trace(End.CLOSED))


def test_rows_around_a_difference_are_kept_on_both_sides() -> None:
    alike = [f"a/{letter}" for letter in "abcdefghijkl"]
    before, after = differing_rows(
        talk("thr_1", *alike, "x/old", *alike), talk("thr_2", *alike, "x/new", "x/newer", *alike)
    )
    left_out = f"{len(alike) - CONTEXT_ROWS} rows are alike in both"
    shown = [words(row).split(" thr")[0] for row in before.rows]
    assert shown[: CONTEXT_ROWS + 2] == [left_out, *alike[-CONTEXT_ROWS:], "x/old"]
    assert shown[CONTEXT_ROWS + 2 :][:CONTEXT_ROWS] == alike[:CONTEXT_ROWS]
    assert [words(row).split(" thr")[0] for row in after.rows if "x/" in words(row)] == [
        "x/new",
        "x/newer",
    ]


def test_equal_conversations_are_one_note() -> None:
    methods = ["a/a", "a/b", "a/c"]
    for diagram in differing_rows(talk("thr_1", *methods), talk("thr_22", *methods)):
        assert [words(row) for row in diagram.rows] == ["4 rows are alike in both"]


def test_short_runs_of_alike_rows_are_kept() -> None:
    before, after = differing_rows(talk("t", "a/a", "x/old", "a/b"), talk("t", "a/a", "a/b"))
    assert [words(row).split()[0] for row in before.rows] == ["a/a", "x/old", "a/b", "note"]
    assert [words(row).split()[0] for row in after.rows] == ["a/a", "a/b", "note"]
