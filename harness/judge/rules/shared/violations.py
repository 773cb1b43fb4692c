"""Violations about members of messages: the JSON path, the expected and the actual value.

A rule about a member builds its violations with these functions, so that reports can show the wire
line around it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from harness.judge.base import Violation
from harness.judge.verdict import Level, Place
from harness.protocol.values import MISSING, Path, show_path, value_at
from harness.trace.difference import difference, literal
from harness.trace.frame import Frame, Kind

# Characters of the other members' names shown if a member is missing.
MAX_KEYS: Final = 100


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a message, present or missing."""

    frame: Frame
    path: Path

    @property
    def name(self) -> str:
        """Return its JSON path as text."""
        return show_path(self.path)

    @property
    def value(self) -> Any:
        """Return its value, `MISSING` if it is absent."""
        return value_at(self.frame.json, self.path)

    @property
    def place(self) -> Place:
        """Return its place for reports."""
        return Place(self.frame.seq, self.name)

    def __str__(self) -> str:
        """Return path and value: `params.turn.status: "failed"`; if missing, the parent's keys."""
        value = self.value
        if value is not MISSING:
            return f"{self.name}: {literal(value)}"
        above = value_at(self.frame.json, self.path[:-1]) if self.path else MISSING
        if not isinstance(above, dict):
            return f"{self.name}: missing"
        keys = ", ".join(cast("dict[str, Any]", above)) or "no member"
        there = keys if len(keys) <= MAX_KEYS else f"{keys[:MAX_KEYS]}…"
        holder = show_path(self.path[:-1]) if len(self.path) > 1 else "the message"
        return f"{self.name}: missing; {holder} has {literal(there)[1:-1]}"

    def part(self, *steps: str | int) -> "Member":
        """Return the member at the path `steps` below this one; it may be missing."""
        return replace(self, path=(*self.path, *steps))


def member(frame: Frame, *path: str | int) -> Member:
    """Return the member at a path in the `result` of a successful answer, else in `params`."""
    if frame.kind is Kind.RESPONSE:
        return Member(frame, ("result", *path))
    return Member(frame, ("params", *path))


def root_member(frame: Frame, *path: str | int) -> Member:
    """Return the member of a frame at a path from its root, such as its `id` or its `error`."""
    return Member(frame, path)


def refusal_member(answer: Frame) -> Member:
    """Return the `error` of an answer, or the whole message if it has none."""
    return Member(answer, () if answer.error is MISSING else ("error",))


def wrong(
    subject: str,
    frames: tuple[Frame, ...],
    field: Member,
    expected: str,
    *,
    level: Level | None = None,
    also: Iterable[Member] = (),
    clauses: tuple[str, ...] = (),
) -> Violation:
    """Return the violation of a wrong member; `expected` describes the right value.

    `also` are the members from which that value follows; they are named and shown too.
    """
    members = tuple(also)
    return Violation(
        subject,
        frames,
        f"{field.name}: {expected}{_explain_members(members)}",
        str(field),
        level,
        clauses=clauses,
        places=(field.place, *(place.place for place in members)),
    )


def unexpected_member(
    subject: str,
    frames: tuple[Frame, ...],
    field: Member,
    expected: str,
    *,
    level: Level | None = None,
    clauses: tuple[str, ...] = (),
) -> Violation:
    """Return the violation of an unexpected member; `expected` is shown without its path."""
    return Violation(
        subject, frames, expected, str(field), level, clauses=clauses, places=(field.place,)
    )


def several(
    subject: str,
    frames: tuple[Frame, ...],
    members: Sequence[tuple[Member, str]],
    *,
    level: Level | None = None,
    clauses: tuple[str, ...] = (),
) -> Violation:
    """Return one violation of several wrong members, each with its expectation."""
    return Violation(
        subject,
        frames,
        "; ".join(f"{field.name}: {expected}" for field, expected in members),
        "; ".join(str(field) for field, _ in members),
        level,
        clauses=clauses,
        places=tuple(field.place for field, _ in members),
    )


def different(
    subject: str,
    frames: tuple[Frame, ...],
    field: Member,
    expected: Any,
    *,
    value: Any = None,
    reason: str = "",
    level: Level | None = None,
    also: Iterable[Member] = (),
    clauses: tuple[str, ...] = (),
) -> Violation:
    """Return the violation of a value other than `expected`, shown from their first difference.

    `value` is the compared value if it is not the member's own. `reason` explains the expectation,
    in addition to the members in `also`.
    """
    members = tuple(also)
    value = field.value if value is None else value
    diff = difference(expected, value)
    expected_text, other = diff.describe(field.name)
    because = (f", {reason}" if reason else "") + _explain_members(members)
    place = Place(field.frame.seq, show_path((*field.path, *diff.path)), diff.offset or 0)
    return Violation(
        subject,
        frames,
        expected_text + because,
        other,
        level,
        clauses=clauses,
        places=(place, *(related.place for related in members)),
    )


def absent(
    subject: str,
    frames: tuple[Frame, ...],
    expected: str,
    actual: str,
    *about: Member,
    level: Level | None = None,
    clauses: tuple[str, ...] = (),
) -> Violation:
    """Return the violation of a missing message or effect that the members `about` require."""
    places = tuple(field.place for field in about)
    because = _explain_members(about)
    return Violation(
        subject, frames, f"{expected}{because}", actual, level, clauses=clauses, places=places
    )


def _explain_members(members: Iterable[Member]) -> str:
    names = [f"{_message_name(field.frame)} has {field}" for field in members]
    return f" (since {' and '.join(names)})" if names else ""


def _message_name(frame: Frame) -> str:
    return frame.method or f"the answer to id {literal(frame.id)}"
