"""Members of a message that its schema does not list. They are allowed: every object is open."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from harness.protocol.spec.schemas import Node, Path, Place, SchemaBook


@dataclass(frozen=True, slots=True)
class Unlisted:
    """A member at `path` that the schema does not list; `listed_names` are those that it lists."""

    path: Path
    listed_names: frozenset[str]


def unlisted_members(book: SchemaBook, reference: str, instance: Any) -> Iterator[Unlisted]:
    """Yield the members that the schema does not list, in the order of the message."""
    yield from _unlisted_inside(book, [({"$ref": reference}, "")], instance, ())


def _unlisted_inside(
    book: SchemaBook, places: Sequence[Place], value: Any, path: Path
) -> Iterator[Unlisted]:
    nodes = [schema for place in places for schema in _applicable(book, place, value)]
    if isinstance(value, list):
        elements = [(node["items"], file) for node, file in nodes if "items" in node]
        for index, element in enumerate(cast("list[Any]", value)):
            yield from _unlisted_inside(book, elements, element, (*path, index))
    if not isinstance(value, dict):
        return
    properties: dict[str, list[Place]] = {}
    for node, file in nodes:
        for name, member in node.get("properties", {}).items():
            properties.setdefault(name, []).append((member, file))
    for name, member in cast("dict[str, Any]", value).items():
        if name in properties:
            yield from _unlisted_inside(book, properties[name], member, (*path, name))
        elif properties:
            yield Unlisted((*path, name), frozenset(properties))


def _applicable(book: SchemaBook, place: Place, value: Any) -> Iterator[Place]:
    """Yield a schema, the schemas that it refers to, and the branches whose condition is met."""
    node, file = place
    yield place
    if "$ref" in node:
        yield from _applicable(book, book.place(node["$ref"], file), value)
    for branch in (node, *node.get("allOf", ())):
        if "then" in branch and _meets(branch["if"], value):
            yield from _applicable(book, (branch["then"], file), value)


def _meets(condition: Node, value: Any) -> bool:
    """Return whether a value meets an `if`, which lists allowed values of members."""
    if not isinstance(value, dict):
        return False
    members = cast("dict[str, Any]", value)
    return all(
        members.get(name) in (want.get("enum") or [want.get("const")])
        for name, want in condition.get("properties", {}).items()
    )
