"""The lines of an outline, and the members of a JSON value as lines."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from harness.protocol.escapes import json_text, visible
from harness.protocol.values import Path, read_path
from harness.report.diagram.model import FindingMark

MAX_VALUE_CHARACTERS: Final = 2_000
MAX_MEMBERS: Final = 5_000
MAX_DEPTH: Final = 40
"""Deeper values, and what is beyond these numbers, are shown on one line or not at all."""


@dataclass(slots=True)
class Node:
    """A line of an outline. `key` is the same in every outline of the conversation.

    `time` is in seconds, None for a line inside of a message. `kind` is the form of the row, for
    its colour, `raw` the text that a search looks in. `make_children` is called when they are asked
    for. `marks` are the findings on the line itself, `finding_count` those in it and below.
    """

    key: str
    text: str
    time: float | None = None
    kind: str = ""
    raw: str = ""
    marks: Sequence[FindingMark] = ()
    make_children: "Callable[[], list[Node]] | None" = None
    finding_count: int = 0
    _children: "list[Node] | None" = field(default=None, repr=False)

    @property
    def children(self) -> "list[Node]":
        """Return the lines below this one."""
        if self._children is None:
            self._children = self.make_children() if self.make_children is not None else []
        return self._children


Member: TypeAlias = tuple[Path, str]


def json_nodes(key: str, value: Any, marks: Sequence[FindingMark]) -> list[Node]:
    """Return the lines of a JSON value; the members that the marks name have them.

    A mark of a missing member stands at the nearest one around it.
    """
    members = list(_members(value, (), "", 0))
    shown = {path for path, _ in members}
    by_path: dict[Path, list[FindingMark]] = {}
    for mark in marks:
        path = read_path(mark.path)
        while path and path not in shown:
            path = path[:-1]
        by_path.setdefault(path, []).append(mark)
    return [
        Node(f"{key}.{number}", line, marks=by_path.pop(path, ()), kind="json")
        for number, (path, line) in enumerate(members)
    ]


def _members(value: Any, path: Path, name: str, depth: int) -> Iterator[Member]:
    """Yield each member in a line with its path; the closing bracket has that of its value."""
    indent, children = "  " * depth, _children_of(value)
    if not children or depth >= MAX_DEPTH:
        words = json_text(value)
        if len(words) > MAX_VALUE_CHARACTERS:
            left_out = len(words) - MAX_VALUE_CHARACTERS
            words = f"{words[:MAX_VALUE_CHARACTERS]} …{left_out} more characters"
        yield path, f"{indent}{name}{visible(words)}"
        return
    opening, closing = "[]" if isinstance(value, list) else "{}"
    yield path, f"{indent}{name}{opening}"
    for number, (step, child) in enumerate(children):
        if number == MAX_MEMBERS:
            yield path, f"{indent}  …{len(children) - number} more"
            break
        label = "" if isinstance(step, int) else f"{visible(json_text(step))}: "
        yield from _members(child, (*path, step), label, depth + 1)
    yield path, f"{indent}{closing}"


def _children_of(value: Any) -> list[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).items())
    if isinstance(value, list):
        return list(enumerate(cast("list[Any]", value)))
    return []
