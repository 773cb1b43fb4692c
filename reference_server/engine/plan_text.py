"""Separating a proposed plan from the rest of an answer while the answer streams.

A plan stands between a line `<proposed_plan>` and a line `</proposed_plan>`; the two lines belong
neither to the plan nor to the rest. A plan without its last line goes on to the end. The document
has the plan item, but not how a model makes one; the lines are those that the shipping server looks
for. No I/O here.
"""

from enum import Enum

OPEN, CLOSE = "<proposed_plan>", "</proposed_plan>"
MAX_LINE_CHARACTERS = 200
"""Characters of such a line, with white space after it; a longer line is ordinary text."""


class Side(Enum):
    """The sides that a piece of text can belong to."""

    ANSWER = "answer"
    PLAN = "plan"


Piece = tuple[Side, str]


class PlanSplitter:
    """Takes the text in pieces of any length; holds back what may be the start of such a line."""

    def __init__(self) -> None:
        self.side = Side.ANSWER
        self._held = ""
        self._at_line_start = True

    def feed(self, text: str) -> list[Piece]:
        """Return what a piece adds to the plan and to the rest, in order."""
        if not self._held and "<" not in text:
            # No such line can begin here: the usual case.
            if text:
                self._at_line_start = text.endswith("\n")
            return [(self.side, text)]
        data, self._held = self._held + text, ""
        found = _Pieces()
        at = since = 0
        while at < len(data):
            newline = data.find("\n", at)
            end = len(data) if newline < 0 else newline + 1
            whole = newline >= 0
            if self._at_line_start and self._is_tag(data[at : end - whole], whole=whole):
                found.add(self.side, data[since:at])
                since = end
                if not whole:
                    self._held = data[at:]
                    break
                self._turn()
            else:
                self._at_line_start = whole
            at = end
        found.add(self.side, data[since:])
        return found.joined()

    def finish(self) -> list[Piece]:
        """Return what was held back, now that the text is at its end."""
        held, self._held = self._held, ""
        if not held:
            return []
        if self._is_tag(held, whole=True):
            self._turn()
            return []
        return [(self.side, held)]

    def _is_tag(self, line: str, *, whole: bool) -> bool:
        """Return whether a line is the expected one of the two, or, if not whole, may become it."""
        if len(line) > MAX_LINE_CHARACTERS:
            return False
        tag = OPEN if self.side is Side.ANSWER else CLOSE
        line = line.removesuffix("\r")
        return line.rstrip() == tag or (not whole and tag.startswith(line))

    def _turn(self) -> None:
        self.side = Side.PLAN if self.side is Side.ANSWER else Side.ANSWER


class _Pieces:
    """Pieces in order, those of one side that follow each other as one."""

    def __init__(self) -> None:
        self._found: list[tuple[Side, list[str]]] = []

    def add(self, side: Side, text: str) -> None:
        if not text:
            return
        if not self._found or self._found[-1][0] is not side:
            self._found.append((side, []))
        self._found[-1][1].append(text)

    def joined(self) -> list[Piece]:
        return [(side, "".join(parts)) for side, parts in self._found]


def split(text: str) -> list[Piece]:
    """Split a whole text."""
    splitter = PlanSplitter()
    return [*splitter.feed(text), *splitter.finish()]
