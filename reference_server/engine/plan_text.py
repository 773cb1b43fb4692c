"""Separation of a proposed plan from the rest of an answer while the answer streams, without I/O.

A plan stands between a tag line `<proposed_plan>` and a tag line `</proposed_plan>`, which belong
neither to the plan nor to the rest. A plan without its last line extends to the end. The
specification has the plan item, but not how a model makes one; the tag lines are the shipping
server's.
"""

from enum import Enum

OPEN, CLOSE = "<proposed_plan>", "</proposed_plan>"
MAX_LINE_CHARACTERS = 200
"""Maximum characters of a tag line, with trailing white space; a longer line is ordinary text."""


class Side(Enum):
    """Part of an answer to which a piece of text belongs."""

    ANSWER = "answer"
    PLAN = "plan"


Piece = tuple[Side, str]


class PlanSplitter:
    """Splitter of streamed text; it holds back text that may be the start of a tag line."""

    def __init__(self) -> None:
        self.side = Side.ANSWER
        self._pending = ""
        self._at_line_start = True

    def feed(self, text: str) -> list[Piece]:
        """Return the pieces that a text adds to the plan and to the rest, in order."""
        if not self._pending and "<" not in text:
            # The usual case: no tag line can begin here.
            if text:
                self._at_line_start = text.endswith("\n")
            return [(self.side, text)]
        data, self._pending = self._pending + text, ""
        pieces = _Pieces()
        position = start = 0
        while position < len(data):
            newline = data.find("\n", position)
            end = len(data) if newline < 0 else newline + 1
            is_complete = newline >= 0
            if self._at_line_start and self._is_tag(
                data[position : end - is_complete], is_complete=is_complete
            ):
                pieces.add(self.side, data[start:position])
                start = end
                if not is_complete:
                    self._pending = data[position:]
                    break
                self._switch_side()
            else:
                self._at_line_start = is_complete
            position = end
        pieces.add(self.side, data[start:])
        return pieces.merge()

    def finish(self) -> list[Piece]:
        """End the text and return the piece that was held back, if any."""
        pending, self._pending = self._pending, ""
        if not pending:
            return []
        if self._is_tag(pending, is_complete=True):
            self._switch_side()
            return []
        return [(self.side, pending)]

    def _is_tag(self, line: str, *, is_complete: bool) -> bool:
        """Return whether a line is the expected tag line or, if incomplete, may become it."""
        if len(line) > MAX_LINE_CHARACTERS:
            return False
        tag = OPEN if self.side is Side.ANSWER else CLOSE
        line = line.removesuffix("\r")
        return line.rstrip() == tag or (not is_complete and tag.startswith(line))

    def _switch_side(self) -> None:
        self.side = Side.PLAN if self.side is Side.ANSWER else Side.ANSWER


class _Pieces:
    """Pieces in order; adjacent pieces of one side are merged."""

    def __init__(self) -> None:
        self._runs: list[tuple[Side, list[str]]] = []

    def add(self, side: Side, text: str) -> None:
        if not text:
            return
        if not self._runs or self._runs[-1][0] is not side:
            self._runs.append((side, []))
        self._runs[-1][1].append(text)

    def merge(self) -> list[Piece]:
        return [(side, "".join(parts)) for side, parts in self._runs]


def split(text: str) -> list[Piece]:
    """Return the pieces of a whole text."""
    splitter = PlanSplitter()
    return [*splitter.feed(text), *splitter.finish()]
