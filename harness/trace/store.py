"""Traces as JSON Lines: a header, then one line per frame or mark, then the end.

Format version 2. First line `{"trace": {...header}}`, with the `surface` if it is not the session;
frames `{"frame": seq, "at", "conn", "dir", "origin", "raw"}` where `raw` is text, or `raw64` base64
for bytes that are not UTF-8, and `damage` with a `note` in words describes damaged bytes; marks
`{"mark": kind, "at", "after", "data"}`, whose form has a version of its own in the header
(`marks`); last line `{"end": "quiescent"}`, with `stderr` if the server wrote some: time, number of
the frame before, and text of each line. A file without its last line was cut off: its end is
`closed`, so no missing message is judged.

Version 1, whose marks were unchecked dictionaries, is read too. Files of other versions are
rejected.
"""

import base64
import binascii
import dataclasses
import json
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.protocol.values import MISSING, obj
from harness.trace.frame import (
    Classify,
    Damage,
    DamageKind,
    Direction,
    Frame,
    Kind,
    Origin,
    classify,
    parse,
)
from harness.trace.mark_rows import from_former_row, from_row, to_row
from harness.trace.marks import MARKS_VERSION, MarkBody
from harness.trace.names import Renamer
from harness.trace.recorder import Recorder
from harness.trace.surfaces import SESSION
from harness.trace.trace import FORMAT_VERSION, End, Header, Mark, StderrLine, Trace

# Several tasks write one trace, so the times of neighbouring lines may be slightly out of order.
CLOCK_TOLERANCE_SECONDS = 0.1
MAX_GAPS_LISTED = 5

# Returns the classifier of a surface's lines, by its name; raises `ValueError` if unknown.
ClassifyOf = Callable[[str], Classify]


def session_only(surface: str) -> Classify:
    """Return the session's classifier. Raises `ValueError` for any other surface."""
    if surface != SESSION:
        raise ValueError(f"a trace of the surface {surface!r}; expected {SESSION!r}")
    return classify


class TraceFormatError(UsageError):
    """A trace file that cannot be read; the text is `path:line: reason`."""


def save(trace: Trace, path: Path) -> None:
    """Write a trace file, and its folder if missing; the file appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Named for this process: two runs in one folder must not write through the same file.
    part = path.with_suffix(f"{path.suffix}.{os.getpid()}.part")
    with part.open("w", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in lines(trace))
    os.replace(part, path)


def lines(trace: Trace) -> Iterator[str]:
    """Yield the lines of a trace file, without line ends."""
    yield header_line(trace.header)
    marks = sorted(trace.marks, key=lambda mark: mark.after)
    position = 0
    for frame in trace.frames:
        while position < len(marks) and marks[position].after < frame.seq:
            yield mark_line(marks[position])
            position += 1
        yield frame_line(frame)
    for mark in marks[position:]:
        yield mark_line(mark)
    yield end_line(trace.end, trace.stderr)


def header_line(header: Header) -> str:
    """Return the first line of a trace file."""
    return _ASCII.encode({"trace": _header_fields(header)})


def frame_line(frame: Frame) -> str:
    """Return the line of a frame."""
    return _dump(_frame_row(frame))


def mark_line(mark: Mark[Any]) -> str:
    """Return the line of a mark."""
    return _ASCII.encode(_mark_row(mark))


def end_line(end: End, stderr: Iterable[StderrLine] = ()) -> str:
    """Return the last line of a trace file."""
    lines = [{**line._asdict(), "at": round(line.at, 6)} for line in stderr]
    return _dump({"end": str(end), **({"stderr": lines} if lines else {})})


def load(
    path: Path, *, renamer: Renamer | None = None, classify_of: ClassifyOf = session_only
) -> Trace:
    """Return the trace in a file. Raises `TraceFormatError` with `path:line` for an invalid one."""
    with path.open("rb") as source:
        return read(_decode(source), name=str(path), renamer=renamer, classify_of=classify_of)


def read(
    source: Iterable[str],
    *,
    name: str,
    renamer: Renamer | None = None,
    classify_of: ClassifyOf = session_only,
) -> Trace:
    """Return the trace in lines of text, which begin with a header.

    Of a file that was cut off or has lost lines the rest is read; `damage` of the trace describes
    the missing part. Raises `TraceFormatError` with `name:line` for any other invalid line.
    """
    reader: _Reader | None = None
    end: End | None = None
    cut_line = 0
    try:
        for number, line in enumerate(source, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                if reader is None:
                    header, marks = _header(row)
                    reader = _Reader(header, renamer, classify_of(header.surface), marks)
                elif end is not None:
                    raise ValueError("a line after the end")
                else:
                    end = reader.feed(row, number)
            except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
                if reader is not None and not line.endswith("\n"):
                    # Cut off while it was written: the part that is there is still useful.
                    cut_line = number
                    break
                reason = f"no {error}" if isinstance(error, KeyError) else str(error)
                raise TraceFormatError(f"{name}:{number}: not a trace line: {reason}") from error
    except UnicodeDecodeError as error:
        raise TraceFormatError(f"{name}: not UTF-8 text: {error}") from error
    if reader is None:
        raise TraceFormatError(f'{name}:1: empty; a trace begins with a line {{"trace": …}}')
    trace = reader.recorder.trace
    trace.end = end or End.CLOSED
    if cut_line:
        trace.damage.append(cut_off(cut_line))
    elif end is None:
        trace.damage.append("the file has no end line: what came after is not known")
    reader.repair()
    return trace


def cut_off(line: int) -> str:
    """Return the message for a file that was cut off within a line."""
    return f"the file is cut off in line {line}: what came after is not known"


def _decode(source: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines as text; a last line without its end may have been cut inside a character."""
    for line in source:
        yield line.decode("utf-8", "strict" if line.endswith(b"\n") else "replace")


