"""The outline of a diagram: rows of one turn below a line, in it those of one item, then deltas."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

from harness.protocol.values import MISSING, dig, obj, text
from harness.report.diagram import labels
from harness.report.diagram.limit import has_finding
from harness.report.diagram.model import (
    Diagram,
    Folded,
    Message,
    Missing,
    Note,
    Row,
)
from harness.report.outline.node import Node, json_nodes
from harness.trace.frame import Frame, Kind
from harness.trace.trace import Trace

Ids = tuple[str, str]
"""The ids of a turn and of an item, "" for none."""


def build_outline(diagram: Diagram, trace: Trace) -> list[Node]:
    """Return the outline of a diagram, whose messages are those of the trace."""
    return _Builder(diagram, trace).build()


class _Builder:
    def __init__(self, diagram: Diagram, trace: Trace) -> None:
        self._trace = trace
        self._rows = diagram.rows
        self._names = {one.id: one.label for one in diagram.participants}
        self._width = max((len(name) for name in self._names.values()), default=0)

    def build(self) -> list[Node]:
        ids = _fill_gaps(_fill_gaps(list(self._ids_of_rows()), 0), 1)
        nodes = [self._row_node(row) for row in self._rows]
        lines = list(zip(nodes, ids, strict=True))
        return _group_rows(
            lines, 0, lambda some: _group_rows(some, 1, lambda rest: [n for n, _ in rest])
        )

    def _ids_of_rows(self) -> Iterator[Ids]:
        """Yield the ids that each row names; a request has those of its answer too."""
        answers = {
            row.answers: row.frame
            for row in self._rows
            if isinstance(row, Message) and row.answers is not None
        }
        for row in self._rows:
            seq = row.first if isinstance(row, Folded) else None
            seq = row.frame if isinstance(row, Message) else seq
            found = _ids_of(self._trace.frames[seq]) if seq is not None else ("", "")
            if not found[0] and seq in answers and answers[seq] is not None:
                found = _ids_of(self._trace.frames[answers[seq] or 0])
            yield found

    def _row_node(self, row: Row) -> Node:
        words = labels.row_label(row)
        marks = row.marks if isinstance(row, Message | Missing | Note) else ()
        kind, raw, place = row.row, "", ""
        if isinstance(row, Message | Folded | Missing):
            ends = f"{self._names[row.source]} → {self._names[row.target]}"
            words = f"{ends:<{2 * self._width + 3}}  {words}"
        if isinstance(row, Message) and row.frame is not None:
            place = f"#{row.frame}"
        node = Node(place or f"{row.row} {row.time} {words}", f"{words}  {place}".rstrip())
        if isinstance(row, Message):
            kind, raw = row.kind.value, row.detail
            node.make_children = lambda: self._json(node.key, row)
        elif isinstance(row, Folded):
            node.text, raw = f"{words}: {row.text}", row.text
            node.make_children = lambda: self._deltas(row)
        node.time, node.kind, node.raw, node.marks = row.time, kind, raw, marks
        node.finding_count = int(has_finding(row))
        return node

    def _json(self, key: str, row: Message) -> list[Node]:
        value: Any = MISSING
        if row.frame is not None:
            value = self._trace.frames[row.frame].json
        if value is MISSING:
            try:
                value = json.loads(row.detail)
            except (ValueError, RecursionError):
                value = row.detail
        return json_nodes(key, value, row.marks)

    def _deltas(self, folded: Folded) -> list[Node]:
        frames = self._trace.frames[folded.first : folded.last + 1]
        return [
            self._row_node(self._delta_row(folded, frame))
            for frame in frames
            if frame.method == self._trace.frames[folded.first].method
        ]

    def _delta_row(self, folded: Folded, frame: Frame) -> Message:
        return Message(
            time=frame.at,
            source=folded.source,
            target=folded.target,
            label=labels.shorten(f"{folded.label} {text(obj(frame.params).get('delta'))!r}"),
            kind=labels.KIND_OF_FRAME[frame.kind],
            detail=labels.frame_detail(frame, []),
            frame=frame.seq,
        )


def _ids_of(frame: Frame) -> Ids:
    members = frame.result if frame.kind is Kind.RESPONSE else frame.params
    turn = text(dig(members, "turnId")) or text(dig(members, "turn", "id"))
    item = text(dig(members, "itemId")) or text(dig(members, "item", "id"))
    return turn, item


def _fill_gaps(rows: list[Ids], level: int) -> list[Ids]:
    """Return the ids of rows, where one without an id has that of the rows on both its sides."""
    known = [number for number, ids in enumerate(rows) if ids[level]]
    for first, last in pairwise(known):
        if rows[first][: level + 1] == rows[last][: level + 1]:
            for number in range(first + 1, last):
                turn, item = rows[first]
                rows[number] = (turn, item) if level else (turn, rows[number][1])
    return rows


def _group_rows(
    lines: Sequence[tuple[Node, Ids]],
    level: int,
    inside: Callable[[list[tuple[Node, Ids]]], list[Node]],
) -> list[Node]:
    """Return the nodes; those in a row with one id, if there are several, below a line for it."""
    nodes: list[Node] = []
    for name, group in groupby(lines, lambda line: line[1][level]):
        members = list(group)
        below = inside(members)
        if not name or len(members) < 2:
            nodes += below
            continue
        first = members[0][0]
        words = f"{('turn', 'item')[level]} {labels.shorten(name)}: {len(members)} rows"
        node = Node(f"{level} {first.key}", words, first.time, "group", make_children=None)
        node.make_children = _return_always(below)
        node.finding_count = sum(one.finding_count for one in below)
        nodes.append(node)
    return nodes


def _return_always(nodes: list[Node]) -> Callable[[], list[Node]]:
    return lambda: nodes
