"""Recordings by other programs, read as traces: one JSON object per line, with time and direction.

Lines are `{"t": seconds, "dir": "C>S" | "S>C", "msg": {...}}`; `"raw"` and `"rawlen"` stand instead
of `"msg"` for text that was not JSON or was cut; `dir` `##` is a note of the recorder, which may be
a mark of the model's side: `{"mark": "model-call" | "model-end", "data": {...}}`.

A recording does not say how it ended, so its end is `closed`. Its client is not the harness, so the
client's messages are not judged.
"""

import codecs
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from harness.protocol.values import obj, text
from harness.trace import store
from harness.trace.correlation import RequestKey, key_of, request_key
from harness.trace.frame import Damage, DamageKind, Direction, Kind
from harness.trace.logs import SenderOf, is_object_text, read_log
from harness.trace.mark_rows import from_former_row
from harness.trace.marks import Closed, ModelCall, ModelEnd, RecorderNote
from harness.trace.names import PathsOf, Renamer
from harness.trace.recorder import Recorder
from harness.trace.store import ClassifyOf, TraceFormatError
from harness.trace.trace import End, Header, Trace

# The target in a recording's header: the file does not name the server.
TARGET = "a recording"
_DIRECTIONS = {"C>S": Direction.TO_TARGET, "S>C": Direction.FROM_TARGET}
_NOTE = "##"
# The marks of the model's side that a recording can have.
_MODEL_MARKS = (ModelCall.kind, ModelEnd.kind)
# The recorder's note that the server closed its output; another process follows.
_END_OF_OUTPUT = "server stdout EOF"

Names = Mapping[str, str]


def load_any(
    path: Path,
    paths_of: PathsOf,
    *,
    names: Names | None = None,
    candidates: Sequence[Names] = (),
    classify_of: ClassifyOf = store.session_only,
    sender_of: SenderOf = lambda _: "",
) -> Trace:
    """Load a trace, a recording or another program's log, whichever its first line shows.

    `names` are a profile's renames. Without them a trace is read with those of its header, a
    recording with the first of `candidates` whose wire names all occur. `classify_of` returns the
    classifier of a surface; recordings are of the session. `sender_of` is that of `read_log`.
    Raises `TraceFormatError` if the file is none of them, or has an invalid line.
    """
    first = _first_line(path)
    if "trace" in first:
        header_names = names if names is not None else _header_names(first)
        return store.load(path, renamer=Renamer(header_names, paths_of), classify_of=classify_of)
    lines = _text_of(path).split("\n")
    if names is None:
        names = guess_names(lines, candidates)
    if _is_entry(first):
        return read(lines, name=str(path), names=names, paths_of=paths_of)
    log = read_log("\n".join(lines), sender_of)
    if not log.entries:
        raise TraceFormatError(
            f'{path}:1: neither a trace, which begins with {{"trace": …}}, nor a recording, whose '
            'lines are {"t": …, "dir": "C>S" | "S>C", "msg": …}, nor a log with JSON-RPC messages'
        )
    reader = _Reader(
        Header(target=TARGET, scenario=path.stem, names=dict(names)), Renamer(names, paths_of)
    )
    reader.trace.damage += log.notes
    for number, entry in log.entries:
        reader.feed(entry, number)
    return reader.finish()


def _text_of(path: Path) -> str:
    """Return a file's text, by its byte order mark if it has one. Raises `TraceFormatError`."""
    data = path.read_bytes()
    encoding = "utf-16" if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    try:
        # As text files are read: any end of a line is one.
        return io.TextIOWrapper(io.BytesIO(data), encoding).read()
    except UnicodeDecodeError as error:
        raise TraceFormatError(f"{path}: not UTF-8 text: {error}") from error


def read(lines: Iterable[str], *, name: str, names: Names, paths_of: PathsOf) -> Trace:
    """Return a recording's lines as a trace.

    A last line that was cut off is left out and added to `damage` of the trace. Raises
    `TraceFormatError` with `name:line` for any other invalid line.
    """
    header = Header(target=TARGET, scenario=Path(name).stem, names=dict(names))
    reader = _Reader(header, Renamer(names, paths_of))
    lines = list(lines)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            reader.feed(json.loads(line), number)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            # A text that ends with a line end gives a last line without text.
            if number == len(lines) > 1 and isinstance(error, json.JSONDecodeError):
                reader.trace.damage.append(store.cut_off(number))
                break
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise TraceFormatError(
                f"{name}:{number}: not a line of a recording: {reason}"
            ) from error
    return reader.finish()


def _late_beginning(trace: Trace) -> str:
    """Return what a recording lacks of its beginning, "" if its client initialized."""
    sent = [frame for frame in trace.frames if not frame.from_target]
    if trace.frames and not sent:
        return "no message of the client (C>S) is in it: the server is judged without its requests"
    if trace.frames and trace.frames[0].kind in (Kind.RESPONSE, Kind.ERROR):
        return "it begins with an answer: what was sent before its beginning is not known"
    first = [frame for frame in sent if frame.connection == sent[0].connection]
    if any(frame.method == "initialize" for frame in first) or not sent:
        return ""
    return "there is no initialize in it: what was sent before its beginning is not known"


