"""One wire line cut so that the members that matter stay in it."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from harness.protocol.values import Path

HEAD: Final = 64
"""So much of the beginning of a line is kept: the method, or the id of an answer."""
# What is kept around a member, and the least that is kept of the member itself.
BEFORE, AFTER, MIN_ROOM_CHARACTERS = 24, 16, 60
# Gaps shorter than their own mark are not cut.
GAP = 10

_DECODER: Final = json.JSONDecoder()
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_PIECE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\"\\]",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Spot:
    """A member to keep in sight; `offset` counts characters of its text, 0 for its beginning."""

    path: Path
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """The place of a member in a line: its key, its value, the end of its value.

    `whole` is false where the member is not there: then it is the nearest that holds it.
    """

    key: int
    start: int
    end: int
    whole: bool = True


def excerpt(line: str, spots: Sequence[Spot] = (), limit: int = 240) -> str:
    """The line for reading, about `limit` characters of it, the spots among them.

    Without a spot that can be found the middle is left out.
    """
    if len(visible(line)) <= limit:
        return visible(line)
    windows = [window for spot in spots for window in _windows(line, spot, limit, len(spots))]
    if not windows:
        head = limit * 2 // 3
        windows = [(0, head), (len(line) - (limit - head), len(line))]
    else:
        windows.append((0, HEAD))
    return _joined(line, windows)


def locate(line: str, path: Path) -> Span | None:
    """Return the place of a member in a line of JSON; None if the line is not JSON."""
    try:
        key = start = _skip(line, 0)
        end = _DECODER.raw_decode(line, start)[1]
        for step in path:
            found = _child(line, start, step)
            if found is None:
                return Span(key, start, end, whole=False)
            key, start, end = found
    except (ValueError, IndexError, RecursionError):
        return None
    return Span(key, start, end)


def visible(line: str) -> str:
    """One line for a terminal: what would break it or act on the terminal is escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)


def _windows(line: str, spot: Spot, limit: int, count: int) -> Iterable[tuple[int, int]]:
    span = locate(line, spot.path)
    if span is None:
        return
    room = max(MIN_ROOM_CHARACTERS, (limit - HEAD) // count - BEFORE - AFTER)
    first = max(0, span.key - BEFORE)
    if span.whole and spot.offset and line[span.start] == '"':
        near = _offset_in(line, span, spot.offset)
        yield first, span.start + 1
        yield max(span.start, near - BEFORE), min(span.end + AFTER, near + room)
        return
    last = min(span.end + AFTER, span.start + room)
    if not span.whole and span.end > last:
        # What is missing is missing to the end of what should hold it.
        half = room // 2
        yield first, span.start + half
        yield span.end - half, span.end
        return
    yield first, last


def _joined(line: str, windows: Iterable[tuple[int, int]]) -> str:
    merged: list[tuple[int, int]] = []
    for start, end in sorted((max(0, a), min(b, len(line))) for a, b in windows):
        if merged and start <= merged[-1][1] + GAP:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    shown, last = "", 0
    for start, end in merged:
        shown += f" …{start - last} more… " if start > last else ""
        shown += visible(line[start:end])
        last = end
    return shown + (f" …{len(line) - last} more…" if last < len(line) else "")


def _child(line: str, start: int, step: str | int) -> tuple[int, int, int] | None:
    """Key, value and end of a part of the array or object at `start`."""
    opening = line[start]
    if opening != ("[" if isinstance(step, int) else "{"):
        return None
    found, index = None, 0
    at = _skip(line, start + 1)
    while line[at] not in "]}":
        key, name = at, index
        if opening == "{":
            name, at = _DECODER.raw_decode(line, at)
            at = _skip(line, _skip(line, at) + 1)
        end = _DECODER.raw_decode(line, at)[1]
        if name == step:
            found = (key, at, end)  # Of a key given twice the last counts.
        index += 1
        at = _skip(line, end)
        if line[at] == ",":
            at = _skip(line, at + 1)
    return found


def _skip(line: str, start: int) -> int:
    match = _SPACE.match(line, start)
    return match.end() if match else start


def _offset_in(line: str, span: Span, offset: int) -> int:
    """Return the place in the line of the character `offset` of the text at a span."""
    at = span.start + 1
    for _ in range(offset):
        match = _PIECE.match(line, at)
        if match is None or match.end() >= span.end:
            break
        at = match.end()
    return at
