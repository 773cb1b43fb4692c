"""One wire line cut so that the members that matter stay in it."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from harness.protocol.escapes import visible
from harness.protocol.values import Path

HEAD_CHARACTERS: Final = 64
"""Characters kept at the beginning of a line: the method or the id of an answer stands there."""
# Characters kept around a member, and the minimum kept of the member itself.
BEFORE, AFTER, MIN_ROOM_CHARACTERS = 24, 16, 60
# A shorter gap is not cut, since its mark would take as much room.
MIN_GAP_CHARACTERS = 10

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
    """The offsets of a member in a line: of its key, of its value, and of the end of its value.

    `whole` is False if the member is missing; the offsets are then those of the nearest parent.
    """

    key: int
    start: int
    end: int
    whole: bool = True


def excerpt(line: str, spots: Sequence[Spot] = (), limit: int = 240) -> str:
    """Return about `limit` characters of a line, around the members at `spots`.

    If the line is not JSON or `spots` is empty, return its beginning and its end.
    """
    if len(line) <= limit and len(visible(line)) <= limit:
        return visible(line)
    windows = [window for spot in spots for window in _windows(line, spot, limit, len(spots))]
    if not windows:
        head = limit * 2 // 3
        windows = [(0, head), (len(line) - (limit - head), len(line))]
    else:
        windows.append((0, HEAD_CHARACTERS))
    return _join_windows(line, windows)


def locate(line: str, path: Path) -> Span | None:
    """Return the place of a member, or of its nearest parent; None if the line is not JSON."""
    try:
        key = start = _skip(line, 0)
        end = _DECODER.raw_decode(line, start)[1]
        for step in path:
            child = _child(line, start, step)
            if child is None:
                return Span(key, start, end, whole=False)
            key, start, end = child
    except (ValueError, IndexError, RecursionError):
        return None
    return Span(key, start, end)


def _windows(line: str, spot: Spot, limit: int, count: int) -> Iterable[tuple[int, int]]:
    span = locate(line, spot.path)
    if span is None:
        return
    room = max(MIN_ROOM_CHARACTERS, (limit - HEAD_CHARACTERS) // count - BEFORE - AFTER)
    first = max(0, span.key - BEFORE)
    if span.whole and spot.offset and line[span.start] == '"':
        near = _offset_in(line, span, spot.offset)
        yield first, span.start + 1
        yield max(span.start, near - BEFORE), min(span.end + AFTER, near + room)
        return
    last = min(span.end + AFTER, span.start + room)
    if not span.whole and span.end > last:
        # A missing member could stand anywhere in the object: show both ends.
        half = room // 2
        yield first, span.start + half
        yield span.end - half, span.end
        return
    yield first, last


def _join_windows(line: str, windows: Iterable[tuple[int, int]]) -> str:
    merged: list[tuple[int, int]] = []
    for start, end in sorted((max(0, a), min(b, len(line))) for a, b in windows):
        if merged and start <= merged[-1][1] + MIN_GAP_CHARACTERS:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    joined, last = "", 0
    for start, end in merged:
        joined += f" …{start - last} more… " if start > last else ""
        joined += visible(line[start:end])
        last = end
    return joined + (f" …{len(line) - last} more…" if last < len(line) else "")


def _child(line: str, start: int, step: str | int) -> tuple[int, int, int] | None:
    """Return the offsets (key, value, end) of a child of the value at `start`; None if missing."""
    opening = line[start]
    if opening != ("[" if isinstance(step, int) else "{"):
        return None
    child, index = None, 0
    position = _skip(line, start + 1)
    while line[position] not in "]}":
        key, name = position, index
        if opening == "{":
            name, position = _DECODER.raw_decode(line, position)
            position = _skip(line, _skip(line, position) + 1)
        end = _DECODER.raw_decode(line, position)[1]
        if name == step:
            child = (key, position, end)  # The last one of duplicate keys counts.
        index += 1
        position = _skip(line, end)
        if line[position] == ",":
            position = _skip(line, position + 1)
    return child


def _skip(line: str, start: int) -> int:
    match = _SPACE.match(line, start)
    return match.end() if match else start


def _offset_in(line: str, span: Span, offset: int) -> int:
    """Return the offset in the line of character `offset` of the JSON string at `span`."""
    position = span.start + 1
    for _ in range(offset):
        match = _PIECE.match(line, position)
        if match is None or match.end() >= span.end:
            break
        position = match.end()
    return position
