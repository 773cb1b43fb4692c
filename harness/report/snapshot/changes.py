"""Meanings of a changed transcript, one sentence a change, the most severe first.

one message more: turn/plan/updated after item/started (plan)
field gone: thread.preview in the answer to thread/read
another value: turn.status in turn/completed: "completed" -> "failed"
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from harness.protocol.values import Path, arr, dig, obj, show_path, text
from harness.report.snapshot.alignment import Row, align
from harness.report.snapshot.message import VARIES, Transcript, escape_unprintable
from harness.report.snapshot.stability import same_value
from harness.trace.difference import difference, literal

_MAX_VALUE_CHARACTERS = 60
_MAX_MESSAGES_LISTED = 2
_ENVELOPE = ("params", "result", "error")


class Kind(IntEnum):
    """The kinds of change, the most severe first."""

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
    """One change; `message` is "" if it is about a whole message, `more` has old and new values."""

    kind: Kind
    words: str
    message: str = ""
    more: str = ""


def describe_changes(before: Transcript | None, after: Transcript | None) -> list[str]:
    """Return sentences about the changes; of a new transcript its length."""
    if before is None:
        number = len(after.messages) if after else 0
        return [f"a new transcript of {_count(number, 'message')}"]
    if after is None:
        return ["no scenario of this name is played"]
    changes = list(_changes(before, after))
    if not changes:
        return _order_sentences(before, after)
    return list(map(escape_unprintable, _sentences(changes)))


def headline(sentences: list[str]) -> str:
    """Return the first sentence, and the number of the others."""
    other_count = len(sentences) - 1
    return f"{sentences[0]}{f' (+{other_count} more)' if other_count else ''}"


def _order_sentences(before: Transcript, after: Transcript) -> list[str]:
    if before.free != after.free:
        now = "differs from play to play" if after.free else "is now the same in every play"
        return [f"another order: it {now}"]
    if before == after:
        return ["nothing changed"]
    return ["another order: what differs from play to play is other than before"]


def _changes(before: Transcript, after: Transcript) -> Iterator[Change]:
    rows = align(before, after)
    answered = {row.label.partition(" of ")[2]: row for row in rows if row.before is None}
    hidden: set[int] = set()
    for row in rows:
        method = row.label.removeprefix("answer to ")
        refusal = answered.get(method) if row.after is None and method != row.label else None
        if refusal is not None:
            hidden |= {id(row), id(refusal)}
            yield Change(Kind.REFUSED, f"{method} is refused now: {_refusal_reason(refusal)}")
    for row in rows:
        if id(row) not in hidden:
            yield from _row_changes(row)
    if before.end != after.end and VARIES not in (before.end, after.end):
        words = f"another end of the conversation: {before.end} -> {after.end}"
        yield Change(Kind.END, words)


def _refusal_reason(refusal: Row) -> str:
    value = refusal.after.value if refusal.after else None
    return text(dig(value, "error", "message")) or literal(
        dig(value, "error"), _MAX_VALUE_CHARACTERS
    )


def _row_changes(row: Row) -> Iterator[Change]:
    who = "the client: " if (row.before or row.after or _no_message()).is_sent else ""
    label = f"{who}{row.label}"
    place = f" after {_with_article(row.predecessor)}" if row.predecessor else " at the beginning"
    if row.before is None:
        yield Change(Kind.MORE, f"message more: {label}{place}")
        return
    if row.after is None:
        yield Change(Kind.GONE, f"message gone: {label}{place}")
        return
    if row.is_moved:
        was = (
            f"after {_with_article(row.old_predecessor)}"
            if row.old_predecessor
            else "at the beginning"
        )
        yield Change(Kind.ORDER, f"another order: {label} now comes{place}, not {was}")
    yield from _value_changes(
        (), row.before.value, row.after.value, f"{who}{_with_article(row.label)}"
    )


def _no_message() -> Any:
    raise AssertionError("a row has a message before, after, or both")


def _with_article(label: str) -> str:
    return f"the {label}" if label.startswith(("answer to ", "refusal of ")) else label


def _value_changes(path: Path, before: Any, after: Any, message: str) -> Iterator[Change]:
    if same_value(before, after) or after == VARIES:
        return
    name = _short_path(path)
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = obj(before), obj(after)  # pyright: ignore[reportUnknownArgumentType]
        for member in old:
            if member in new:
                yield from _value_changes((*path, member), old[member], new[member], message)
            else:
                yield Change(
                    Kind.FIELD_GONE, f"field gone: {_short_path((*path, member))}", message
                )
        for member in new:
            if member not in old:
                words = f"new field: {_short_path((*path, member))}"
                yield Change(
                    Kind.FIELD_NEW,
                    words,
                    message,
                    f": {literal(new[member], _MAX_VALUE_CHARACTERS)}",
                )
    elif isinstance(before, list) and isinstance(after, list):
        old_elements, new_elements = arr(before), arr(after)  # pyright: ignore[reportUnknownArgumentType]
        if len(old_elements) != len(new_elements):
            words = f"another number of elements: {name}"
            lengths = f": {len(old_elements)} -> {len(new_elements)}"
            yield Change(Kind.VALUE, words, message, lengths)
        for index, (old, new) in enumerate(zip(old_elements, new_elements, strict=False)):
            yield from _value_changes((*path, index), old, new, message)
    elif _type(before) != _type(after):
        sides = (
            f": {literal(before, _MAX_VALUE_CHARACTERS)} -> {literal(after, _MAX_VALUE_CHARACTERS)}"
        )
        yield Change(Kind.TYPE, f"another type: {name}", message, sides)
    else:
        was, now = literal(before, _MAX_VALUE_CHARACTERS), literal(after, _MAX_VALUE_CHARACTERS)
        if "more…" in was + now:
            diff = difference(before, after, _MAX_VALUE_CHARACTERS)
            was, now = diff.expected, diff.actual
        sides = f": {was} -> {now}"
        yield Change(Kind.VALUE, f"another value: {name}", message, sides)


def _short_path(path: Path) -> str:
    """Return the path within params, a result or an error, whose method is named anyway."""
    inside = path[1:] if len(path) > 1 and path[0] in _ENVELOPE else path
    return show_path(inside)


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _sentences(changes: Iterable[Change]) -> Iterator[str]:
    """Yield a sentence for each change; the same change in several messages is one."""
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
            yield f"{words} in {_list_messages(messages)}{more}"
        else:
            yield words


def _list_messages(messages: list[str]) -> str:
    names = list(dict.fromkeys(messages))
    if len(messages) == 1:
        return names[0]
    hidden = len(names) - _MAX_MESSAGES_LISTED
    names_shown = ", ".join(names[:_MAX_MESSAGES_LISTED]) + (
        f" and {hidden} more" if hidden > 0 else ""
    )
    return f"{names_shown} ({_count(len(messages), 'message')})"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
