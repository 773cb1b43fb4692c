"""Logs of other programs with JSON-RPC messages in them, read as the entries of a recording.

A message is a JSON-RPC object of its own, a member of an object (`{"direction": "send", "message":
{…}}`), or the end of a line of text (`12:00:01 DEBUG --> {…}`); the objects may be one array or
span several lines. The sides are inferred: the specification says who sends which method, and the
part of the log that tells the two sides apart (`send`, `-->`) is found by that. An answer goes to
the sender of its request.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, cast

from harness.protocol.values import MISSING, obj

SenderOf = Callable[[str], Literal["client", "server", ""]]

TO_SERVER: Final = "C>S"
TO_CLIENT: Final = "S>C"
_SIDES: Final = {"client": TO_SERVER, "server": TO_CLIENT, "": ""}
# Values of a member, or words of lines, that may tell the two sides apart.
_MAX_LABELS: Final = 6
_TIME_KEYS: Final = ("t", "ts", "time", "timestamp", "at", "date", "datetime")
# A number above it is in milliseconds since 1970, not in seconds.
_MIN_MILLISECONDS: Final = 1e11
# Braces of a line of text at which a message is looked for.
_MAX_BRACES_TRIED: Final = 20
# The time between two messages if the log has none.
_STEP_SECONDS: Final = 0.001
_ISO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:?\d\d)?")
_NO_LABEL: Final = re.compile(r"[\d.,:+TZ-]*\d[\d.,:+TZ-]*")


@dataclass(slots=True)
class _Found:
    """A message in a log: its line, its time if the log has one, and what stands around it."""

    line: int
    message: dict[str, Any]
    time: float | None = None
    labels: dict[str, str] = field(default_factory=dict[str, str])
    side: str = ""


@dataclass(frozen=True, slots=True)
class Log:
    """Entries of a recording with their lines in the file, and notes on what was inferred."""

    entries: list[tuple[int, dict[str, Any]]]
    notes: list[str]


def read_log(text: str, sender_of: SenderOf) -> Log:
    """Return the messages of a log as entries; none if it holds no JSON-RPC message.

    `sender_of` returns the sender of a method: "client", "server", or "" if it is unknown.
    """
    found: list[_Found] = []
    skipped = 0
    for line, part in _parts(text):
        message = _message_in(line, part)
        if message is None:
            skipped += 1
        else:
            found.append(message)
    for one in found:
        one.side = _SIDES[sender_of(str(one.message.get("method", "")))]
    told_apart = _tell_sides(found)
    times = [one.time for one in found if one.time is not None]
    has_times = len(times) == len(found)
    first = times[0] if has_times and times else 0.0
    entries = [
        (
            one.line,
            {
                "t": (one.time or 0.0) - first if has_times else number * _STEP_SECONDS,
                "dir": one.side,
                "msg": one.message,
            },
        )
        for number, one in enumerate(found)
        if one.side
    ]
    notes = [f"read as a log: the sides are told apart by {told_apart}"]
    if not has_times:
        notes.append("it has no times: nothing is known of pauses")
    if unclear := len(found) - len(entries):
        notes.append(f"{unclear} message(s) were left out: their sender is not clear")
    if skipped:
        notes.append(f"{skipped} line(s) without a message were left out")
    return Log(entries, notes)


def _parts(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the line number and value of each object, or of each line that is none."""
    decoder = json.JSONDecoder()
    lines = text.splitlines()
    if _value_of(lines[0] if lines else "") is MISSING and text.lstrip()[:1] in ("{", "["):
        try:
            yield from _objects(text, decoder)
        except (ValueError, RecursionError):
            pass
        else:
            return
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        value = _value_of(line)
        for one in cast("list[Any]", value) if isinstance(value, list) else [value]:
            yield number, line if one is MISSING else one


def _objects(text: str, decoder: json.JSONDecoder) -> list[tuple[int, Any]]:
    """Return the values that span lines. Raises `ValueError` if there is other text."""
    values: list[tuple[int, Any]] = []
    at, line = 0, 1
    while at < len(text):
        if text[at].isspace():
            line += text[at] == "\n"
            at += 1
            continue
        value, end = decoder.raw_decode(text, at)
        values += [
            (line, one)
            for one in (cast("list[Any]", value) if isinstance(value, list) else [value])
        ]
        line += text.count("\n", at, end)
        at = end
    return values


