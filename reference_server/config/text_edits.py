"""Adding a table to the text of config.toml, and removing one.

All else stays byte for byte, comments and blank lines too. A new table is added at the end;
removing it again restores the text. Files are written by `config.editing`. Texts
must be TOML; callers check the result with `same_values`.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date, time
from itertools import groupby
from typing import Any, cast

from reference_server.config.places import Pair, Places, Section, Steps

Cut = tuple[int, int]
"""Offsets in characters of a part that is removed from a text."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def format_key(name: str) -> str:
    """Return a key as it is written: bare where it can be."""
    return name if _BARE.fullmatch(name) else quote(name)


def quote(text: str) -> str:
    """Return a string as it is written in one line."""
    import tomlkit

    return tomlkit.string(text).as_string()


def line_end(text: str) -> str:
    """Return how the lines of a text end."""
    return "\r\n" if "\r\n" in text else "\n"


def append_block(text: str, lines: Sequence[str]) -> str:
    """Add lines below a text, with a blank line between.

    Where the last line of the text does not end, the last one of these does not either, so that
    `remove_values` knows how it was.
    """
    end = line_end(text)
    ends = not text or text.endswith("\n")
    return (
        text
        + ("" if ends else end)
        + (end if text else "")
        + end.join(lines)
        + (end if ends else "")
    )


def add_inline(text: str, table: Steps, pair: str) -> str | None:
    """Add `key = value` to an inline table; None if the table is not written inline."""
    places = Places(text)
    if table not in places.inline:
        return None
    pairs = places.inline[table]
    offset = pairs[-1][1].end if pairs else places[table].value + 1
    return text[:offset] + (", " if pairs else "") + pair + text[offset:]


def add_lines(text: str, table: Steps, lines: Sequence[str]) -> str | None:
    """Add lines directly below the heading of a table; None if the table has no heading."""
    section = next((one for one in Places(text).sections[1:] if one.steps == table), None)
    if section is None:
        return None
    end = line_end(text)
    offset = _line_after(text, section.end)
    between = "" if text[:offset].endswith("\n") else end
    return text[:offset] + between + "".join(f"{line}{end}" for line in lines) + text[offset:]


def remove_values(text: str, *targets: Steps) -> str:
    """Remove values from a text, wherever parts of them are written.

    Comments between the lines of a table that is taken out go with it; those before and after stay.
    """
    places = Places(text)
    cuts: list[Cut] = []
    goes_on = False
    for section in places.sections:
        if _is_within(section.steps, targets):
            start, end = _lines_of(text, section)
            cuts.append((cuts.pop()[0] if goes_on else start, end))
            goes_on = True
        else:
            cuts += _cuts_of_pairs(text, section.pairs, targets, places)
            goes_on = False
    return _without_cuts(text, cuts)


def same_values(first: object, second: object) -> bool:
    """Return whether two parsed texts say the same; `nan` is the same as itself, 1 is not true."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        left, right = cast("dict[str, Any]", first), cast("dict[str, Any]", second)
        return left.keys() == right.keys() and all(
            same_values(value, right[key]) for key, value in left.items()
        )
    if isinstance(first, list):
        first_items, second_items = cast("list[Any]", first), cast("list[Any]", second)
        return len(first_items) == len(second_items) and all(
            map(same_values, first_items, second_items)
        )
    # Only `nan` does not equal itself.
    return first == second or (first != first and second != second)


def format_value(value: object) -> str:
    """Return a value as it is written in one line; tables inline."""
    match value:
        case str():
            return quote(value)
        case bool():
            return "true" if value else "false"
        case dict():
            pairs = cast("dict[str, Any]", value).items()
            return (
                "{ "
                + ", ".join(f"{format_key(key)} = {format_value(it)}" for key, it in pairs)
                + " }"
            )
        case list():
            return "[" + ", ".join(map(format_value, cast("list[Any]", value))) + "]"
        case date() | time():
            return value.isoformat()
        case _:
            return repr(value)


def _is_within(steps: Steps, targets: Sequence[Steps]) -> bool:
    """Return whether this way leads to one of the targets, or into it."""
    return any(steps[: len(target)] == target for target in targets)


def _holds(steps: Steps, targets: Sequence[Steps]) -> bool:
    """Return whether one of the targets is, or may be, below this way."""
    return any(target[: len(steps)] == steps for target in targets)


def _cuts_of_pairs(
    text: str, pairs: Sequence[Pair], targets: Sequence[Steps], places: Places
) -> Iterable[Cut]:
    """Find the cuts among pairs that have lines of their own."""
    for steps, place in pairs:
        if _is_within(steps, targets):
            yield text.rfind("\n", 0, place.key) + 1, _line_after(text, place.end)
        elif _holds(steps, targets):
            yield from _cuts_inside(steps, targets, places)


def _cuts_inside(table: Steps, targets: Sequence[Steps], places: Places) -> Iterable[Cut]:
    """Find the cuts in the braces of an inline table."""
    pairs = places.inline.get(table, [])
    runs = [list(run) for _, run in groupby(pairs, lambda pair: _is_within(pair[0], targets))]
    for index, run in enumerate(runs):
        first, last = run[0][1], run[-1][1]
        if not _is_within(run[0][0], targets):
            for steps, _ in run:
                if _holds(steps, targets):
                    yield from _cuts_inside(steps, targets, places)
        elif index:
            # With the comma before it.
            yield runs[index - 1][-1][1].end, last.end
        else:
            yield first.key, runs[1][0][1].key if len(runs) > 1 else last.end


def _lines_of(text: str, section: Section) -> Cut:
    """Return the lines from a heading to its last pair."""
    last = section.pairs[-1][1].end if section.pairs else section.end
    return text.rfind("\n", 0, section.start) + 1, _line_after(text, last)


def _without_cuts(text: str, cuts: Sequence[Cut]) -> str:
    merged: list[Cut] = []
    for start, end in sorted(cuts):
        if merged and not text[merged[-1][1] : start].strip():
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    had_line_end = not text or text.endswith("\n")
    for start, end in reversed(merged):
        text = text[: _cut_start(text, start, end)] + text[end:]
    if text and not had_line_end and text.endswith("\n"):
        text = text[: -2 if text.endswith("\r\n") else -1]
    return text


def _cut_start(text: str, start: int, end: int) -> int:
    """Return where to begin a cut of whole lines: at the blank line before, if one follows too."""
    is_whole_lines = start == text.rfind("\n", 0, start) + 1 and (
        end == len(text) or text[end - 1] == "\n"
    )
    if not is_whole_lines or text[end : _line_after(text, end)].strip():
        return start
    before = text.rfind("\n", 0, max(0, start - 1)) + 1
    return start if text[before:start].strip() else before


def _line_after(text: str, offset: int) -> int:
    """Return where the line after that of an offset begins."""
    end = text.find("\n", offset)
    return len(text) if end < 0 else end + 1