class _Reader:
    """A reader that feeds rows through a recorder, which makes the same frames as a live run."""

    def __init__(
        self, header: Header, renamer: Renamer | None, classify: Classify, marks: int
    ) -> None:
        self._at = 0.0
        self._numbers: list[int] = []
        self._body = from_row if marks == MARKS_VERSION else from_former_row
        self.recorder = Recorder(
            header,
            renamer=renamer,
            classify=classify,
            clock=lambda: self._at,
            max_bytes=1 << 40,
            max_frames=1 << 40,
        )

    def feed(self, row: dict[str, Any], number: int) -> End | None:
        if "end" in row:
            self.recorder.trace.stderr = [
                StderrLine(float(line["at"]), int(line["after"]), str(line["text"]))
                for line in row.get("stderr", ())
            ]
            return End(row["end"])
        at = float(row["at"])
        if at < self._at - CLOCK_TOLERANCE_SECONDS:
            self.recorder.trace.damage.append(time_goes_back(number, self._at - at))
        self._at = at
        if "mark" in row:
            body = self._body(str(row["mark"]), row["data"])
            if body is not None:
                self.recorder.trace.marks.append(Mark(self._at, int(row["after"]), body))
            return None
        raw = row["raw"].encode() if "raw" in row else base64.b64decode(row["raw64"], validate=True)
        self.recorder.record(
            raw,
            Direction(row["dir"]),
            connection=str(row["conn"]),
            origin=Origin(row["origin"]),
            deliberate=bool(row.get("deliberate", False)),
            damage=_damage(row),
        )
        self.recorder.trace.lines.append(number)
        self._numbers.append(int(row["frame"]))
        return None

    def repair(self) -> None:
        """Add missing messages to `damage`; renumber `after` of the marks to the frames left."""
        numbers, trace = self._numbers, self.recorder.trace
        in_order = all(first < second for first, second in pairwise(numbers))

        def position(after: int) -> int:
            return bisect_right(numbers, after) - 1 if in_order else min(after, len(numbers) - 1)

        if in_order:
            trace.damage.extend(_missing_messages(numbers, [mark.after for mark in trace.marks]))
            trace.begins_late = bool(numbers) and numbers[0] > 0
        else:
            trace.damage.append("the numbers of its messages are not in order: was it edited?")
        trace.marks[:] = [_move_mark(mark, position(mark.after)) for mark in trace.marks]
        trace.stderr[:] = [line._replace(after=position(line.after)) for line in trace.stderr]


def _move_mark(mark: Mark[MarkBody], after: int) -> Mark[MarkBody]:
    return mark if mark.after == after else dataclasses.replace(mark, after=after)


