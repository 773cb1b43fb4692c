"""The recorder: it makes frames of raw bytes before anything parses them, for listeners."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from harness.errors import TargetError
from harness.protocol.values import MISSING, obj, text
from harness.trace.correlation import RequestKey, request_key
from harness.trace.frame import (
    Classify,
    Damage,
    Direction,
    Frame,
    Kind,
    Origin,
    classify,
    opposite,
    parse,
)
from harness.trace.marks import MarkBody
from harness.trace.names import Renamer
from harness.trace.trace import B, Header, Mark, Trace

Listener = Callable[[Frame], None]

# Limits of one scenario's trace; a server that exceeds them is ended.
MAX_TRACE_BYTES = 192 * 1024 * 1024
MAX_TRACE_FRAMES = 400_000


class TraceFull(TargetError):
    """An error for a target that writes more than one trace may hold."""


class Recorder:
    """A recorder of one trace.

    `clock` returns seconds and never goes back; it is a parameter so that tests control time.
    `classify` is that of the surface which the header names.
    """

    def __init__(
        self,
        header: Header | None = None,
        *,
        renamer: Renamer | None = None,
        classify: Classify = classify,
        clock: Callable[[], float] = time.monotonic,
        max_bytes: int = MAX_TRACE_BYTES,
        max_frames: int = MAX_TRACE_FRAMES,
    ) -> None:
        self.trace = Trace(header or Header())
        self._renamer = renamer
        self._classify = classify
        self._clock = clock
        self._start = clock()
        self._bytes = 0
        self._max_bytes = max_bytes
        self._max_frames = max_frames
        self._pending: dict[RequestKey, str] = {}
        self.listeners: list[Listener] = []
        self.mark_listeners: list[Callable[[Mark[MarkBody]], None]] = []

    def record(
        self,
        raw: bytes,
        direction: Direction,
        *,
        connection: str = "c1",
        origin: Origin | None = None,
        deliberate: bool = False,
        damage: Damage | None = None,
    ) -> Frame:
        """Append a message to the trace as a frame, notify the listeners, and return the frame.

        Raises `TraceFull` if the trace would exceed `max_bytes` or `max_frames`.
        """
        seconds = self._clock() - self._start
        self._bytes += len(raw)
        if self._bytes > self._max_bytes or len(self.trace.frames) >= self._max_frames:
            raise TraceFull(
                f"more than {self._max_frames} messages or {self._max_bytes >> 20} MiB in one trace"
            )
        value = parse(raw) if damage is None else MISSING
        kind = self._classify(value, direction)
        frame = Frame(
            seq=len(self.trace.frames),
            at=seconds,
            connection=connection,
            direction=direction,
            origin=origin
            or (Origin.HARNESS if direction is Direction.TO_TARGET else Origin.TARGET),
            raw=raw,
            json=self._apply_renames(value, kind, direction, connection),
            kind=kind,
            deliberate=deliberate,
            damage=damage,
        )
        self.trace.frames.append(frame)
        for listener in self.listeners:
            listener(frame)
        return frame

    def mark(self, body: B) -> Mark[B]:
        """Append a mark to the trace, notify the listeners of marks, and return the mark."""
        mark = Mark(self._clock() - self._start, len(self.trace.frames) - 1, body)
        self.trace.marks.append(mark)
        for listener in self.mark_listeners:
            listener(mark)
        return mark

    def take_snapshot(self) -> Trace:
        """Return the trace so far, to be judged; later frames and marks go to a copy of it."""
        snapshot = self.trace
        self.trace = replace(snapshot, frames=list(snapshot.frames), marks=list(snapshot.marks))
        return snapshot

    @property
    def last_frame_at(self) -> float:
        """Seconds at which the last frame was seen, 0 before the first."""
        return self.trace.frames[-1].at if self.trace.frames else 0.0

    def elapsed_seconds(self) -> float:
        """Return seconds since the trace began."""
        return self._clock() - self._start

    def _apply_renames(self, value: Any, kind: Kind, direction: Direction, connection: str) -> Any:
        """Return a message with the profile's renames; for an answer, those of its request."""
        if self._renamer is None or not isinstance(value, dict):
            return value
        message = obj(cast("Any", value))
        has_params = kind in (Kind.REQUEST, Kind.NOTIFICATION)
        key = request_key(
            connection, direction if has_params else opposite(direction), message.get("id")
        )
        if has_params:
            method = text(message["method"])
            if kind is Kind.REQUEST and key is not None:
                self._pending[key] = method
            return self._renamer.apply(message, method, "params")
        if kind is Kind.RESPONSE and key is not None:
            requested = self._pending.pop(key, "")
            return self._renamer.apply(message, requested, "result") if requested else message
        return message
