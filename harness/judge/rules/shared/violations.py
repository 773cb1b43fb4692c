"""Violations about members of messages: the JSON path, what was expected, what was there.

A rule about a member makes its violations here, so that reports can show the wire line around it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from harness.judge.base import Violation
from harness.judge.verdict import Level, Place
from harness.protocol.values import MISSING, Path, at, show_path
from harness.trace.difference import difference, literal
from harness.trace.frame import Frame, Kind

# So many characters of the names of the other members are shown where one is missing.
MAX_KEYS: Final = 100


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a message, there or not."""

    frame: Frame
    path: Path

    @property
    def name(self) -> str:
        """Its JSON path for reading."""
        return show_path(self.path)

    @property
    def value(self) -> Any:
        """Return its value, `MISSING` for none."""
        return at(self.frame.json, self.path)

    @property
    def place(self) -> Place:
        """Its place, by which reports find it."""
        return Place(self.frame.seq, self.name)

    def __str__(self) -> str:
        """Path and value: `params.turn.status: "failed"`; if missing, what is there instead."""
        value = self.value
        if value is not MISSING:
            return f"{self.name}: {literal(value)}"
        above = at(self.frame.json, self.path[:-1]) if self.path else MISSING
        if not isinstance(above, dict):
            return f"{self.name}: missing"
        keys = ", ".join(cast("dict[str, Any]", above)) or "no member"
        there = keys if len(keys) <= MAX_KEYS else f"{keys[:MAX_KEYS]}…"
        holder = show_path(self.path[:-1]) if len(self.path) > 1 else "the message"
        return f"{self.name}: missing; {holder} has {literal(there)[1:-1]}"

    def part(self, *steps: str | int) -> "Member":
        """A member of this one."""
        return replace(self, path=(*self.path, *steps))


def member(frame: Frame, *path: str | int) -> Member:
    """The member of a frame at a path that begins in its `params`, or its `result`.

    Of an answer that is an error, whose `result` is not there, the path begins in the message.
    """
    if frame.kind is Kind.RESPONSE:
        return Member(frame, ("result", *path))
    return Member(frame, ("params", *path))


def whole(frame: Frame, *path: str | int) -> Member:
    """The member of a frame at a path from its beginning, such as its `id` or its `error`."""
    return Member(frame, path)


def refusal(answer: Frame) -> Member:
    """The member of a failed answer that reports the failure: `error`, or the whole message."""
    return Member(answer, () if answer.error is MISSING else ("error",))


def wrong(
    subject: str,
    frames: tuple[Frame, ...],
    where: Member,
    expected: str,
    *,
    level: Level | None = None,
    also: Iterable[Member] = (),
    clauses: tuple[str, ...] = (),
) -> Violation:
    """A member that is wrong; `expected` says in words what it should be.

    `also` are the members that this follows from; they are named and shown too.
    """
    others = tuple(also)
    return Violation(
        subject,
        frames,
        f"{where.name}: {expected}{_because(others)}",
        str(where),
        level,
        clauses=clauses,
        places=(where.place, *(one.place for one in others)),
    )


def instead(
    subject: str,
    frames: tuple[Frame, ...],
    where: Member,
    expected: str,
    *,
    level: Level | None = None,
    clauses: tuple[str, ...] = (),
) -> Violation:
    """A member that should not be there, or that shows something else; `expected` in words."""
    return Violation(
        subject, frames, expected, str(where), level, clauses=clauses, places=(where.place,)
    )


def several(
    subject: str,
    frames: tuple[Frame, ...],
    members: Sequence[tuple[Member, str]],
    *,
    level: Level | None = None,
    clauses: tuple[str, ...] = (),
) -> Violation:
    """Several members that are wrong, each with words for what it should be."""
    return Violation(
        subject,
        frames,
        "; ".join(f"{where.name}: {expected}" for where, expected in members),
        "; ".join(str(where) for where, _ in members),
        level,
        clauses=clauses,
        places=tuple(where.place for where, _ in members),
    )


def differs(
    subject: str,
    frames: tuple[Frame, ...],
    where: Member,
    expected: Any,
    *,
    found: Any = None,
    why: str = "",
    level: Level | None = None,
    also: Iterable[Member] = (),
    clauses: tuple[str, ...] = (),
) -> Violation:
    """A member with another value than `expected`, shown from where the two begin to differ.

    `found` is the value that was compared, where it is not the member itself. `why` says where the
    expectation comes from, in addition to the members in `also`.
    """
    others = tuple(also)
    found = where.value if found is None else found
    told = difference(expected, found)
    one, other = told.told(where.name)
    because = (f", {why}" if why else "") + _because(others)
    place = Place(where.frame.seq, show_path((*where.path, *told.path)), told.offset or 0)
    return Violation(
        subject,
        frames,
        one + because,
        other,
        level,
        clauses=clauses,
        places=(place, *(one.place for one in others)),
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
    """A message that never came or had no effect; `about` are the members that require it."""
    places = tuple(one.place for one in about)
    because = _because(about)
    return Violation(
        subject, frames, f"{expected}{because}", actual, level, clauses=clauses, places=places
    )


def _because(others: Iterable[Member]) -> str:
    named = [f"{_message(one.frame)} has {one}" for one in others]
    return f" (since {' and '.join(named)})" if named else ""


def _message(frame: Frame) -> str:
    return frame.method or f"the answer to id {literal(frame.id)}"
