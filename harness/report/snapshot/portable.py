"""A transcript of a trace: the same for every run of one server, on every machine.

As in `trace.normalise`, ids become ordinals, folders and times names, and a request stands just
before its answer. Beyond that, members of an object have one order, consecutive deltas are one,
messages about several threads are grouped by thread between two answers, and secrets are hidden.
Two messages have an order if `Trace.before` knows it: one connection and one direction.
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import harness
from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.report.snapshot.message import Message, Transcript, sort_members
from harness.trace.correlation import as_id
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import Setup
from harness.trace.normalise import ADDRESS, Normaliser
from harness.trace.record.masks import Masker, secret_values
from harness.trace.trace import Trace

MAX_DEPTH: Final = 50
"""Levels of a message; deeper ones would exceed what YAML and JSON can be written with."""
MAX_TEXT_CHARACTERS: Final = 2000
"""Longer texts are shortened to half of this, with a digest of the whole."""
_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\b[0-9a-f]{32,64}\b")
_TIME = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d[:-]\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?(?![\d-])"
)
_ROLLOUT = re.compile(r"\d{4}/\d\d/\d\d/rollout-[0-9T:.Z_-]+")
_PROGRAM = re.compile(r"(?<![\w/.])/(?:usr/)?(?:local/)?bin/(bash|dash|sh|zsh)\b")
_MOMENT = re.compile(
    r"(?:.*(?:At|AtMs|_at|_at_ms|[dD]urationMs|duration_ms|[eE]lapsedMs|[lL]atencyMs|[tT]imestamp))"
    r"|duration|elapsed|time|ts"
)
# Seconds, milliseconds, microseconds and nanoseconds since 1970, between 2017 and 2049.
_UNITS = (1, 1_000, 1_000_000, 1_000_000_000)
_SINCE, _UNTIL = 1_500_000_000, 2_500_000_000


def is_moment(value: Any, member: str) -> bool:
    """Return whether a number is a time: by its member's name, or since 1970 as in `_UNITS`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if _MOMENT.fullmatch(member):
        return True
    return any(_SINCE * unit <= value <= _UNTIL * unit for unit in _UNITS)


