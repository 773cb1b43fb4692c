"""Search of a block of lines in a text, in linear time.

Lines are compared in three passes: exactly, without trailing white space, and with all white space
taken as equal. `match` uses the result.

Each line is represented by a hash of four bytes, so that a block is found by searching a byte
string, which takes linear time and little memory; a match is then compared line by line.
"""

import io
from array import array
from collections.abc import Callable, Sequence

from reference_server.patch.work_budget import WorkBudget, stop_if_abandoned

FORMS: tuple[Callable[[str], str], ...] = (
    str,
    str.rstrip,
    lambda line: " ".join(line.split()),
)
"""Normal forms in which lines are compared, from the strictest to the loosest."""
MAX_SEARCHED_BYTES = 1 << 30
"""Maximum bytes searched for one text: a second or two; ordinary patches need far fewer."""
_WIDTH = 4


class TooMuchWork(Exception):
    """The searches in a text exceed MAX_SEARCHED_BYTES."""


class Lines:
    """Lines of a UTF-8 text."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._ends = array("I")
        offset = 0
        for line in io.BytesIO(content):
            offset += len(line)
            self._ends.append(offset)
        self._marks: list[bytes] = []
        self._effort = WorkBudget(MAX_SEARCHED_BYTES)

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self._ends)

    def raw(self, first: int, end: int) -> bytes:
        """Return the lines from index `first` to before `end`, with their ends."""
        if first >= end:
            return b""
        return self._content[self._ends[first - 1] if first else 0 : self._ends[end - 1]]

    def find(self, block: Sequence[str], start: int, last: int | None = None) -> int | None:
        """Return the first index from `start` to `last` at which the block begins, else None.

        The block's lines have no line ends. Raises TooMuchWork.
        """
        fitting = len(self) - len(block)
        last = fitting if last is None else min(last, fitting)
        for level in range(len(FORMS)):
            if start > last:
                return None
            index = self._find(level, [FORMS[level](line) for line in block], start, last)
            if index is not None:
                return index
        return None

    def _find(self, level: int, wanted_lines: list[str], start: int, last: int) -> int | None:
        marks = self._marks_of(level)
        needle = array("I", map(_mark, wanted_lines)).tobytes()
        offset, end = start * _WIDTH, (last + len(wanted_lines)) * _WIDTH
        while (position := marks.find(needle, offset, end)) >= 0:
            self._spend(position - offset)
            place, between = divmod(position, _WIDTH)
            if not between and self._is_at(level, wanted_lines, place):
                return place
            offset = position + 1
        self._spend(end - offset)
        return None

    def _spend(self, size: int) -> None:
        stop_if_abandoned()
        if not self._effort.take(size):
            raise TooMuchWork

    def _is_at(self, level: int, wanted_lines: list[str], place: int) -> bool:
        # Two different lines may have the same hash.
        form = FORMS[level]
        return all(
            form(_text(self.raw(at, at + 1))) == line for at, line in enumerate(wanted_lines, place)
        )

    def _marks_of(self, level: int) -> bytes:
        while level >= len(self._marks):
            stop_if_abandoned()
            form = FORMS[len(self._marks)]
            lines = io.BytesIO(self._content)
            marks = array("I", (_mark(form(_text(line))) for line in lines))
            self._marks.append(marks.tobytes())
        return self._marks[level]


def _mark(line: str) -> int:
    return hash(line) & 0xFFFFFFFF


def _text(line: bytes) -> str:
    """Return a line without LF or CR LF; a CR without LF is part of the line."""
    if line.endswith(b"\n"):
        line = line[: -2 if line.endswith(b"\r\n") else -1]
    return line.decode()