def guess_names(lines: Iterable[str], candidates: Iterable[Names]) -> Names:
    """Return the first of `candidates` whose wire names all occur as members, else {}."""
    recording = "\n".join(lines)
    for names in candidates:
        if names and all(f'"{wire}":' in recording for wire in names.values()):
            return names
    return {}


class _Reader:
    """A reader that feeds entries through a recorder, which makes the same frames as a live run.

    A process that was started again is another connection: its ids begin anew.
    """

    def __init__(self, header: Header, renamer: Renamer) -> None:
        self._at = 0.0
        self._connection = 1
        self._ended = False
        self._open: set[RequestKey | None] = set()
        self._handshakes: set[RequestKey | None] = set()
        self._recorder = Recorder(
            header, renamer=renamer, clock=lambda: self._at, max_bytes=1 << 40, max_frames=1 << 40
        )
        self.trace = self._recorder.trace

    def feed(self, entry: dict[str, Any], number: int) -> None:
        at = float(entry["t"])
        if at < self._at - store.CLOCK_TOLERANCE_SECONDS:
            self.trace.damage.append(store.time_goes_back(number, self._at - at))
        self._at = at
        if entry["dir"] == _NOTE:
            self._record_note(obj(entry["msg"]))
            return
        if entry["dir"] not in _DIRECTIONS:
            raise ValueError(f"dir {entry['dir']!r}; expected C>S, S>C or ##")
        direction = _DIRECTIONS[entry["dir"]]
        self._note_second_handshake(entry, number)
        if self._ended:
            # A process that has ended owes nothing.
            self._recorder.mark(Closed(f"c{self._connection}"))
            self._connection, self._ended = self._connection + 1, False
        raw, damage = _bytes_of(entry)
        to_target = direction is Direction.TO_TARGET
        frame = self._recorder.record(
            raw,
            direction,
            connection=f"c{self._connection}",
            deliberate=to_target and ("raw" in entry or self._is_unanswerable(obj(entry["msg"]))),
            damage=damage,
        )
        self.trace.lines.append(number)
        if frame.kind in (Kind.RESPONSE, Kind.ERROR) and not to_target:
            self._open.discard(key_of(frame))

    def finish(self) -> Trace:
        """Return the trace of what was fed; its damage says if it lacks the beginning."""
        trace = self.trace
        trace.end = End.CLOSED
        if late := _late_beginning(trace):
            trace.damage.insert(0, late)
            trace.begins_late = True
        return trace

    def _note_second_handshake(self, entry: Mapping[str, Any], number: int) -> None:
        """Begin another connection at an `initialize` with the id of an earlier one."""
        message = obj(entry.get("msg"))
        if entry["dir"] != "C>S" or message.get("method") != "initialize":
            return
        key = request_key("", Direction.TO_TARGET, message.get("id"))
        if key in self._handshakes and not self._ended:
            words = f"initialize with the same id again in line {number}: read as another session"
            self.trace.damage.append(words)
            self._ended = True
        self._handshakes.add(key)

    def _record_note(self, data: Mapping[str, Any]) -> None:
        if data.get("mark") in _MODEL_MARKS:
            body = from_former_row(data["mark"], obj(data.get("data")))
            if body is not None:
                self._recorder.mark(body)
            return
        status = data.get("rc")
        note = text(data.get("note"))
        ended = note.startswith(_END_OF_OUTPUT)
        self._recorder.mark(RecorderNote(note, ended, status if type(status) is int else None))
        self._ended = self._ended or ended

    def _is_unanswerable(self, message: Mapping[str, Any]) -> bool:
        """Return whether a request has no usable id, or that of an open one; note its id as open.

        Such a request probes the server, as malformed text does; the specification does not define
        its answer.
        """
        if "method" not in message or "id" not in message:
            return False
        key = request_key(f"c{self._connection}", Direction.TO_TARGET, message["id"])
        if key is None:
            return True
        twice = key in self._open
        self._open.add(key)
        return twice


def _bytes_of(entry: Mapping[str, Any]) -> tuple[bytes, Damage | None]:
    """Return the bytes of an entry and their damage, None if they are whole."""
    if "raw" not in entry:
        if isinstance(entry["msg"], str) and is_object_text(entry["msg"]):
            return entry["msg"].encode("utf-8", "surrogatepass"), None
        message = json.dumps(entry["msg"], ensure_ascii=False, separators=(",", ":"))
        return message.encode("utf-8", "surrogatepass"), None
    raw = cast("str", entry["raw"]).encode("utf-8", "surrogatepass")
    length = int(entry.get("rawlen", len(raw)))
    kept_length = len(entry["raw"])
    if length <= kept_length:
        return raw, None
    return raw, Damage(DamageKind.NOT_KEPT, f"a line of {length}; the recording kept {kept_length}")


def _first_line(path: Path) -> dict[str, Any]:
    """Return the first line that is not blank as an object, {} if it is not a JSON object."""
    with path.open("rb") as source:
        for line in source:
            if line.strip():
                try:
                    return obj(json.loads(line))
                except (ValueError, RecursionError):
                    return {}
    return {}


def _is_entry(row: Mapping[str, Any]) -> bool:
    return "t" in row and row.get("dir") in (*_DIRECTIONS, _NOTE) and ("msg" in row or "raw" in row)


def _header_names(row: Mapping[str, Any]) -> Names:
    names = obj(obj(row["trace"]).get("names"))
    return {str(target): str(wire) for target, wire in names.items()}
