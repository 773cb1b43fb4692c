"""Pairs of messages of two transcripts, with the same names.

One more message shifts the numbers of all names after it: `<item 3>` is `<item 4>` from there on.
Here the names of the earlier transcript are changed to those of the later one in the same places,
so that only real differences remain.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from harness.protocol.values import arr, obj
from harness.report.snapshot.message import Message, Transcript, message_labels
from harness.report.snapshot.stability import move_placeless, placeless_kinds, without_order

_NAME = re.compile(r"<(thread|turn|item|request|cursor|id) (\d+)>")


@dataclass(frozen=True, slots=True)
class Row:
    """A message before and after, None if it was missing; `label` is its name.

    `predecessor` is the message before it in the later transcript, or in the earlier one if it is
    gone; "" at the beginning. One that `is_moved` is in both, at another place; then
    `old_predecessor` is the message before it in the earlier one.
    """

    label: str
    before: Message | None
    after: Message | None
    predecessor: str = ""
    is_moved: bool = False
    old_predecessor: str = ""


def align(before: Transcript, after: Transcript) -> list[Row]:
    """Return paired messages in the order of `after`, with the removed ones at their old places."""
    if before.free or after.free:
        before, after = without_order(before), without_order(after)
    loose = placeless_kinds(before) | placeless_kinds(after)
    before, after = move_placeless(before, loose), move_placeless(after, loose)
    old, new = list(message_labels(before.messages)), list(message_labels(after.messages))
    rows = _pair_messages(before, after, old, new)
    if not after.free:
        rows = _with_moves(rows)
    return _rename(rows)


def _pair_messages(
    before: Transcript, after: Transcript, old: list[str], new: list[str]
) -> list[Row]:
    old_keys = [(m.client, m.is_sent, label) for m, label in zip(before.messages, old, strict=True)]
    new_keys = [(m.client, m.is_sent, label) for m, label in zip(after.messages, new, strict=True)]
    rows: list[Row] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(
        None, old_keys, new_keys, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            rows += [
                Row(new[j], before.messages[i], after.messages[j], _name_at(new, j - 1))
                for i, j in zip(range(i1, i2), range(j1, j2), strict=True)
            ]
            continue
        rows += [Row(old[i], before.messages[i], None, _name_at(old, i - 1)) for i in range(i1, i2)]
        rows += [Row(new[j], None, after.messages[j], _name_at(new, j - 1)) for j in range(j1, j2)]
    return rows


def _name_at(names: Sequence[str], place: int) -> str:
    return names[place] if place >= 0 else ""


def _with_moves(rows: list[Row]) -> list[Row]:
    """Return the rows, a removed message and a new one of its kind merged into one that moved."""
    merged = list(rows)
    gone = [row for row in rows if row.after is None]
    for row in [row for row in rows if row.before is None]:
        for gone_row in gone:
            if _kind(gone_row) == _kind(row):
                moved = Row(
                    row.label,
                    gone_row.before,
                    row.after,
                    row.predecessor,
                    True,
                    gone_row.predecessor,
                )
                merged[merged.index(row)] = moved
                merged.remove(gone_row)
                gone.remove(gone_row)
                break
    return merged


def _kind(row: Row) -> tuple[str, int, bool]:
    message = row.before or row.after
    assert message is not None
    return row.label, message.client, message.is_sent


def _rename(rows: list[Row]) -> list[Row]:
    names: dict[str, str] = {}
    taken: set[str] = set()
    for row in rows:
        if row.before is not None and row.after is not None:
            _learn_names(row.before.value, row.after.value, names, taken)
    current_names = {name for row in rows if row.after for name in _names_in(row.after.value)}

    def rename(match: re.Match[str]) -> str:
        name = match[0]
        if name in names:
            return names[name]
        # The number now belongs to another object.
        return f"<{match[1]} {match[2]}, before>" if name in current_names else name

    return [
        replace(row, before=replace(row.before, value=_replace_names(row.before.value, rename)))
        if row.before is not None
        else row
        for row in rows
    ]


def _learn_names(before: Any, after: Any, names: dict[str, str], taken_names: set[str]) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        members = obj(after)  # pyright: ignore[reportUnknownArgumentType]
        for name, value in obj(before).items():  # pyright: ignore[reportUnknownArgumentType]
            if name in members:
                _learn_names(value, members[name], names, taken_names)
    elif isinstance(before, list) and isinstance(after, list):
        for element, value in zip(arr(before), arr(after), strict=False):  # pyright: ignore[reportUnknownArgumentType]
            _learn_names(element, value, names, taken_names)
    elif isinstance(before, str) and isinstance(after, str):
        old_names, new_names = list(_NAME.finditer(before)), list(_NAME.finditer(after))
        if _NAME.sub("", before) != _NAME.sub("", after):
            return
        for element, value in zip(old_names, new_names, strict=False):
            if element[1] == value[1] and element[0] not in names and value[0] not in taken_names:
                names[element[0]] = value[0]
                taken_names.add(value[0])


def _names_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {name for member in obj(value).values() for name in _names_in(member)}  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, list):
        return {name for element in arr(value) for name in _names_in(element)}  # pyright: ignore[reportUnknownArgumentType]
    return {match[0] for match in _NAME.finditer(value)} if isinstance(value, str) else set()


def _replace_names(value: Any, rename: Any) -> Any:
    if isinstance(value, dict):
        return {name: _replace_names(member, rename) for name, member in obj(value).items()}  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, list):
        return [_replace_names(element, rename) for element in arr(value)]  # pyright: ignore[reportUnknownArgumentType]
    return _NAME.sub(rename, value) if isinstance(value, str) else value
