"""A bound on the rows of a diagram, for forms that cannot show any number of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from harness.report.diagram.model import Diagram, Message, Missing, Note, NoteKind, Row

# Rows kept before and after one with a finding.
CONTEXT_ROWS: Final = 4


def limit_rows(diagram: Diagram, max_rows: int) -> Diagram:
    """Return a diagram with at most `max_rows` rows, and notes for those that are left out.

    Rows with findings come first, then those around them, then the beginning and the end.
    """
    rows = diagram.rows
    if len(rows) <= max_rows:
        return diagram
    kept: set[int] = set()
    for index in _by_importance(rows):
        if len(kept) >= max_rows:
            break
        kept.add(index)
    return replace(diagram, rows=tuple(_with_notes(rows, kept)))


def has_finding(row: Row) -> bool:
    """Return whether a finding points at a row as the wrong one."""
    return isinstance(row, Message | Missing | Note) and any(
        not mark.in_proof for mark in row.marks
    )


def _by_importance(rows: Sequence[Row]) -> Iterator[int]:
    wrong = [index for index, row in enumerate(rows) if has_finding(row)]
    yield from wrong
    for distance in range(1, CONTEXT_ROWS + 1):
        for index in wrong:
            yield from (
                near for near in (index - distance, index + distance) if near in range(len(rows))
            )
    for index in range((len(rows) + 1) // 2):
        yield index
        yield len(rows) - 1 - index


def _with_notes(rows: Sequence[Row], kept: Iterable[int]) -> Iterator[Row]:
    last = -1
    for index in [*sorted(kept), len(rows)]:
        skipped = rows[last + 1 : index]
        if skipped:
            wrong = sum(map(has_finding, skipped))
            words = f"{len(skipped)} rows are not drawn" + (
                f", {wrong} with findings" if wrong else ""
            )
            words += "; choose fewer with --turn, --item, --method, --since or --until"
            yield Note(time=skipped[0].time, kind=NoteKind.LEFT_OUT, text=words)
        if index < len(rows):
            yield rows[index]
        last = index
