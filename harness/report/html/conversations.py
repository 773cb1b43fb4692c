"""The conversations of a page: diagrams as JSON, compressed, which the script draws when asked.

Those of findings are always there, others as long as the page stays below its limit.
"""

import base64
import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from harness.judge.verdict import Row
from harness.report.diagram.build import build_diagram
from harness.report.diagram.model import Diagram
from harness.report.results.outcome import Finding
from harness.report.wire_lines import load_stored

MAX_CONVERSATION_BYTES: Final = 7_500_000
"""Characters of all conversations together; with the rest the page stays under 10 MB."""

PlacedFinding: TypeAlias = tuple[Row | Finding, str]
"""A finding on a conversation, and the end of the server's stderr."""


class Conversations:
    """The compressed conversations of a page, by the files of their traces."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._findings: dict[str, list[PlacedFinding]] = defaultdict(list)
        self._used = 0
        self.left_out = 0

    def add_all(
        self,
        first: Iterable[str],
        others: Iterable[str],
        findings: Iterable[tuple[str, PlacedFinding]],
    ) -> None:
        """Add the files of `first`, then the smallest of `others` as long as there is room.

        `findings` are the findings that the conversation of a file shows, each with the end of the
        server's stderr.
        """
        for path, finding in findings:
            self._findings[path].append(finding)
        wanted = list(dict.fromkeys(path for path in first if path))
        for path in wanted:
            self._add(path, is_needed=True)
        rest = dict.fromkeys(path for path in others if path and path not in self._numbers)
        for path in sorted(rest, key=_size):
            self._add(path, is_needed=False)

    def _add(self, path: str, *, is_needed: bool) -> None:
        if not is_needed and self._used >= self._limit:
            self.left_out += 1
            return
        diagram = draw_stored(path, self._findings[path])
        if diagram is not None:
            self.put(path, diagram, is_needed=is_needed)

    def put(self, name: str, diagram: Diagram, *, is_needed: bool = False) -> None:
        """Add a diagram under a name, the file of its trace or another, if there is room for it."""
        packed = pack(diagram.as_json())
        if not is_needed and self._used + len(packed) > self._limit:
            self.left_out += 1
            return
        self._numbers[name] = len(self._numbers)
        self._data[name] = packed
        self._used += len(packed)

    def number(self, path: str) -> int | None:
        """Return the number of a file's conversation, None if the page does not have it."""
        return self._numbers.get(path)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return ((self._numbers[path], data) for path, data in self._data.items())


def pack(value: Any) -> str:
    """Return a value as JSON, compressed (zlib), in base64."""
    text = json.dumps(value, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpack(data: str) -> Any:
    """Return the value of `pack`."""
    return json.loads(zlib.decompress(base64.b64decode(data)))


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except (OSError, ValueError):
        return 0


def draw_stored(path: str, findings: Sequence[PlacedFinding]) -> Diagram | None:
    """Return the diagram of a stored trace, None if there is none that can be read."""
    trace = load_stored(path)
    if trace is None:
        return None
    stderr = next((text for _, text in findings if text), "")
    return build_diagram(trace, [finding for finding, _ in findings], stderr=stderr)