class Texts:
    """Names for machine, time and ids in the texts of one transcript; ids are numbered in order."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        machine = {
            str(Path(folder)): name
            for path, name in ((Path.home(), "<user>"), (Path(tempfile.gettempdir()), "<tmp>"))
            for folder in (path, path.resolve())
            if len(str(folder)) > 1
        }
        self._folders = sorted(machine.items(), key=lambda item: -len(item[0]))

    def replace_names(self, text: str) -> str:
        """Return the text with names for parts that depend on the machine or the moment."""
        text = _ROLLOUT.sub("<date>/rollout-", text)
        for folder, name in self._folders:
            if folder in text:
                text = re.sub(rf"(?<![\w/]){re.escape(folder)}(?![\w.-])", name, text)
        text = _UUID.sub(lambda match: self._id_name(match[0]), text)
        text = _TIME.sub("<time>", text)
        text = ADDRESS.sub(r"\1:<port>", text)
        return _PROGRAM.sub(r"\1", text)

    def _id_name(self, uuid: str) -> str:
        return self._ids.setdefault(uuid.lower(), f"<id {len(self._ids) + 1}>")


def shorten(text: str) -> str:
    """Return the text, or of a very long one its beginning, its length and a digest."""
    if len(text) <= MAX_TEXT_CHARACTERS:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{text[: MAX_TEXT_CHARACTERS // 2]}<{len(text)} characters in all, digest {digest}>"


def cut_nested(value: Any, depth: int = 0) -> Any:
    """Return the value with words in the place of what is nested deeper than `MAX_DEPTH`."""
    if not isinstance(value, dict | list):
        return value
    if depth == MAX_DEPTH:
        return f"<nested deeper than {MAX_DEPTH}>"
    if isinstance(value, dict):
        return {name: cut_nested(member, depth + 1) for name, member in obj(value).items()}  # pyright: ignore[reportUnknownArgumentType]
    return [cut_nested(element, depth + 1) for element in arr(value)]  # pyright: ignore[reportUnknownArgumentType]


_ASKS_OR_ANSWERS = (Kind.REQUEST, Kind.RESPONSE, Kind.ERROR)
SECRET: Final = "<secret>"
_MASK = re.compile(r"<secret \d+>")
_NAMED_BY_ID = re.compile(r"(?:.*(?:I|_i)|i)[dD]s?")
# An id that cannot be mistaken for a word: long, or with a digit after a separator.
_DISTINCTIVE_ID = re.compile(r".{12,}|.*[_-].*\d.*|.*\d.*[_-].*", re.DOTALL)


def transcript_of(
    trace: Trace, *, handshake: bool, environment: Mapping[str, str] | None = None
) -> Transcript:
    """Return the transcript of a trace.

    Secrets are the values of variables of `environment` (this process's, if not given) whose names
    say so, and anything that looks like a secret. Without `handshake` the messages that start the
    process are left out: of the scenarios that share a process, only the first has them.
    """
    frames = trace.frames if handshake else trace.frames[_count_handshake_frames(trace) :]
    shown_trace = Trace(trace.header, list(frames), trace.marks, trace.end)
    masker = Masker(secrets=secret_values(os.environ if environment is None else environment))
    return Transcript(tuple(_Portable(shown_trace, masker).messages()), str(trace.end))


def _count_handshake_frames(trace: Trace) -> int:
    """Return the number of frames that start the process; 0 if it ran already."""
    first = trace.frames[0] if trace.frames else None
    if first is None or first.method != "initialize" or first.connection != "c1":
        return 0
    ends = [mark.after for mark in trace.marks_of(Setup) if not mark.body.active]
    return ends[0] + 1 if ends else 0


class _Portable(Normaliser):
    """Normaliser of one trace, for a transcript that is compared with those of other machines."""

    def __init__(self, trace: Trace, masker: Masker) -> None:
        super().__init__(trace)
        self._masker, self._texts = masker, Texts()
        # A server's own files lie elsewhere on each machine; the reference server's are here.
        installed = str(Path(harness.__file__).resolve().parents[1])
        self._paths = [path for path in self._paths if path[0] != installed]
        self._paths.append((installed, "<installed>"))
        self._paths.sort(key=lambda item: -len(item[0]))
        # A short id, such as "1", counts as an id only if it is the whole value of a member.
        distinctive = sorted(filter(_DISTINCTIVE_ID.fullmatch, self._names), key=len, reverse=True)
        alternatives = "|".join(map(re.escape, distinctive))
        self._pattern = re.compile(rf"(?<!\w)({alternatives})(?!\w)") if distinctive else None

    def messages(self) -> Iterator[Message]:
        """Yield the messages in their order, each as a value."""
        for frames in _join_deltas(self._by_thread(self._ordered_frames())):
            frame = frames[0]
            several = len(self._connections) > 1
            client = self._connections.index(frame.connection) + 1 if several else 0
            sent = frame.direction is Direction.TO_TARGET
            if frame.json is MISSING or frame.kind is Kind.INPUT:
                words = self._normalise_text(
                    self._mask(frame.raw.decode("utf-8", "backslashreplace"))
                )
                yield Message(sent, words, client, is_garbled=frame.kind is not Kind.INPUT)
                continue
            value = self._normalise(self._without_secrets(cut_nested(frame.json)))
            if frame.kind in _ASKS_OR_ANSWERS and isinstance(value, dict):
                value["id"] = self._request_name(frame)
            if len(frames) > 1 and isinstance(value, dict):
                delta = "".join(text(dig(piece.params, "delta")) for piece in frames)
                value["params"]["delta"] = self._normalise_text(self._mask(delta))
            yield Message(sent, sort_members(value), client)

    def _without_secrets(self, message: Any) -> Any:
        """Return the message with its secrets masked, found in its text and by member names."""
        before = json.dumps(message, ensure_ascii=False)
        after = self._mask(before)
        try:
            return message if before == after else json.loads(after)
        except ValueError:  # A mask covered a quote, so no part of it can be trusted.
            return SECRET

    def _mask(self, words: str) -> str:
        """Return the text with its secrets masked, unnumbered: numbers depend on the machine."""
        return _MASK.sub(SECRET, self._masker.mask_text(words))

    def _by_thread(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Yield the frames, with consecutive notifications grouped by thread."""
        for _, group in groupby(frames, key=_notification_run_key()):
            run = list(group)
            yield from sorted(run, key=self._thread_number) if len(run) > 1 else run

    def _thread_number(self, frame: Frame) -> int:
        thread = text(dig(frame.params, "threadId")) or text(dig(frame.params, "thread", "id"))
        name = self._names.get(thread, "")
        return int(name.strip("<>").rpartition(" ")[2]) if name.startswith("<thread ") else 0

    def _normalise(self, value: Any, key: str = "") -> Any:
        if key == "requestId" and as_id(value) in self._server_request_ids:
            return super()._normalise(value, key)
        if is_moment(value, key):
            return "<time>"
        if isinstance(value, dict):
            members = obj(value)  # pyright: ignore[reportUnknownArgumentType]
            return {
                self._normalise_text(name): self._normalise(member, name)
                for name, member in members.items()
            }
        if isinstance(value, list):
            return [self._normalise(element, key) for element in arr(value)]  # pyright: ignore[reportUnknownArgumentType]
        if not isinstance(value, str):
            return value
        if key == "userAgent":
            return "<user agent>"
        if key and _NAMED_BY_ID.fullmatch(key) and value in self._names:
            return self._names[value]
        return super()._normalise(value, key)

    def _normalise_text(self, value: str) -> str:
        for prefix, name in self._paths:
            value = value.replace(prefix, name)
        if self._pattern is not None:
            value = self._pattern.sub(lambda match: self._names[match[0]], value)
        return shorten(self._texts.replace_names(value))


def _notification_run_key() -> Any:
    """Return a key for `groupby`: equal for consecutive notifications, else new each time."""
    last: list[Any] = [0, None]

    def key(frame: Frame) -> int:
        kind = frame.connection if _is_server_notification(frame) else None
        if kind is None or kind != last[1]:
            last[0] += 1
        last[1] = kind
        return last[0]

    return key


def _is_server_notification(frame: Frame) -> bool:
    return frame.kind is Kind.NOTIFICATION and frame.direction is Direction.FROM_TARGET


def _join_deltas(frames: Iterable[Frame]) -> Iterator[list[Frame]]:
    """Yield the frames one by one, but consecutive deltas of one text together."""
    pieces: list[Frame] = []
    for frame in frames:
        if pieces and not (_delta_key(frame) and _delta_key(frame) == _delta_key(pieces[0])):
            yield pieces
            pieces = []
        if _delta_key(frame):
            pieces.append(frame)
        else:
            yield [frame]
    if pieces:
        yield pieces


def _delta_key(frame: Frame) -> str:
    """Return a key of the text that this delta belongs to; "" if it is not a delta."""
    params = obj(frame.params)
    if not _is_server_notification(frame) or not isinstance(params.get("delta"), str):
        return ""
    other_params = {name: value for name, value in params.items() if name != "delta"}
    return f"{frame.connection} {frame.method} {other_params}"
