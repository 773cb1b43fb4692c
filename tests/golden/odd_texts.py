"""Conversations with a problematic text at every member, as key and as value.

A sample is a message of one kind, in the smallest conversation that has one. Copies of the message
follow it, each with the text at another member.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

from harness.protocol.values import Path, obj
from harness.trace.frame import Frame, Kind
from harness.trace.store import lines, read
from harness.trace.surface.registry import classify_of
from harness.trace.trace import Trace
from tests.golden.conversations import conversations

TEXTS = {
    "half of a surrogate pair": "x\ud83d",
    "the other half first": "\ude00\ud83d",
    "NUL": "a\0b",
    "a title for the terminal": "\x1b]0;PWNED\x07",
    "colours and cursor": "\x1b[31m\x1b[9A",
    "CSI in one character": "\x9b31m",
    "back and return": "abc\b\b\rd",
    "no characters": "\ufffe\uffff",
    "bidirectional marks": "a\u202eb\u2066c\u200f",
    "separators": "a\u2028b\u2029c\x85d",
    "beyond the plane": "\U0010fffe\x7f\ufeff",
    "lines and commands": "a\n\n::error::PWNED\n##[error]PWNED\n]]> <b>&amp; `|` </b>",
}
LONG_TEXT = b"y" * 5_000


def _has_utf8(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


ESCAPED = " ".join(TEXTS.values())
# Judging all conversations takes seconds of CPU, so the texts share them.
UNESCAPED = " ".join(filter(_has_utf8, TEXTS.values()))
NOT_UTF8 = LONG_TEXT + b"\xff\xfe\xc3("
JOINED: tuple[str | bytes, ...] = (ESCAPED, UNESCAPED, NOT_UTF8)
"""Problematic texts: as escapes of JSON; as they are; not UTF-8, in a long line."""
PLACE = "here it stands"

NESTED = "a value of 900 objects, one in the other"
"""Stands for that value; keys and marks keep the words."""
_NESTED_JSON = '{"a":' * 900 + "1" + "}" * 900

FIXED_WORDS = {"transport", "token", "held", "outcome"}
"""Members of marks for which the reader of traces accepts only fixed values."""

MessageKind = tuple[str, str, str, str]
"""Surface, kind, method (for a response that of its request), item type."""
Sample = tuple[str, int, Path]


@cache
def _conversations() -> dict[str, Trace]:
    """Return all conversations by name; they are built once."""
    return dict(conversations())


@cache
def samples() -> dict[tuple[MessageKind, Path], Sample]:
    """Return a conversation, a frame and a path for each member of each kind of message.

    Conversations that break a rule are used only for kinds that no other conversation has.
    """
    found: dict[tuple[MessageKind, Path], tuple[int, Sample]] = {}
    for is_wrong in (False, True):
        known = {kind for kind, _ in found}
        for name, trace in _conversations().items():
            if is_wrong is not _breaks_a_rule(name):
                continue
            methods = {one.id: one.method for one in trace.frames if one.kind is Kind.REQUEST}
            for frame in trace.frames:
                kind = _kind_of(trace, frame, methods)
                for path in _members(frame.json) if kind not in known else ():
                    key = kind, tuple(step if isinstance(step, str) else 0 for step in path)
                    if key not in found or len(trace.frames) < found[key][0]:
                        found[key] = len(trace.frames), (name, frame.seq, path)
    return {key: sample for key, (_, sample) in found.items()}


def _breaks_a_rule(name: str) -> bool:
    return name.startswith(("illegal/", "fault/")) or name.endswith(":bad")


def odd_conversations(*texts: str | bytes) -> Iterator[tuple[str, Trace]]:
    """Yield the conversations of all samples, with copies of the samples that contain a text."""
    places: dict[str, dict[int, list[Path]]] = {}
    for name, seq, path in samples().values():
        places.setdefault(name, {}).setdefault(seq, []).append(path)
    traces = _conversations()
    for name, found in places.items():
        yield name, _with_copies(traces[name], found, texts)
    for name, row, path in mark_samples().values() if ESCAPED in texts else ():
        yield name, _with_odd_mark(traces[name], row, path, ESCAPED)


@cache
def mark_samples() -> dict[tuple[str, Path], Sample]:
    """Return a conversation, a row and a path in its data for each text in each kind of mark."""
    found: dict[tuple[str, Path], tuple[int, Sample]] = {}
    for name, trace in _conversations().items():
        rows = [json.loads(line) for line in lines(trace)]
        for number, row in enumerate(rows):
            for path in _members(row["data"]) if "mark" in row else ():
                key = row["mark"], tuple(step if isinstance(step, str) else 0 for step in path)
                is_text = isinstance(_value(row["data"], path), str) and path[-1] not in FIXED_WORDS
                if is_text and (key not in found or len(rows) < found[key][0]):
                    found[key] = len(rows), (name, number, path)
    return {key: sample for key, (_, sample) in found.items()}


def _value(data: Any, path: Path) -> Any:
    for step in path:
        data = data[step]
    return data


def _with_odd_mark(trace: Trace, row: int, path: Path, text: str) -> Trace:
    rows = [json.loads(line) for line in lines(trace)]
    _value(rows[row]["data"], path[:-1])[path[-1]] = text
    return read(
        (f"{json.dumps(row)}\n" for row in rows),
        name=trace.header.scenario,
        classify_of=classify_of,
    )


def _kind_of(trace: Trace, frame: Frame, methods: dict[Any, str]) -> MessageKind:
    about = frame.method or methods.get(frame.id, "")
    item = obj(obj(obj(frame.json).get("params")).get("item") or obj(frame.json).get("item"))
    side = "server" if frame.from_target else "client"
    return trace.header.surface, f"{side} {frame.kind}", about, str(item.get("type", ""))


def _members(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all members, in arrays of the first element only."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield (*path, key)
            yield from _members(inner, (*path, key))
    elif isinstance(value, list) and value:
        yield (*path, 0)
        yield from _members(value[0], (*path, 0))


def _with_copies(
    trace: Trace, places: dict[int, list[Path]], texts: tuple[str | bytes, ...]
) -> Trace:
    rows: list[dict[str, Any]] = []
    numbers: dict[int, int] = {-1: -1}
    count = 0
    for row in map(json.loads, lines(trace)):
        if "mark" in row:
            row["after"] = numbers.get(row["after"], row["after"])
        rows.append(row)
        if "frame" not in row:
            continue
        seq = row["frame"]
        numbers[seq] = row["frame"] = count
        count += 1
        here = places.get(seq, [])
        # A line that is not UTF-8 has no members: only the text's place in the line can matter.
        few = dict.fromkeys(here[:1] + here[-1:])
        for text, path in [(t, p) for t in texts for p in (few if isinstance(t, bytes) else here)]:
            content = _content(_with_text(trace.frames[seq].json, path), text)
            rows.append({**_without_content(row), "frame": count, **content})
            count += 1
    return read(
        (f"{json.dumps(row)}\n" for row in rows),
        name=trace.header.scenario,
        classify_of=classify_of,
    )


def _without_content(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in ("raw", "raw64")}


def _with_text(message: Any, path: Path) -> Any:
    """Return a copy of the message with the text as the value at a path, and as an extra key."""
    message = holder = copy.deepcopy(message)
    for step in path[:-1]:
        holder = holder[step]
    value, holder[path[-1]] = holder[path[-1]], PLACE
    if isinstance(holder, dict):
        members = cast("dict[str, Any]", holder)
        rest = dict(members)
        members.clear()
        members.update({PLACE: value, **rest})
    return message


def _content(message: Any, text: str | bytes) -> dict[str, str]:
    line = json.dumps(message).encode()
    if text is NESTED:
        line = line.replace(f'"{PLACE}":'.encode(), f'"{NESTED}":'.encode())
        return {"raw": line.decode().replace(f'"{PLACE}"', _NESTED_JSON)}
    if isinstance(text, bytes):
        return {"raw64": base64.b64encode(line.replace(PLACE.encode(), text)).decode()}
    words = json.dumps(text, ensure_ascii=not _has_utf8(text))[1:-1]
    return {"raw": line.replace(PLACE.encode(), words.encode()).decode()}
