"""The state of an outline that is read: what is unfolded, and the line that is selected."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.report.outline.node import Node

GROUP = "group"


class Line(NamedTuple):
    """A line that is shown, its depth, and the index of the line around it, -1 for none."""

    node: Node
    depth: int
    parent: int


class Outline:
    """An outline of which some lines are open. `cursor` is the index of the selected line.

    At first turns and items are open, messages and deltas are not. It has at least one line.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.cursor = 0
        self.lines: list[Line] = []
        self._is_open: dict[str, bool] = {}
        self.replace(nodes)

    def replace(self, nodes: Sequence[Node]) -> None:
        """Show other nodes of the same conversation; what is open and selected stays so."""
        selected = self.current_line.node.key if self.lines else ""
        self.nodes = nodes or [Node("", "no message")]
        # Each row with the turn and the item around it, in order.
        self._rows: list[tuple[Node, tuple[Node, ...]]] = []
        self._collect(self.nodes, ())
        self._number = {node.key: number for number, (node, _) in enumerate(self._rows)}
        self._show(selected)

    def _collect(self, nodes: Sequence[Node], around: tuple[Node, ...]) -> None:
        for node in nodes:
            self._rows.append((node, around))
            if node.kind == GROUP:
                self._collect(node.children, (*around, node))

    @property
    def current_line(self) -> Line:
        """Return the selected line."""
        return self.lines[self.cursor]

    def is_open(self, node: Node) -> bool:
        """Return whether the lines below a node are shown."""
        return self._is_open.get(node.key, node.kind == GROUP)

    def move(self, lines: int) -> None:
        """Select the line so many lines below, or above if negative."""
        self.cursor = max(0, min(len(self.lines) - 1, self.cursor + lines))

    def open(self) -> None:
        """Show the lines below the selected one."""
        self._set_open(self.current_line.node, is_open=True)

    def toggle(self) -> None:
        """Show or hide the lines below the selected one."""
        self._set_open(self.current_line.node, is_open=not self.is_open(self.current_line.node))

    def close(self) -> None:
        """Hide the lines below the selected one; if none are shown, those beside it."""
        node, _, parent = self.current_line
        is_shown = self.is_open(node) and node.children
        self._set_open(node if is_shown or parent < 0 else self.lines[parent].node, is_open=False)

    def set_all(self, *, is_open: bool) -> None:
        """Open or close all turns and items."""
        for node, _ in self._rows:
            if node.kind == GROUP:
                self._is_open[node.key] = is_open
        node, around = self._rows[self._selected_row()]
        self._show((node if is_open or not around else around[0]).key)

    def find(self, words: str, step: int = 1) -> bool:
        """Select the next row with the words, or with step -1 the former one; False if none has.

        Messages are searched as they were on the wire. Upper and lower case are the same.
        """
        wanted = words.casefold()
        return self._seek(
            step, lambda node: wanted in node.text.casefold() or wanted in node.raw.casefold()
        )

    def find_finding(self, step: int = 1) -> bool:
        """Select the next row with a finding, or with step -1 the former one; False if none has."""
        return self._seek(step, lambda node: node.kind != GROUP and node.finding_count > 0)

    def _seek(self, step: int, matches: Callable[[Node], bool]) -> bool:
        start, count = self._selected_row(), len(self._rows)
        for distance in range(1, count + 1):
            node, around = self._rows[(start + step * distance) % count]
            if matches(node):
                for group in around:
                    self._is_open[group.key] = True
                self._show(node.key)
                return True
        return False

    def _selected_row(self) -> int:
        """Return the number of the row that the selected line is, or is in."""
        line = self.current_line
        while line.node.key not in self._number:
            line = self.lines[line.parent]
        return self._number[line.node.key]

    def _set_open(self, node: Node, *, is_open: bool) -> None:
        self._is_open[node.key] = is_open
        self._show(node.key)

    def _show(self, selected: str) -> None:
        """List the lines that are shown, and select the one with a key, else the same index."""
        self.lines = []
        self._list(self.nodes, 0, -1)
        keys = (index for index, line in enumerate(self.lines) if line.node.key == selected)
        self.cursor = next(keys, min(self.cursor, len(self.lines) - 1))

    def _list(self, nodes: Sequence[Node], depth: int, parent: int) -> None:
        for node in nodes:
            self.lines.append(Line(node, depth, parent))
            if self.is_open(node):
                self._list(node.children, depth + 1, len(self.lines) - 1)
