"""Unified hunks of two texts, as `diff -u` writes them below the file names.

`diff` adds file names and modes.
"""

from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher

from reference_server.patch.work_budget import WorkBudget, stop_if_abandoned

MAX_CHARACTERS = 2**20
"""Maximum differing characters, on both sides together; beyond, no hunks are made."""
_CONTEXT = 3
_NO_NEWLINE = "\n\\ No newline at end of file\n"
# The time of difflib grows with the product of both sides; beyond this, the whole difference is one
# hunk.
_MAX_PAIRS = 4_000_000
PAIRS_OF_ALL = 4 * _MAX_PAIRS
"""Maximum pairs of lines compared for all files that are shown together."""

_Opcode = tuple[str, int, int, int, int]


class TooMuchToShow(Exception):
    """The texts differ by more than MAX_CHARACTERS."""


def split_lines(text: str) -> list[str]:
    """Return the lines with their newlines; unlike `str.splitlines`, split only at newlines."""
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def unified_hunks(before: str, after: str, budget: WorkBudget | None = None) -> str:
    """Return the hunks, each with three lines of context; "" for equal texts. Raises TooMuchToShow.

    `budget`: the pairs of lines that may still be compared, for several texts together.
    """
    if before == after:
        return ""
    stop_if_abandoned()
    head, tail = _equal_ends(before, after)
    old_end, new_end = len(before) - tail, len(after) - tail
    if old_end + new_end - 2 * head > MAX_CHARACTERS:
        raise TooMuchToShow
    # Only the lines from the first difference to the last are split and compared.
    lines_before = split_lines(before[_lines_back(before, head) : head])
    old, new = split_lines(before[head:old_end]), split_lines(after[head:new_end])
    lines_after = split_lines(before[old_end : _lines_on(before, old_end)])
    opcodes = _opcodes(
        old, new, len(lines_before), len(lines_after), budget or WorkBudget(_MAX_PAIRS)
    )
    first = before.count("\n", 0, head) - len(lines_before)
    groups = _Opcodes(opcodes).get_grouped_opcodes(_CONTEXT)
    old, new = lines_before + old + lines_after, lines_before + new + lines_after
    return "".join(line for group in groups for line in _hunk(group, old, new, first))


def _equal_ends(before: str, after: str) -> tuple[int, int]:
    """Return the number of equal characters at the beginning and at the end, in whole lines."""
    shorter = min(len(before), len(after))
    same = _longest(shorter, lambda low, high: before[low:high] == after[low:high])
    head = before.rfind("\n", 0, same) + 1
    old, new = len(before), len(after)
    same = _longest(
        shorter - head,
        lambda low, high: before[old - high : old - low] == after[new - high : new - low],
    )
    if not (_begins_a_line(before, old - same) and _begins_a_line(after, new - same)):
        newline = before.find("\n", old - same)
        same = 0 if newline < 0 else old - newline - 1
    return head, same


def _begins_a_line(text: str, offset: int) -> bool:
    return offset == 0 or text[offset - 1] == "\n"


def _longest(upper: int, equal: Callable[[int, int], bool]) -> int:
    """Return the largest length up to which texts are equal; `equal(low, high)` compares a part."""
    low, high = 0, upper
    while low < high:
        middle = (low + high + 1) // 2
        if equal(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _lines_back(text: str, offset: int) -> int:
    for _ in range(_CONTEXT + 1):
        offset = text.rfind("\n", 0, offset)
        if offset < 0:
            return 0
    return offset + 1


def _lines_on(text: str, offset: int) -> int:
    for _ in range(_CONTEXT):
        offset = text.find("\n", offset) + 1
        if not offset:
            return len(text)
    return offset


def _opcodes(
    old: Sequence[str], new: Sequence[str], above: int, below: int, budget: WorkBudget
) -> list[_Opcode]:
    """Return difflib's opcodes for the lines, between `above` and `below` equal lines."""
    middle: Sequence[_Opcode] = [("replace", 0, len(old), 0, len(new))]
    pairs = len(old) * len(new)
    if pairs <= _MAX_PAIRS and budget.take(pairs):
        middle = SequenceMatcher(None, old, new).get_opcodes()
    old_end, new_end = above + len(old), above + len(new)
    return [
        ("equal", 0, above, 0, above),
        *((tag, i1 + above, i2 + above, j1 + above, j2 + above) for tag, i1, i2, j1, j2 in middle),
        ("equal", old_end, old_end + below, new_end, new_end + below),
    ]


class _Opcodes(SequenceMatcher[str]):
    """Matcher with given opcodes, used for its grouping."""

    def __init__(self, opcodes: list[_Opcode]) -> None:
        super().__init__()
        self._opcodes = opcodes

    def get_opcodes(self) -> list[_Opcode]:  # type: ignore[override]
        """Return the given opcodes."""
        return list(self._opcodes)


def _hunk(
    group: Sequence[_Opcode], old: Sequence[str], new: Sequence[str], before: int
) -> Iterator[str]:
    first, last = group[0], group[-1]
    old_range = _range(before + first[1], before + last[2])
    yield f"@@ -{old_range} +{_range(before + first[3], before + last[4])} @@\n"
    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            yield from _prefix_lines(" ", old[i1:i2])
        else:
            yield from _prefix_lines("-", old[i1:i2])
            yield from _prefix_lines("+", new[j1:j2])


def _range(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(end)
    # An empty range names the line before it.
    return f"{start + 1 if length else start},{length}"


def _prefix_lines(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + (line if line.endswith("\n") else line + _NO_NEWLINE)