def _missing_messages(numbers: list[int], marks: list[int]) -> Iterator[str]:
    """Yield one text about missing messages, nothing if there are none.

    It names the messages around each gap by their numbers in the trace, which has no gaps. `marks`
    are the numbers of the frames before the marks, which may be higher than all `numbers`.
    """
    count = max([*numbers, *marks], default=-1) + 1
    around = enumerate(pairwise([-1, *numbers, count]))
    gaps = [(seq, after - before - 1) for seq, (before, after) in around if after > before + 1]
    if not gaps:
        return
    places = [
        f"{missing} {_gap_place(seq, len(numbers))}" for seq, missing in gaps[:MAX_GAPS_LISTED]
    ]
    if left := gaps[MAX_GAPS_LISTED:]:
        places.append(f"{sum(missing for _, missing in left)} elsewhere")
    yield f"messages are missing: {', '.join(places)}; was the file edited?"


def _gap_place(seq: int, count: int) -> str:
    """Return where messages are missing before the message `seq` of `count`."""
    if seq == 0:
        return "before the first"
    return f"after #{seq - 1}, the last" if seq == count else f"between #{seq - 1} and #{seq}"


def time_goes_back(line: int, seconds: float) -> str:
    """Return the message for a line whose time is before that of the line above."""
    return f"the time goes back by {seconds:.3g} s in line {line}"


def _header(row: dict[str, Any]) -> tuple[Header, int]:
    """Return the header, and the version of the file's marks. Raises `ValueError` if unknown."""
    fields: dict[str, Any] = row["trace"]
    version = fields.get("version")
    if version not in (1, FORMAT_VERSION):
        raise ValueError(f"format version {version!r}; this reads 1 and {FORMAT_VERSION}")
    marks = 1 if version == 1 else fields.get("marks")
    if marks not in (1, MARKS_VERSION):
        raise ValueError(f"marks of version {marks!r}; this reads 1 and {MARKS_VERSION}")
    field_names = {item.name for item in dataclasses.fields(Header)} - {"version", "marks"}
    return Header(**{key: value for key, value in fields.items() if key in field_names}), marks


def _header_fields(header: Header) -> dict[str, Any]:
    """Return the fields of the header; `surface`, `faults` and `given` only if not the default."""
    fields = dataclasses.asdict(header)
    if header.surface == SESSION:
        del fields["surface"]
    for name in ("faults", "given"):
        if not fields[name]:
            del fields[name]
    return fields


def _damage(row: dict[str, Any]) -> Damage | None:
    """Return the damage of a frame's bytes, None if they are whole; format 1 has only a note."""
    if "damage" not in row and "note" not in row:
        return None
    return Damage(DamageKind(row.get("damage", DamageKind.UNKNOWN)), str(row.get("note", "")))


def _frame_row(frame: Frame) -> dict[str, Any]:
    row: dict[str, Any] = {
        "frame": frame.seq,
        "at": round(frame.at, 6),
        "conn": frame.connection,
        "dir": str(frame.direction),
        "origin": str(frame.origin),
    }
    if frame.deliberate:
        row["deliberate"] = True
    if frame.damage is not None:
        row["damage"], row["note"] = str(frame.damage.kind), frame.damage.words
    try:
        row["raw"] = frame.raw.decode("utf-8")
    except UnicodeDecodeError:
        row["raw64"] = base64.b64encode(frame.raw).decode("ascii")
    return row


def _mark_row(mark: Mark[MarkBody]) -> dict[str, Any]:
    data = to_row(mark.body)
    return {"mark": mark.kind, "at": round(mark.at, 6), "after": mark.after, "data": data}


# Made once, since `json.dumps` with such options makes an encoder for each call.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
# The text of a model call may hold a lone surrogate, which has no UTF-8.
_ASCII = json.JSONEncoder(separators=(",", ":"))


def _dump(row: dict[str, Any]) -> str:
    return _ENCODER.encode(row)


def reframe(frame: Frame, *, seq: int, value: Any = MISSING, raw: bytes | None = None) -> Frame:
    """Return a copy of a frame with another seq and, if given, other bytes or JSON; for faults."""
    if raw is None:
        # In ASCII, since a string of a message may hold half a surrogate pair, which has no UTF-8.
        raw = frame.raw if value is MISSING else json.dumps(value).encode()
    parsed = parse(raw) if raw is not frame.raw else frame.json
    match frame.kind:
        case Kind.EVENT if "type" in obj(frame.json):
            kind = Kind.EVENT if isinstance(obj(parsed).get("type"), str) else Kind.MALFORMED
        case Kind.EVENT | Kind.INPUT:
            # The surface's lines have no `type`.
            kind = frame.kind if isinstance(parsed, dict) else Kind.MALFORMED
        case _:
            kind = classify(parsed)
    return dataclasses.replace(frame, seq=seq, raw=raw, json=parsed, kind=kind)
