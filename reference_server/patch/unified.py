"""Unified hunks of two texts.

Here lives what `diff -u` writes below the two file names. What the files are called and what became
of them is not known here (diff).
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

_CONTEXT = 3
_NO_NEWLINE = "\n\\ No newline at end of file\n"
# difflib's time grows with the product of both sides; beyond this, what differs is one hunk.
_MOST_PAIRS = 4_000_000

_Opcode = tuple[str, int, int, int, int]


def split_lines(text: str) -> list[str]:
    """Split after newlines only; `str.splitlines` also does at form feeds and others."""
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def unified_hunks(before: str, after: str) -> str:
    """The hunks, each with three lines of context; "" for equal texts."""
    if before == after:
        return ""
    old, new = split_lines(before), split_lines(after)
    groups = _Opcodes(_opcodes(old, new)).get_grouped_opcodes(_CONTEXT)
    return "".join(line for group in groups for line in _hunk(group, old, new))


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[_Opcode]:
    """The steps from the old lines to the new ones."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    most = shorter - head
    tail = next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)
    # Only what lies between the first difference and the last one is compared.
    old_end, new_end = len(old) - tail, len(new) - tail
    opcodes: list[_Opcode] = [("equal", 0, head, 0, head)]
    if (old_end - head) * (new_end - head) > _MOST_PAIRS:
        opcodes.append(("replace", head, old_end, head, new_end))
    else:
        middle = SequenceMatcher(None, old[head:old_end], new[head:new_end])
        opcodes += [
            (tag, i1 + head, i2 + head, j1 + head, j2 + head)
            for tag, i1, i2, j1, j2 in middle.get_opcodes()
        ]
    opcodes.append(("equal", old_end, len(old), new_end, len(new)))
    return opcodes


class _Opcodes(SequenceMatcher[str]):
    """Opcodes that are known, for their grouping."""

    def __init__(self, opcodes: list[_Opcode]) -> None:
        super().__init__()
        self._known = opcodes

    def get_opcodes(self) -> list[_Opcode]:  # type: ignore[override]
        """Give them."""
        return list(self._known)


def _hunk(group: Sequence[_Opcode], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    first, last = group[0], group[-1]
    yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            yield from _marked(" ", old[i1:i2])
        else:
            yield from _marked("-", old[i1:i2])
            yield from _marked("+", new[j1:j2])


def _range(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(end)
    # An empty range names the line before it.
    return f"{start + 1 if length else start},{length}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + (line if line.endswith("\n") else line + _NO_NEWLINE)
