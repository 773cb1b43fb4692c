"""Putting a table into the text of config.toml, and taking one out.

All else stays byte for byte, comments and blank lines too. A table that is put in stands at the
end; taking it out again gives the text that was there before. Files are `config.editing`'s. Texts
must be TOML; whether the result is, and says what it should, is checked with `says_the_same`.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date, time
from itertools import groupby
from typing import Any, cast

from reference_server.config.places import Pair, Places, Section, Steps

Cut = tuple[int, int]
"""Offsets in characters: what is taken out of a text."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def key_of(name: str) -> str:
    """Return a key as it is written: bare where it can be."""
    return name if _BARE.fullmatch(name) else quoted(name)


def quoted(text: str) -> str:
    """Return a string as it is written in one line."""
    import tomlkit

    return tomlkit.string(text).as_string()


def line_end(text: str) -> str:
    """Return how the lines of a text end."""
    return "\r\n" if "\r\n" in text else "\n"


def with_block(text: str, lines: Sequence[str]) -> str:
    """Add lines below a text, with a blank line between.

    Where the last line of the text does not end, the last one of these does not either, so that
    `without` knows how it was.
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


def with_inline(text: str, table: Steps, pair: str) -> str | None:
    """Add `key = value` to an inline table; None if the table is not written inline."""
    places = Places(text)
    if table not in places.inline:
        return None
    pairs = places.inline[table]
    at = pairs[-1][1].end if pairs else places[table].value + 1
    return text[:at] + (", " if pairs else "") + pair + text[at:]


def with_lines(text: str, table: Steps, lines: Sequence[str]) -> str | None:
    """Add lines directly below the heading of a table; None if the table has no heading."""
    section = next((one for one in Places(text).sections[1:] if one.steps == table), None)
    if section is None:
        return None
    end = line_end(text)
    below = _line_after(text, section.end)
    between = "" if text[:below].endswith("\n") else end
    return text[:below] + between + "".join(f"{line}{end}" for line in lines) + text[below:]


def without(text: str, *targets: Steps) -> str:
    """Take values out of a text, wherever parts of them are written.

    Comments between the lines of a table that is taken out go with it; those before and after stay.
    """
    places = Places(text)
    cuts: list[Cut] = []
    goes_on = False
    for section in places.sections:
        if _within(section.steps, targets):
            start, end = _lines_of(text, section)
            cuts.append((cuts.pop()[0] if goes_on else start, end))
            goes_on = True
        else:
            cuts += _cuts_of_pairs(text, section.pairs, targets, places)
            goes_on = False
    return _without_cuts(text, cuts)


def says_the_same(one: object, other: object) -> bool:
    """Return whether two parsed texts say the same; `nan` is the same as itself, 1 is not true."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        left, right = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return left.keys() == right.keys() and all(
            says_the_same(value, right[key]) for key, value in left.items()
        )
    if isinstance(one, list):
        ours, theirs = cast("list[Any]", one), cast("list[Any]", other)
        return len(ours) == len(theirs) and all(map(says_the_same, ours, theirs))
    # What does not equal itself is `nan`.
    return one == other or (one != one and other != other)


def written(value: object) -> str:
    """Return a value as it is written in one line; tables inline."""
    match value:
        case str():
            return quoted(value)
        case bool():
            return "true" if value else "false"
        case dict():
            pairs = cast("dict[str, Any]", value).items()
            return "{ " + ", ".join(f"{key_of(key)} = {written(it)}" for key, it in pairs) + " }"
        case list():
            return "[" + ", ".join(map(written, cast("list[Any]", value))) + "]"
        case date() | time():
            return value.isoformat()
        case _:
            return repr(value)


def _within(steps: Steps, targets: Sequence[Steps]) -> bool:
    """Return whether this way leads to one of the targets, or into it."""
    return any(steps[: len(target)] == target for target in targets)


def _holds(steps: Steps, targets: Sequence[Steps]) -> bool:
    """Return whether one of the targets is, or may be, below this way."""
    return any(target[: len(steps)] == steps for target in targets)


def _cuts_of_pairs(
    text: str, pairs: Sequence[Pair], targets: Sequence[Steps], places: Places
) -> Iterable[Cut]:
    """Find what to cut among pairs which have lines of their own."""
    for steps, place in pairs:
        if _within(steps, targets):
            yield text.rfind("\n", 0, place.key) + 1, _line_after(text, place.end)
        elif _holds(steps, targets):
            yield from _cuts_inside(steps, targets, places)


def _cuts_inside(table: Steps, targets: Sequence[Steps], places: Places) -> Iterable[Cut]:
    """Find what to cut in the braces of an inline table."""
    pairs = places.inline.get(table, [])
    runs = [list(run) for _, run in groupby(pairs, lambda pair: _within(pair[0], targets))]
    for index, run in enumerate(runs):
        first, last = run[0][1], run[-1][1]
        if not _within(run[0][0], targets):
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
    ended = not text or text.endswith("\n")
    for start, end in reversed(merged):
        text = text[: _with_blank_line(text, start, end)] + text[end:]
    if text and not ended and text.endswith("\n"):
        text = text[: -2 if text.endswith("\r\n") else -1]
    return text


def _with_blank_line(text: str, start: int, end: int) -> int:
    """Return where to begin a cut of whole lines: at the blank line before, if one follows too."""
    whole = start == text.rfind("\n", 0, start) + 1 and (end == len(text) or text[end - 1] == "\n")
    if not whole or text[end : _line_after(text, end)].strip():
        return start
    before = text.rfind("\n", 0, max(0, start - 1)) + 1
    return start if text[before:start].strip() else before


def _line_after(text: str, at: int) -> int:
    """Return where the line after that of an offset begins."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1
