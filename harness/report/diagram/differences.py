"""Two diagrams of one scenario, reduced to the rows in which they differ."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Final

from harness.report.diagram.labels import row_label
from harness.report.diagram.limit import CONTEXT_ROWS, limit_rows
from harness.report.diagram.model import (
    Diagram,
    Folded,
    Message,
    Missing,
    Note,
    NoteKind,
    Row,
    Silence,
)

MAX_COMPARED_ROWS: Final = 1_000
# Ids and numbers, which differ in every run.
_ID: Final = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\d+(\.\d+)?")


def differing_rows(before: Diagram, after: Diagram) -> tuple[Diagram, Diagram]:
    """Return both diagrams with a note in place of rows that are alike in both.

    Some of these are kept around each difference. Findings count, numbers and ids do not.
    """
    before, after = (limit_rows(one, MAX_COMPARED_ROWS) for one in (before, after))
    keys = [[_key(row) for row in diagram.rows] for diagram in (before, after)]
    blocks = SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_matching_blocks()
    return (
        replace(before, rows=tuple(_without(before.rows, [(b.a, b.size) for b in blocks]))),
        replace(after, rows=tuple(_without(after.rows, [(b.b, b.size) for b in blocks]))),
    )


def _key(row: Row) -> tuple[str, ...]:
    if isinstance(row, Silence):
        return (row.row, row.waiting_for)
    ends = (row.source, row.target) if isinstance(row, Message | Folded | Missing) else ()
    label = row.label if isinstance(row, Folded) else row_label(row)
    marks = () if isinstance(row, Folded) else row.marks
    return (row.row, *ends, _ID.sub("#", label), *sorted({mark.rule for mark in marks}))


def _without(rows: Sequence[Row], alike: Sequence[tuple[int, int]]) -> Iterator[Row]:
    """Yield rows with a note in place of the inner part of each block (first row, length)."""
    done = 0
    for start, size in alike:
        first = start + (CONTEXT_ROWS if start else 0)
        last = start + size - (CONTEXT_ROWS if start + size < len(rows) else 0)
        if last - first > 1:
            yield from rows[done:first]
            words = f"{last - first} rows are alike in both"
            yield Note(time=rows[first].time, kind=NoteKind.LEFT_OUT, text=words)
            done = last
    yield from rows[done:]
