"""The two sides of a changed transcript, line by line: what a reader sees of each message.

Only messages that differ are shown, as JSON over several lines, with what stands around the
difference.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Any, Final

from harness.protocol.values import arr, obj
from harness.report.snapshot.alignment import Row, aligned
from harness.report.snapshot.message import VARIES, Message, Transcript, dumped, printable

_AROUND: Final = 2
_MAX_MESSAGE_LINES: Final = 40
"""So many lines of one message are shown."""


class Mark(StrEnum):
    """The kinds of line: the text is the sign in a unified diff."""

    HEAD = "@"
    SAME = " "
    GONE = "-"
    NEW = "+"
    CHANGED = "~"
    LEFT_OUT = "…"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of both sides; one that is gone or new is on one of them."""

    mark: Mark
    before: str = ""
    after: str = ""


def compared(before: Transcript | None, after: Transcript | None) -> Iterator[Line]:
    """Give the differences of two transcripts; all lines if there is one only."""
    if before is None or after is None:
        whole, mark = (after, Mark.NEW) if before is None else (before, Mark.GONE)
        for message in whole.messages if whole else ():
            text = message.line
            yield Line(mark, text, "") if mark is Mark.GONE else Line(mark, "", text)
        return
    same = 0
    for row in aligned(before, after):
        lines = list(_of_row(row))
        if not lines:
            same += 1
            continue
        yield from _as_before(same)
        same = 0
        yield from lines
    yield from _as_before(same)
    if before.end != after.end:
        yield Line(Mark.CHANGED, f"end: {before.end}", f"end: {after.end}")


def unified(lines: Iterable[Line]) -> Iterator[str]:
    """The lines as those of a unified diff."""
    for line in lines:
        if line.mark is Mark.CHANGED:
            yield f"-{line.before}"
            yield f"+{line.after}"
        elif line.mark is Mark.HEAD:
            yield f"@@ {line.before} @@"
        else:
            sign = " " if line.mark is Mark.LEFT_OUT else str(line.mark)
            yield f"{sign}{line.before or line.after}"


def _as_before(number: int) -> Iterator[Line]:
    if number:
        words = f"… {number} message{'' if number == 1 else 's'} as before"
        yield Line(Mark.LEFT_OUT, words, words)


def _of_row(row: Row) -> Iterator[Line]:
    before = _pretty(row.before) if row.before else []
    after = _pretty(_levelled(row.before, row.after)) if row.after else []
    if before == after and not row.moved:
        return
    one = row.after or row.before
    arrow = "->" if one is not None and one.sent else "<-"
    client = f"client {one.client}, " if one is not None and one.client else ""
    yield Line(Mark.HEAD, f"{client}{arrow} {printable(row.label)}{_place(row)}")
    yield from _limited(list(_lines(before, after)))


def _place(row: Row) -> str:
    after = f"after {printable(row.follows)}" if row.follows else "at the beginning"
    if row.moved:
        was = f"after {printable(row.followed)}" if row.followed else "at the beginning"
        return f", now {after}, not {was}"
    if row.after is None:
        return f", gone {after}"
    return f", new {after}" if row.before is None else ""


def _pretty(message: Message) -> list[str]:
    lines = dumped(message.value, indent=2).split("\n")
    return ["(any number)", *lines] if message.any_number else lines


def _levelled(before: Message | None, after: Message | None) -> Message:
    """The later message, with `<varies>` wherever the earlier one has it."""
    assert after is not None
    if before is None:
        return after
    value = _level(before.value, after.value)
    return Message(after.sent, value, after.client, after.garbled, after.any_number)


def _level(before: Any, after: Any) -> Any:
    if isinstance(before, str) and before == VARIES:
        return before
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = obj(before), obj(after)  # pyright: ignore[reportUnknownArgumentType]
        return {
            name: _level(old[name], value) if name in old else value for name, value in new.items()
        }
    if isinstance(before, list) and isinstance(after, list):
        one, other = arr(before), arr(after)  # pyright: ignore[reportUnknownArgumentType]
        kept = [_level(old, new) for old, new in zip(one, other, strict=False)]
        return kept + other[len(kept) :]
    return after


def _lines(before: Sequence[str], after: Sequence[str]) -> Iterator[Line]:
    if not before or not after:
        yield from (Line(Mark.GONE, one, "") for one in before)
        yield from (Line(Mark.NEW, "", one) for one in after)
        return
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(_AROUND):
        for tag, i1, i2, j1, j2 in group:
            one, other = before[i1:i2], after[j1:j2]
            if tag == "equal":
                yield from (Line(Mark.SAME, line, line) for line in one)
                continue
            both = min(len(one), len(other))
            yield from map(Line, [Mark.CHANGED] * both, one, other)
            yield from (Line(Mark.GONE, line, "") for line in one[both:])
            yield from (Line(Mark.NEW, "", line) for line in other[both:])


def _limited(lines: list[Line]) -> Iterator[Line]:
    yield from lines[:_MAX_MESSAGE_LINES]
    rest = len(lines) - _MAX_MESSAGE_LINES
    if rest > 0:
        words = f"… {rest} line{'' if rest == 1 else 's'} more of this message"
        yield Line(Mark.LEFT_OUT, words, words)
