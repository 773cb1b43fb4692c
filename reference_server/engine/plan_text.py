"""A proposed plan within the text of an answer, told apart while the text streams.

Here lives where the plan begins and ends, without any I/O: a line `<proposed_plan>` and a line
`</proposed_plan>`, which belong to neither. The document has the plan item and not how a model
makes one; these lines are what the shipping server looks for. A plan that is not closed goes on to
the end.
"""

from enum import Enum

OPEN, CLOSE = "<proposed_plan>", "</proposed_plan>"
LONGEST_LINE = 200
"""Characters of such a line, with the white space at its end; a longer one is text."""


class Side(Enum):
    """What a piece of text belongs to."""

    ANSWER = "answer"
    PLAN = "plan"


Piece = tuple[Side, str]


class PlanSplitter:
    """Takes the text in pieces of any length; holds back what may still become one of the lines."""

    def __init__(self) -> None:
        self.side = Side.ANSWER
        self._held = ""
        self._at_line_start = True

    def feed(self, text: str) -> list[Piece]:
        """Give what the next piece adds to either side, in order."""
        if not self._held and "<" not in text:
            # Neither line can begin here; most pieces of most answers go this way.
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
        """Give what was held back, now that the text is at its end."""
        held, self._held = self._held, ""
        if not held:
            return []
        if self._is_tag(held, whole=True):
            self._turn()
            return []
        return [(self.side, held)]

    def _is_tag(self, line: str, *, whole: bool) -> bool:
        """Tell whether a line is the one that is looked for, or may become it."""
        if len(line) > LONGEST_LINE:
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
