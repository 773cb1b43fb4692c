"""Limits of time from one message to another, and the times that a trace shows.

Times are those at which the recorder saw the messages; nothing is measured anew.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.protocol.values import dig, text
from harness.trace.correlation import same_id
from harness.trace.frame import Frame, Kind
from harness.trace.trace import Trace

MAX_LIMIT_SECONDS = 600.0
SHOWN_PERCENTS = (50, 95, 100)
_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s)")


def parse_duration(value: object) -> float:
    """Return the seconds of a text such as `200ms` or `1.5s`. Raises `ValueError`."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    seconds = float(match[1]) / (1000 if match[2] == "ms" else 1) if match else 0.0
    if not 0 < seconds <= MAX_LIMIT_SECONDS:
        raise ValueError(f"found {value!r}; expected a time such as 200ms or 1.5s, at most 600s")
    return seconds


def show_duration(seconds: float) -> str:
    """Return seconds as a text: `812 ms`, or `1.5 s` from ten seconds on."""
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile of values in ascending order; 100 is the largest."""
    return values[max(0, math.ceil(percent / 100 * len(values)) - 1)]


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """At most `seconds` from one message to another, for `percent` of the samples of a run.

    `start` and `end` are methods, `end` is "" for the answer to `start`. With `step`, such as
    `turns/plain-turn:9`, it is the limit of a scenario's step, and both are words about messages.
    If the server's profile promises it (`is_promised`), it is a MUST, else a SHOULD.
    """

    start: str
    end: str
    seconds: float
    percent: float = 100.0
    is_promised: bool = False
    step: str = ""

    @property
    def name(self) -> str:
        """Return the two messages: `turn/start -> turn/started`."""
        return f"{self.start} -> {self.end or 'its answer'}"


@dataclass(frozen=True, slots=True)
class Times:
    """The seconds that one play shows for a limit."""

    limit: TimeLimit
    seconds: tuple[float, ...]

    @property
    def is_slow(self) -> bool:
        """Return whether a time is over the limit."""
        return max(self.seconds, default=0.0) > self.limit.seconds


def measure(trace: Trace, limit: TimeLimit) -> Times:
    """Return the times from each `start` to the first `end` after it, on its connection and thread.

    A `start` that was rejected, or repeated before its `end`, gives no time; nor does a message
    that is malformed on purpose.
    """
    waiting: dict[tuple[str, str], Frame] = {}
    seconds: list[float] = []
    for frame in trace.frames:
        if frame.deliberate:
            continue
        if frame.kind in (Kind.RESPONSE, Kind.ERROR):
            key = next((key for key, start in waiting.items() if _answers(frame, start)), None)
            ends = key is not None and frame.kind is Kind.RESPONSE and not limit.end
            if key is not None and (ends or frame.kind is Kind.ERROR):
                start = waiting.pop(key)
                seconds += [frame.at - start.at] if ends else []
        elif limit.end and frame.method == limit.end:
            key = next((key for key in _keys(frame) if key in waiting), None)
            if key is not None:
                seconds.append(frame.at - waiting.pop(key).at)
        if frame.method == limit.start:
            own = frame.connection, repr(frame.id)
            waiting[_keys(frame)[0] if limit.end else own] = frame
    return Times(limit, tuple(seconds))


def _answers(frame: Frame, start: Frame) -> bool:
    return (
        start.kind is Kind.REQUEST
        and frame.connection == start.connection
        and frame.direction is not start.direction
        and same_id(frame.id, start.id)
    )


def _keys(frame: Frame) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the places at which a message can wait: that of its thread, and that of none."""
    thread = text(dig(frame.params, "threadId")) or text(dig(frame.params, "thread", "id"))
    return (frame.connection, thread), (frame.connection, "")
