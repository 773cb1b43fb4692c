"""Insertions and removals in the text of config.toml.

The rest stays byte for byte, comments and blank lines included. A new table is added at the end;
removing it again restores the text. `config.editing` writes files. Texts must be TOML; callers
check the result with `same_values`.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date, time
from itertools import groupby
from typing import Any, cast

from reference_server.config.places import Pair, Places, Section, Steps

Cut = tuple[int, int]
"""Start and end offset, in characters, of a part to remove."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def format_key(name: str) -> str:
    """Return a key in TOML syntax, bare if possible, else quoted."""
    return name if _BARE.fullmatch(name) else quote(name)


def quote(text: str) -> str:
    """Return a string as a one-line TOML string."""
    import tomlkit

    return tomlkit.string(text).as_string()


def line_end(text: str) -> str:
    """Return the line end of a text: CRLF if it has any, else LF."""
    return "\r\n" if "\r\n" in text else "\n"


def append_block(text: str, lines: Sequence[str]) -> str:
    """Return the text with lines appended after a blank line.

    If the last line of the text has no line end, the last one of these has none either, so that
    `remove_values` can restore the text.
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
    """Return the text with `key = value` added to an inline table; None if it is not inline."""
    places = Places(text)
    if table not in places.inline:
        return None
    pairs = places.inline[table]
    offset = pairs[-1][1].end if pairs else places[table].value + 1
    return text[:offset] + (", " if pairs else "") + pair + text[offset:]


def add_lines(text: str, table: Steps, lines: Sequence[str]) -> str | None:
    """Return the text with lines added below a table's heading; None if it has no heading."""
    section = next((one for one in Places(text).sections[1:] if one.steps == table), None)
    if section is None:
        return None
    end = line_end(text)
    offset = _line_after(text, section.end)
    between = "" if text[:offset].endswith("\n") else end
    return text[:offset] + between + "".join(f"{line}{end}" for line in lines) + text[offset:]


def remove_values(text: str, *targets: Steps) -> str:
    """Return the text without the values at `targets`, in whichever form it writes them.

    Comments between the lines of a removed table are removed; those before and after it stay.
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
    """Return whether two parsed values are equal in type and value; `nan` equals itself."""
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
    """Return a value in one line of TOML, with tables inline."""
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
    """Return whether the value at `steps` is one of the targets, or inside one."""
    return any(steps[: len(target)] == target for target in targets)


def _holds(steps: Steps, targets: Sequence[Steps]) -> bool:
    """Return whether one of the targets is the value at `steps`, or may be inside it."""
    return any(target[: len(steps)] == steps for target in targets)


def _cuts_of_pairs(
    text: str, pairs: Sequence[Pair], targets: Sequence[Steps], places: Places
) -> Iterable[Cut]:
    """Yield the cuts for pairs that stand on lines of their own."""
    for steps, place in pairs:
        if _is_within(steps, targets):
            yield text.rfind("\n", 0, place.key) + 1, _line_after(text, place.end)
        elif _holds(steps, targets):
            yield from _cuts_inside(steps, targets, places)


def _cuts_inside(table: Steps, targets: Sequence[Steps], places: Places) -> Iterable[Cut]:
    """Yield the cuts within the braces of an inline table, each with one comma."""
    pairs = places.inline.get(table, [])
    runs = [list(run) for _, run in groupby(pairs, lambda pair: _is_within(pair[0], targets))]
    for index, run in enumerate(runs):
        first, last = run[0][1], run[-1][1]
        if not _is_within(run[0][0], targets):
            for steps, _ in run:
                if _holds(steps, targets):
                    yield from _cuts_inside(steps, targets, places)
        elif index:
            # Include the comma before it.
            yield runs[index - 1][-1][1].end, last.end
        else:
            yield first.key, runs[1][0][1].key if len(runs) > 1 else last.end


def _lines_of(text: str, section: Section) -> Cut:
    """Return the cut from the line of a heading to that of its last pair."""
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
    """Return the start of a cut; of whole lines between blank lines it is the blank line before."""
    is_whole_lines = start == text.rfind("\n", 0, start) + 1 and (
        end == len(text) or text[end - 1] == "\n"
    )
    if not is_whole_lines or text[end : _line_after(text, end)].strip():
        return start
    before = text.rfind("\n", 0, max(0, start - 1)) + 1
    return start if text[before:start].strip() else before


def _line_after(text: str, offset: int) -> int:
    """Return the offset of the next line after `offset`; the text's length if there is none."""
    end = text.find("\n", offset)
    return len(text) if end < 0 else end + 1
