"""The record of one run: frames in the order seen, marks between them, and the end."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar, cast

from harness.trace.correlation import Correlation, same_id
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import MARKS_VERSION, MarkBody
from harness.trace.surfaces import SESSION

# The version of a trace file; its marks have a version of their own.
FORMAT_VERSION = 2

B = TypeVar("B", bound=MarkBody)
B_co = TypeVar("B_co", bound=MarkBody, covariant=True)


class End(StrEnum):
    """Ways in which a trace ends.

    QUIESCENT: no message can come any more. CLOSED: the harness ended it, or its file has no end.
    TIMED_OUT: an activity of the harness was still outstanding. EXITED: the server ended unasked.
    """

    QUIESCENT = "quiescent"
    CLOSED = "closed"
    TIMED_OUT = "timed-out"
    EXITED = "exited"


@dataclass(frozen=True, slots=True)
class Mark(Generic[B_co]):
    """Something that happened between frames: a step, a gate, a model call.

    `at` is in seconds since the trace began; `after` is the seq of the last frame before the mark,
    -1 if there is none; `body` says what happened.
    """

    at: float
    after: int
    body: B_co

    @property
    def kind(self) -> str:
        """The name of the body's class in files."""
        return self.body.kind


def marks_of(marks: Iterable[Mark[MarkBody]], body: type[B]) -> list[Mark[B]]:
    """Return the marks whose body is of one class, in order."""
    return [cast("Mark[B]", mark) for mark in marks if isinstance(mark.body, body)]


class StderrLine(NamedTuple):
    """A line of the server's standard error: when it was written, after which frame, its text.

    The order relative to the frames next to it is not certain. No rule reads it.
    """

    at: float
    after: int
    text: str


@dataclass(slots=True)
class Header:
    """The data needed to judge the trace again.

    `surface` names the kind of its lines (harness.trace.surface). With `faults` the scenario made
    the server's messages wrong on purpose, so the trace does not describe the server. `given` is
    the set-up of the run that no message shows, as members of a scenario; no rule uses it.
    """

    target: str = ""
    profile: str = ""
    scenario: str = ""
    seed: int = 0
    spec_revision: str = ""
    version: int = FORMAT_VERSION
    marks: int = MARKS_VERSION
    names: dict[str, str] = field(default_factory=dict[str, str])
    capabilities: list[str] = field(default_factory=list[str])
    surface: str = SESSION
    faults: bool = False
    given: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(slots=True)
class Trace:
    """Frames, marks, and the end. Rules must not change it.

    `lines` has the line of each frame in the trace's file, `damage` a description of each part
    that is missing or out of order in that file; both are empty for a live recording.
    `begins_late` says that the beginning of the first connection is missing. `stderr` is the end of
    what the server wrote to its standard error meanwhile.
    """

    header: Header = field(default_factory=Header)
    frames: list[Frame] = field(default_factory=list[Frame])
    marks: list[Mark[MarkBody]] = field(default_factory=list[Mark[MarkBody]])
    end: End = End.CLOSED
    lines: list[int] = field(default_factory=list[int])
    damage: list[str] = field(default_factory=list[str])
    begins_late: bool = False
    stderr: list[StderrLine] = field(default_factory=list[StderrLine])
    _pairs: Correlation = field(init=False, repr=False, compare=False, default_factory=Correlation)
    _paired: int = field(init=False, repr=False, compare=False, default=0)

    @property
    def pairs(self) -> Correlation:
        """The requests and answers among all frames so far."""
        for frame in islice(self.frames, self._paired, None):
            self._paired += 1
            self._pairs.feed(frame)
        return self._pairs

    def before(self, first: Frame, second: Frame) -> bool | None:
        """Return whether `first` came before `second`; None if the order is not known.

        The order is known only within one connection: within one direction; from a request to its
        answer; and from a frame of the target to a frame that was sent after it had been seen,
        since messages that the client has read were written before. The reverse is not known: a
        message seen after a request was sent may have been written before the request arrived.
        """
        if first.connection != second.connection:
            return None
        if first.direction is second.direction:
            return first.seq < second.seq
        if first.direction is Direction.FROM_TARGET and first.seq < second.seq:
            return True
        if second.direction is Direction.FROM_TARGET and second.seq < first.seq:
            return False
        if _answers(second, first):
            return True
        if _answers(first, second):
            return False
        return None

    def line_of(self, seq: int) -> int | None:
        """Return the line of a frame in the trace's file, None if it was not read from a file."""
        return self.lines[seq] if 0 <= seq < len(self.lines) else None

    def marks_of(self, body: type[B]) -> list[Mark[B]]:
        """Return all marks whose body is of one class, in order."""
        return marks_of(self.marks, body)


def _answers(answer: Frame, request: Frame) -> bool:
    return (
        request.kind is Kind.REQUEST
        and answer.kind in (Kind.RESPONSE, Kind.ERROR)
        and same_id(answer.id, request.id)
        and answer.direction is not request.direction
        and request.seq < answer.seq
    )
