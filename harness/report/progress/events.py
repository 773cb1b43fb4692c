"""The events of a run, a fuzz campaign or a recording, in the order in which they are written."""

import dataclasses
import json
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, TypeAlias, get_args

from pydantic import TypeAdapter

from harness.protocol.escapes import json_text
from harness.protocol.values import obj

MAX_TEXT_CHARACTERS = 400
"""Longer texts of findings and reasons are cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """The first event. `activity` is `run`, `fuzz` or `record`.

    `total` is the number of scenarios and races, 0 if it is unknown; `lanes` that of lanes, 0 if it
    is not chosen yet. `trace` is the file of the only conversation of a recording. `pid` is the
    process that writes, by which a reader sees that it was killed.
    """

    kind: ClassVar[str] = "run-started"
    run: str
    activity: str = "run"
    target: str = ""
    command: str = ""
    pid: int = 0
    total: int = 0
    lanes: int = 0
    trace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayStarted:
    """A lane begins a scenario or race. `again`: it failed beside others and is replayed alone."""

    kind: ClassVar[str] = "play-started"
    scenario: str
    lane: str
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    """A lane waits in a step, described by `step`. Only those that a sample finds are written.

    `waits_for` are the words of what it waits for, "" if unknown, in silence of at most `bound`
    seconds from now on.
    """

    kind: ClassVar[str] = "step-started"
    scenario: str
    lane: str
    step: str
    waits_for: str = ""
    bound: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaysCounted:
    """A campaign, whose plays are not written one by one, has begun so many so far."""

    kind: ClassVar[str] = "plays-counted"
    plays: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A finding: of a rule, of a play, or a failure of a fuzz campaign.

    `level` is MUST, SHOULD, INFO, KNOWN or ERROR; `trace` the file of the conversation, "" if none.
    """

    kind: ClassVar[str] = "found"
    rule: str
    level: str
    text: str
    scenario: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayEnded:
    """A play has a verdict. One that is `provisional` failed beside others and is replayed alone.

    `seconds` is its duration, `trace` the file of its conversation, "" if there is none.
    """

    kind: ClassVar[str] = "play-ended"
    scenario: str
    lane: str
    verdict: str
    seconds: float = 0.0
    reason: str = ""
    trace: str = ""
    provisional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """The last event: `verdict` in words, such as `GREEN`, and the exit status."""

    kind: ClassVar[str] = "run-ended"
    verdict: str
    status: int = 0


Event: TypeAlias = (
    RunStarted | PlayStarted | StepStarted | PlaysCounted | Found | PlayEnded | RunEnded
)

_BY_KIND: dict[str, type[Event]] = {event.kind: event for event in get_args(Event)}


def to_line(event: Event, at: float) -> bytes:
    """Return an event as one line of JSON with its newline; `at` is in seconds since the epoch."""
    row = {"event": event.kind, "at": round(at, 3), **dataclasses.asdict(event)}
    return json_text(row, separators=(",", ":")).encode() + b"\n"


def from_line(line: bytes) -> tuple[Event, float] | None:
    """Return an event and its time; None if it is damaged, or of a later version."""
    try:
        row = obj(json.loads(line))
        return _adapter(str(row.get("event"))).validate_python(row), float(row["at"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


@cache
def _adapter(kind: str) -> TypeAdapter[Event]:
    return TypeAdapter(_BY_KIND[kind])


def cut(text: str) -> str:
    """Return a text of at most `MAX_TEXT_CHARACTERS` characters."""
    return text if len(text) <= MAX_TEXT_CHARACTERS else f"{text[:MAX_TEXT_CHARACTERS]}…"
