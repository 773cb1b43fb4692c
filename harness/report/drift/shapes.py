"""Shapes of messages: which members an object has, and their JSON types.

The elements of an array and the objects with a `type` have shapes of their own, named by their path
and that type, so that a shape does not depend on what else a message carries.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from harness.protocol.values import json_type
from harness.report.drift.messages import Message

Members: TypeAlias = frozenset[tuple[str, str]]
"""The paths of an object's members, each with its JSON type."""

# A key of a map from ids to values, not the name of a member.
_ID_KEY: Final = re.compile(r"(?=.*[0-9]).{20,}|[a-z]+_[0-9]+")
_ANY_KEY: Final = "*"


@dataclass(frozen=True, slots=True)
class Shape:
    """The members of an object at one place: `turn/started turn.items[] agentMessage`."""

    place: str
    members: Members


@dataclass(slots=True)
class Shapes:
    """The shapes that a server spoke, each with how often and the first scenario."""

    counts: dict[Shape, int] = field(default_factory=dict[Shape, int])
    scenarios: dict[Shape, str] = field(default_factory=dict[Shape, str])

    @property
    def by_place(self) -> dict[str, list[Shape]]:
        """The shapes of each place, the most frequent first."""
        places: dict[str, list[Shape]] = {}
        for shape in sorted(self.counts, key=lambda shape: -self.counts[shape]):
            places.setdefault(shape.place, []).append(shape)
        return places


def shapes_of(messages: Iterable[Message]) -> Shapes:
    """Return the shapes of all messages."""
    shapes = Shapes()
    for message in messages:
        for shape in _shapes(message.name, message.body):
            shapes.counts[shape] = shapes.counts.get(shape, 0) + 1
            shapes.scenarios.setdefault(shape, message.scenario)
    return shapes


def missing_and_extra(shape: Shape, others: Iterable[Shape]) -> tuple[list[str], list[str]]:
    """Return what the nearest of the other shapes lacks of this one, and what it adds."""
    nearest = min(others, key=lambda other: len(shape.members ^ other.members))
    missing = sorted(f"{path}: {word}" for path, word in shape.members - nearest.members)
    return missing, sorted(f"{path}: {word}" for path, word in nearest.members - shape.members)


def _shapes(place: str, value: Any) -> Iterator[Shape]:
    if isinstance(value, list):
        for element in cast("list[Any]", value):
            yield from _shapes(place, element)
        return
    if not isinstance(value, dict):
        yield Shape(place, frozenset({("", json_type(value))}))
        return
    members = cast("dict[str, Any]", value)
    tag = members.get("type")
    named = f"{place} {tag}" if isinstance(tag, str) else place
    paths: set[tuple[str, str]] = set()
    yield from _members(members, named, "", paths)
    yield Shape(named, frozenset(paths))


def _members(
    members: Mapping[str, Any], place: str, prefix: str, paths: set[tuple[str, str]]
) -> Iterator[Shape]:
    """Add the members of an object to `paths`; yield the shapes that are their own."""
    for key, value in members.items():
        path = f"{prefix}{_ANY_KEY if _ID_KEY.fullmatch(key) else key}"
        paths.add((path, json_type(value)))
        if isinstance(value, list):
            for element in cast("list[Any]", value):
                yield from _shapes(f"{place} {path}[]", element)
        elif isinstance(value, dict):
            inner = cast("dict[str, Any]", value)
            if isinstance(inner.get("type"), str):
                yield from _shapes(f"{place} {path}", inner)
            else:
                yield from _members(inner, place, f"{path}.", paths)
