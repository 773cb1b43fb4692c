"""The two sides of a changed transcript, line by line: the reader's view of each message.

Only messages that differ are shown, as JSON over several lines, with the lines around the
difference.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Any, Final

from harness.protocol.values import arr, obj
from harness.report.snapshot.alignment import Row, align
from harness.report.snapshot.message import (
    VARIES,
    Message,
    Transcript,
    dump_json,
    escape_unprintable,
)

_CONTEXT_LINES: Final = 2
_MAX_MESSAGE_LINES: Final = 40
"""The lines of one message that are shown."""


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
    """A line before and after; a removed or new one has "" on the other side."""

    mark: Mark
    before: str = ""
    after: str = ""


def diff_lines(before: Transcript | None, after: Transcript | None) -> Iterator[Line]:
    """Yield the differences of two transcripts; all lines if there is only one."""
    if before is None or after is None:
        transcript, mark = (after, Mark.NEW) if before is None else (before, Mark.GONE)
        for message in transcript.messages if transcript else ():
            text = message.line
            yield Line(mark, text, "") if mark is Mark.GONE else Line(mark, "", text)
        return
    same = 0
    for row in align(before, after):
        lines = list(_row_lines(row))
        if not lines:
            same += 1
            continue
        yield from _unchanged_lines(same)
        same = 0
        yield from lines
    yield from _unchanged_lines(same)
    if before.end != after.end:
        yield Line(Mark.CHANGED, f"end: {before.end}", f"end: {after.end}")


def unified_lines(lines: Iterable[Line]) -> Iterator[str]:
    """Yield the lines as those of a unified diff."""
    for line in lines:
        if line.mark is Mark.CHANGED:
            yield f"-{line.before}"
            yield f"+{line.after}"
        elif line.mark is Mark.HEAD:
            yield f"@@ {line.before} @@"
        else:
            sign = " " if line.mark is Mark.LEFT_OUT else str(line.mark)
            yield f"{sign}{line.before or line.after}"


def _unchanged_lines(number: int) -> Iterator[Line]:
    if number:
        words = f"… {number} message{'' if number == 1 else 's'} as before"
        yield Line(Mark.LEFT_OUT, words, words)


def _row_lines(row: Row) -> Iterator[Line]:
    before = _message_lines(row.before) if row.before else []
    after = _message_lines(_with_varying(row.before, row.after)) if row.after else []
    if before == after and not row.is_moved:
        return
    message = row.after or row.before
    arrow = "->" if message is not None and message.is_sent else "<-"
    client = f"client {message.client}, " if message is not None and message.client else ""
    yield Line(Mark.HEAD, f"{client}{arrow} {escape_unprintable(row.label)}{_place_words(row)}")
    yield from _limit(list(_diff_message_lines(before, after)))


def _place_words(row: Row) -> str:
    after = (
        f"after {escape_unprintable(row.predecessor)}" if row.predecessor else "at the beginning"
    )
    if row.is_moved:
        was = (
            f"after {escape_unprintable(row.old_predecessor)}"
            if row.old_predecessor
            else "at the beginning"
        )
        return f", now {after}, not {was}"
    if row.after is None:
        return f", gone {after}"
    return f", new {after}" if row.before is None else ""


def _message_lines(message: Message) -> list[str]:
    lines = dump_json(message.value, indent=2).split("\n")
    return ["(any number)", *lines] if message.any_number else lines


def _with_varying(before: Message | None, after: Message | None) -> Message:
    """Return the later message, with `<varies>` wherever the earlier one has it."""
    assert after is not None
    if before is None:
        return after
    value = _copy_varying(before.value, after.value)
    return Message(after.is_sent, value, after.client, after.is_garbled, after.any_number)


def _copy_varying(before: Any, after: Any) -> Any:
    if isinstance(before, str) and before == VARIES:
        return before
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = obj(before), obj(after)  # pyright: ignore[reportUnknownArgumentType]
        return {
            name: _copy_varying(old[name], value) if name in old else value
            for name, value in new.items()
        }
    if isinstance(before, list) and isinstance(after, list):
        old_elements, new_elements = arr(before), arr(after)  # pyright: ignore[reportUnknownArgumentType]
        common = [
            _copy_varying(old, new) for old, new in zip(old_elements, new_elements, strict=False)
        ]
        return common + new_elements[len(common) :]
    return after


def _diff_message_lines(before: Sequence[str], after: Sequence[str]) -> Iterator[Line]:
    if not before or not after:
        yield from (Line(Mark.GONE, line, "") for line in before)
        yield from (Line(Mark.NEW, "", line) for line in after)
        return
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT_LINES):
        for tag, i1, i2, j1, j2 in group:
            old_lines, new_lines = before[i1:i2], after[j1:j2]
            if tag == "equal":
                yield from (Line(Mark.SAME, line, line) for line in old_lines)
                continue
            both = min(len(old_lines), len(new_lines))
            yield from map(Line, [Mark.CHANGED] * both, old_lines, new_lines)
            yield from (Line(Mark.GONE, line, "") for line in old_lines[both:])
            yield from (Line(Mark.NEW, "", line) for line in new_lines[both:])


def _limit(lines: list[Line]) -> Iterator[Line]:
    yield from lines[:_MAX_MESSAGE_LINES]
    hidden = len(lines) - _MAX_MESSAGE_LINES
    if hidden > 0:
        words = f"… {hidden} line{'' if hidden == 1 else 's'} more of this message"
        yield Line(Mark.LEFT_OUT, words, words)
