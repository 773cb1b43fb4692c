"""Meanings of a changed transcript, one sentence a change, the gravest first.

one message more: turn/plan/updated after item/started (plan)
field gone: thread.preview in the answer to thread/read
another value: turn.status in turn/completed: "completed" -> "failed"
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from harness.protocol.values import Path, arr, dig, obj, show_path, text
from harness.report.snapshot.alignment import Row, aligned
from harness.report.snapshot.message import VARIES, Transcript, printable
from harness.report.snapshot.stability import same_value
from harness.trace.difference import difference, literal

_SHOWN = 60
_FEW = 2
_ENVELOPE = ("params", "result", "error")


class Kind(IntEnum):
    """The kinds of change, the gravest first."""

    REFUSED = 0
    GONE = 1
    MORE = 2
    ORDER = 3
    FIELD_GONE = 4
    TYPE = 5
    VALUE = 6
    FIELD_NEW = 7
    END = 8


@dataclass(frozen=True, slots=True)
class Change:
    """One change: what it is, where, and in which message, "" where it is one itself."""

    kind: Kind
    words: str
    message: str = ""
    more: str = ""


def meaning(before: Transcript | None, after: Transcript | None) -> list[str]:
    """Sentences about what changed; of a new transcript how much it holds."""
    if before is None:
        number = len(after.messages) if after else 0
        return [f"a new transcript of {_counted(number, 'message')}"]
    if after is None:
        return ["no scenario of this name is played"]
    changes = list(_changes(before, after))
    if not changes:
        return _order_alone(before, after)
    return list(map(printable, _told(changes)))


def headline(sentences: list[str]) -> str:
    """The first sentence, and how many follow."""
    rest = len(sentences) - 1
    return f"{sentences[0]}{f' (+{rest} more)' if rest else ''}"


def _order_alone(before: Transcript, after: Transcript) -> list[str]:
    if before.free != after.free:
        now = "differs from play to play" if after.free else "is now the same in every play"
        return [f"another order: it {now}"]
    if before == after:
        return ["nothing changed"]
    return ["another order: what differs from play to play is other than before"]


def _changes(before: Transcript, after: Transcript) -> Iterator[Change]:
    rows = aligned(before, after)
    answered = {row.label.partition(" of ")[2]: row for row in rows if row.before is None}
    hidden: set[int] = set()
    for row in rows:
        method = row.label.removeprefix("answer to ")
        refusal = answered.get(method) if row.after is None and method != row.label else None
        if refusal is not None:
            hidden |= {id(row), id(refusal)}
            yield Change(Kind.REFUSED, f"{method} is refused now: {_why(refusal)}")
    for row in rows:
        if id(row) not in hidden:
            yield from _of_row(row)
    if before.end != after.end and VARIES not in (before.end, after.end):
        words = f"another end of the conversation: {before.end} -> {after.end}"
        yield Change(Kind.END, words)


def _why(refusal: Row) -> str:
    value = refusal.after.value if refusal.after else None
    return text(dig(value, "error", "message")) or literal(dig(value, "error"), _SHOWN)


def _of_row(row: Row) -> Iterator[Change]:
    who = "the client: " if (row.before or row.after or _nobody()).sent else ""
    label = f"{who}{row.label}"
    place = f" after {_called(row.follows)}" if row.follows else " at the beginning"
    if row.before is None:
        yield Change(Kind.MORE, f"message more: {label}{place}")
        return
    if row.after is None:
        yield Change(Kind.GONE, f"message gone: {label}{place}")
        return
    if row.moved:
        was = f"after {_called(row.followed)}" if row.followed else "at the beginning"
        yield Change(Kind.ORDER, f"another order: {label} now comes{place}, not {was}")
    yield from _of_values((), row.before.value, row.after.value, f"{who}{_called(row.label)}")


def _nobody() -> Any:
    raise AssertionError("a row has a message before, after, or both")


def _called(label: str) -> str:
    return f"the {label}" if label.startswith(("answer to ", "refusal of ")) else label


def _of_values(path: Path, before: Any, after: Any, message: str) -> Iterator[Change]:
    if same_value(before, after) or after == VARIES:
        return
    name = _shown(path)
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = obj(before), obj(after)  # pyright: ignore[reportUnknownArgumentType]
        for member in old:
            if member in new:
                yield from _of_values((*path, member), old[member], new[member], message)
            else:
                yield Change(Kind.FIELD_GONE, f"field gone: {_shown((*path, member))}", message)
        for member in new:
            if member not in old:
                words = f"new field: {_shown((*path, member))}"
                yield Change(Kind.FIELD_NEW, words, message, f": {literal(new[member], _SHOWN)}")
    elif isinstance(before, list) and isinstance(after, list):
        one, other = arr(before), arr(after)  # pyright: ignore[reportUnknownArgumentType]
        if len(one) != len(other):
            words = f"another number of elements: {name}"
            yield Change(Kind.VALUE, words, message, f": {len(one)} -> {len(other)}")
        for index, (old, new) in enumerate(zip(one, other, strict=False)):
            yield from _of_values((*path, index), old, new, message)
    elif _type(before) != _type(after):
        sides = f": {literal(before, _SHOWN)} -> {literal(after, _SHOWN)}"
        yield Change(Kind.TYPE, f"another type: {name}", message, sides)
    else:
        one, other = literal(before, _SHOWN), literal(after, _SHOWN)
        if "more…" in one + other:
            told = difference(before, after, _SHOWN)
            one, other = told.expected, told.actual
        sides = f": {one} -> {other}"
        yield Change(Kind.VALUE, f"another value: {name}", message, sides)


def _shown(path: Path) -> str:
    """The path within params, a result or an error; the method says which."""
    inside = path[1:] if len(path) > 1 and path[0] in _ENVELOPE else path
    return show_path(inside)


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _told(changes: Iterable[Change]) -> Iterator[str]:
    """A sentence for each change; what happened alike in several messages is one."""
    groups: dict[tuple[Kind, str, str], list[str]] = {}
    for change in changes:
        groups.setdefault((change.kind, change.words, change.more), []).append(change.message)
    for (kind, words, more), messages in sorted(groups.items(), key=lambda item: item[0][0]):
        if kind in (Kind.GONE, Kind.MORE):
            number = len(messages)
            yield (
                f"one {words}"
                if number == 1
                else f"{number} {words.replace('message', 'messages', 1)}"
            )
        elif messages[0]:
            yield f"{words} in {_listed(messages)}{more}"
        else:
            yield words


def _listed(messages: list[str]) -> str:
    names = list(dict.fromkeys(messages))
    if len(messages) == 1:
        return names[0]
    rest = len(names) - _FEW
    shown = ", ".join(names[:_FEW]) + (f" and {rest} more" if rest > 0 else "")
    return f"{shown} ({_counted(len(messages), 'message')})"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
