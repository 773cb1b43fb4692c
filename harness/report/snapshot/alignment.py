"""Pairs of messages of two transcripts, and their names made the same.

A message more shifts the numbers of all names after it: `<item 3>` is `<item 4>` from there on.
Here the names of the earlier transcript are changed to those that the later one has in the same
places, so that only what truly differs does.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from harness.protocol.values import arr, obj
from harness.report.snapshot.message import Message, Transcript, labels
from harness.report.snapshot.stability import floated, floating, freed

_NAME = re.compile(r"<(thread|turn|item|request|cursor|id) (\d+)>")


@dataclass(frozen=True, slots=True)
class Row:
    """A message before and after, None where it was not there; `label` is what it is called.

    `follows` is what it stands after in the later transcript, of one that is gone in the earlier;
    "" at the beginning. One that `moved` is in both, at another place; then `followed` is what it
    stood after.
    """

    label: str
    before: Message | None
    after: Message | None
    follows: str = ""
    moved: bool = False
    followed: str = ""


def aligned(before: Transcript, after: Transcript) -> list[Row]:
    """The messages of both, in the order of the later one, those that are gone where they were."""
    if before.free or after.free:
        before, after = freed(before), freed(after)
    loose = floating(before) | floating(after)
    before, after = floated(before, loose), floated(after, loose)
    old, new = list(labels(before.messages)), list(labels(after.messages))
    rows = _rows(before, after, old, new)
    if not after.free:
        rows = _with_moves(rows)
    return _renamed(rows)


def _rows(before: Transcript, after: Transcript, old: list[str], new: list[str]) -> list[Row]:
    one = [(m.client, m.sent, label) for m, label in zip(before.messages, old, strict=True)]
    other = [(m.client, m.sent, label) for m, label in zip(after.messages, new, strict=True)]
    rows: list[Row] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag == "equal":
            rows += [
                Row(new[j], before.messages[i], after.messages[j], _at(new, j - 1))
                for i, j in zip(range(i1, i2), range(j1, j2), strict=True)
            ]
            continue
        rows += [Row(old[i], before.messages[i], None, _at(old, i - 1)) for i in range(i1, i2)]
        rows += [Row(new[j], None, after.messages[j], _at(new, j - 1)) for j in range(j1, j2)]
    return rows


def _at(names: Sequence[str], place: int) -> str:
    return names[place] if place >= 0 else ""


def _with_moves(rows: list[Row]) -> list[Row]:
    """One message that is gone and another of its kind that is new are one that moved."""
    found = list(rows)
    gone = [row for row in rows if row.after is None]
    for row in [row for row in rows if row.before is None]:
        for other in gone:
            if _kind(other) == _kind(row):
                whole = Row(row.label, other.before, row.after, row.follows, True, other.follows)
                found[found.index(row)] = whole
                found.remove(other)
                gone.remove(other)
                break
    return found


def _kind(row: Row) -> tuple[str, int, bool]:
    message = row.before or row.after
    assert message is not None
    return row.label, message.client, message.sent


def _renamed(rows: list[Row]) -> list[Row]:
    names: dict[str, str] = {}
    taken: set[str] = set()
    for row in rows:
        if row.before is not None and row.after is not None:
            _learn(row.before.value, row.after.value, names, taken)
    kept = {name for row in rows if row.after for name in _names_in(row.after.value)}

    def renamed(match: re.Match[str]) -> str:
        name = match[0]
        if name in names:
            return names[name]
        # Its number is now another's.
        return f"<{match[1]} {match[2]}, before>" if name in kept else name

    return [
        replace(row, before=replace(row.before, value=_replaced(row.before.value, renamed)))
        if row.before is not None
        else row
        for row in rows
    ]


def _learn(before: Any, after: Any, names: dict[str, str], taken: set[str]) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        other = obj(after)  # pyright: ignore[reportUnknownArgumentType]
        for name, value in obj(before).items():  # pyright: ignore[reportUnknownArgumentType]
            if name in other:
                _learn(value, other[name], names, taken)
    elif isinstance(before, list) and isinstance(after, list):
        for one, value in zip(arr(before), arr(after), strict=False):  # pyright: ignore[reportUnknownArgumentType]
            _learn(one, value, names, taken)
    elif isinstance(before, str) and isinstance(after, str):
        ours, theirs = list(_NAME.finditer(before)), list(_NAME.finditer(after))
        if _NAME.sub("", before) != _NAME.sub("", after):
            return
        for one, value in zip(ours, theirs, strict=False):
            if one[1] == value[1] and one[0] not in names and value[0] not in taken:
                names[one[0]] = value[0]
                taken.add(value[0])


def _names_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {name for one in obj(value).values() for name in _names_in(one)}  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, list):
        return {name for one in arr(value) for name in _names_in(one)}  # pyright: ignore[reportUnknownArgumentType]
    return {match[0] for match in _NAME.finditer(value)} if isinstance(value, str) else set()


def _replaced(value: Any, renamed: Any) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(one, renamed) for name, one in obj(value).items()}  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, list):
        return [_replaced(one, renamed) for one in arr(value)]  # pyright: ignore[reportUnknownArgumentType]
    return _NAME.sub(renamed, value) if isinstance(value, str) else value