def _value_of(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return MISSING


def is_object_text(text: str) -> bool:
    """Return whether a text is that of a JSON object."""
    return text[:1] == "{" and isinstance(_value_of(text), dict)


def _message_in(line: int, part: Any) -> _Found | None:
    if isinstance(part, str):
        return _message_in_text(line, part)
    row = obj(part)
    if _is_message(row):
        return _Found(line, row)
    for key, value in row.items():
        message = _value_of(value) if isinstance(value, str) and value[:1] == "{" else value
        if _is_message(obj(message)):
            labels = {
                name: str(other)
                for name, other in row.items()
                if name != key and isinstance(other, str | bool)
            }
            times = (_time(row[name]) for name in _TIME_KEYS if name in row)
            return _Found(line, obj(message), next(times, None), labels)
    return None


def _message_in_text(line: int, words: str) -> _Found | None:
    start = -1
    # A line may be long and full of braces.
    for _ in range(_MAX_BRACES_TRIED):
        start = words.find("{", start + 1)
        if start < 0:
            break
        message = obj(_value_of(words[start:]))
        if _is_message(message):
            before = words[:start]
            time = _ISO_TIME.search(before)
            label = " ".join(_NO_LABEL.sub(" ", before).split())
            return _Found(line, message, _time(time[0]) if time else None, {"": label})
    return None


def _is_message(value: Mapping[str, Any]) -> bool:
    if isinstance(value.get("method"), str):
        return True
    return "id" in value and ("result" in value or "error" in value)


def _time(value: Any) -> float | None:
    """Return a time in seconds, None if it is not one."""
    if isinstance(value, int | float):
        return value / 1000 if value > _MIN_MILLISECONDS else float(value)
    try:
        return datetime.fromisoformat(str(value).replace(",", ".")).timestamp()
    except (ValueError, OverflowError):
        return None


def _tell_sides(messages: Sequence[_Found]) -> str:
    """Complete the sides of the messages, "" where unclear; return how they were found."""
    key, sides = _best_key(messages)
    for one in messages:
        one.side = sides.get(one.labels.get(key, ""), one.side) if sides else one.side
    open_requests: dict[str, list[str]] = defaultdict(list)
    for one in messages:
        identifier = json.dumps(one.message.get("id"))
        if "method" in one.message:
            if "id" in one.message and one.side:
                open_requests[identifier].append(one.side)
        elif not one.side:
            askers = open_requests[identifier]
            one.side = _other(askers.pop(0)) if askers else ""
        elif _other(one.side) in open_requests[identifier]:
            open_requests[identifier].remove(_other(one.side))
    if not sides:
        return "their methods alone"
    return f"the member {key!r}" if key else "the words before each message"


def _best_key(messages: Sequence[_Found]) -> tuple[str, Mapping[str, str]]:
    """Return the label that tells the sides apart, with the side of each of its values."""
    best: tuple[str, Mapping[str, str]] = ("", {})
    most = 0
    for key in sorted({key for one in messages for key in one.labels}):
        sides: dict[str, set[str]] = defaultdict(set)
        for one in messages:
            sides[one.labels.get(key, "")].add(one.side)
        known = {value: seen - {""} for value, seen in sides.items()}
        if len(known) > _MAX_LABELS or any(len(seen) > 1 for seen in known.values()):
            continue
        both = set[str]().union(*known.values())
        if len(both) == 1 and len(known) == 2:
            # One side says nothing that the specification knows.
            known = {value: seen or {_other(*both)} for value, seen in known.items()}
        told = {value: next(iter(seen)) for value, seen in known.items() if seen}
        count = sum(one.labels.get(key, "") in told for one in messages)
        if len(told) > 1 and count > most:
            best, most = (key, told), count
    return best


def _other(side: str) -> str:
    return TO_CLIENT if side == TO_SERVER else TO_SERVER
