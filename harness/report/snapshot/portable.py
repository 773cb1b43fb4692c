"""A transcript of a trace: the same for every run of one server, on every machine.

As in `trace.normalise`, ids become ordinals, folders and times names, and a request stands just
before its answer. Beyond that, members of an object have one order, deltas that follow each other
are one, messages about several threads stand together by thread between two answers, and secrets
are hidden. What orders two messages is what `Trace.before` knows: one connection and one direction.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.report.snapshot.message import Message, Transcript, ordered
from harness.report.snapshot.texts import Texts, cut, is_moment
from harness.trace.correlation import as_id
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import Setup
from harness.trace.normalise import Normaliser
from harness.trace.record.masks import Masker, secret_values
from harness.trace.trace import Trace

_ASKS_OR_ANSWERS = (Kind.REQUEST, Kind.RESPONSE, Kind.ERROR)
SECRET: Final = "<secret>"
_MASK = re.compile(r"<secret \d+>")
_NAMED_BY_ID = re.compile(r"(?:.*(?:I|_i)|i)[dD]s?")
# An id that is told from words in a text: long, or with a digit after a separator.
_TELLING = re.compile(r".{12,}|.*[_-].*\d.*|.*\d.*[_-].*", re.DOTALL)


def transcript_of(
    trace: Trace, *, handshake: bool, environment: Mapping[str, str] | None = None
) -> Transcript:
    """The transcript of a trace.

    The values of those variables of `environment` (this process's, if not given) whose names say
    so are secrets, as is what looks like one.

    Without `handshake` that of the process is left out: the scenarios that share a process would
    otherwise differ by which of them came first.
    """
    frames = trace.frames if handshake else trace.frames[_handshake(trace) :]
    shown = Trace(trace.header, list(frames), trace.marks, trace.end)
    masker = Masker(known=secret_values(os.environ if environment is None else environment))
    return Transcript(tuple(_Portable(shown, masker).messages()), str(trace.end))


def _handshake(trace: Trace) -> int:
    """Return the number of frames that start the process; 0 if it ran already."""
    first = trace.frames[0] if trace.frames else None
    if first is None or first.method != "initialize" or first.connection != "c1":
        return 0
    ends = [mark.after for mark in trace.marks_of(Setup) if not mark.body.active]
    return ends[0] + 1 if ends else 0


class _Portable(Normaliser):
    """Names for one trace, for a text that other machines compare with theirs."""

    def __init__(self, trace: Trace, masker: Masker) -> None:
        super().__init__(trace)
        self._masker, self._texts = masker, Texts()
        # What ships with a server lies elsewhere on each machine: with ours, beside this package.
        installed = str(Path(__file__).parents[2])
        self._paths = [one for one in self._paths if one[0] != installed]
        self._paths.append((installed, "<installed>"))
        self._paths.sort(key=lambda item: -len(item[0]))
        # A short id, such as "1", is an id only where it is the whole of an id's member.
        found = sorted(filter(_TELLING.fullmatch, self._names), key=len, reverse=True)
        alternatives = "|".join(map(re.escape, found))
        self._pattern = re.compile(rf"(?<!\w)({alternatives})(?!\w)") if found else None

    def messages(self) -> Iterator[Message]:
        """The messages in their order, each as a value."""
        for frames in _joined(self._by_thread(self._ordered())):
            frame = frames[0]
            several = len(self._connections) > 1
            client = self._connections.index(frame.connection) + 1 if several else 0
            sent = frame.direction is Direction.TO_TARGET
            if frame.json is MISSING or frame.kind is Kind.INPUT:
                shown = self._text(self._masked(frame.raw.decode("utf-8", "backslashreplace")))
                yield Message(sent, shown, client, garbled=frame.kind is not Kind.INPUT)
                continue
            value = self._value(self._without_secrets(frame.json))
            if frame.kind in _ASKS_OR_ANSWERS and isinstance(value, dict):
                value["id"] = self._request(frame)
            if len(frames) > 1 and isinstance(value, dict):
                whole = "".join(text(dig(piece.params, "delta")) for piece in frames)
                value["params"]["delta"] = self._text(self._masked(whole))
            yield Message(sent, ordered(value), client)

    def _without_secrets(self, message: Any) -> Any:
        """The message with masks; secrets are found in its text, by the names of members too."""
        before = json.dumps(message, ensure_ascii=False)
        after = self._masked(before)
        try:
            return message if before == after else json.loads(after)
        except ValueError:  # A mask took a quote with it: no part of that can be trusted.
            return SECRET

    def _masked(self, words: str) -> str:
        """Masks have no numbers: how many secrets there are is of the machine."""
        return _MASK.sub(SECRET, self._masker.text(words))

    def _by_thread(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Notifications that come between the same two answers, those of each thread together."""
        for _, group in groupby(frames, key=_run_of_notifications()):
            run = list(group)
            yield from sorted(run, key=self._thread) if len(run) > 1 else run

    def _thread(self, frame: Frame) -> int:
        thread = text(dig(frame.params, "threadId")) or text(dig(frame.params, "thread", "id"))
        name = self._names.get(thread, "")
        return int(name.strip("<>").rpartition(" ")[2]) if name.startswith("<thread ") else 0

    def _value(self, value: Any, key: str = "") -> Any:
        if key == "requestId" and as_id(value) in self._asked:
            return super()._value(value, key)
        if is_moment(value, key):
            return "<time>"
        if isinstance(value, dict):
            members = obj(value)  # pyright: ignore[reportUnknownArgumentType]
            return {self._text(name): self._value(one, name) for name, one in members.items()}
        if isinstance(value, list):
            return [self._value(one, key) for one in arr(value)]  # pyright: ignore[reportUnknownArgumentType]
        if not isinstance(value, str):
            return value
        if key == "userAgent":
            return "<user agent>"
        if key and _NAMED_BY_ID.fullmatch(key) and value in self._names:
            return self._names[value]
        return super()._value(value, key)

    def _text(self, value: str) -> str:
        for prefix, name in self._paths:
            value = value.replace(prefix, name)
        if self._pattern is not None:
            value = self._pattern.sub(lambda match: self._names[match[0]], value)
        return cut(self._texts.named(value))


def _run_of_notifications() -> Any:
    """A key for `groupby`: equal for notifications that follow each other, else new each time."""
    last: list[Any] = [0, None]

    def key(frame: Frame) -> int:
        kind = frame.connection if _is_told(frame) else None
        if kind is None or kind != last[1]:
            last[0] += 1
        last[1] = kind
        return last[0]

    return key


def _is_told(frame: Frame) -> bool:
    return frame.kind is Kind.NOTIFICATION and frame.direction is Direction.FROM_TARGET


def _joined(frames: Iterable[Frame]) -> Iterator[list[Frame]]:
    """The frames one by one, but deltas of one text that follow each other together."""
    pieces: list[Frame] = []
    for frame in frames:
        if pieces and not (_delta(frame) and _delta(frame) == _delta(pieces[0])):
            yield pieces
            pieces = []
        if _delta(frame):
            pieces.append(frame)
        else:
            yield [frame]
    if pieces:
        yield pieces


def _delta(frame: Frame) -> str:
    """Return a key of the text that this piece belongs to; "" for no piece of a text."""
    params = obj(frame.params)
    if not _is_told(frame) or not isinstance(params.get("delta"), str):
        return ""
    rest = {name: one for name, one in params.items() if name != "delta"}
    return f"{frame.connection} {frame.method} {rest}"
