"""The members of a request's params, and their possible values, for completion."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from harness.protocol.spec.book import Book
from harness.protocol.spec.members import Member, type_words
from harness.protocol.spec.schemas import Node, Path, SchemaBook
from harness.protocol.wire.methods import BY_METHOD, Direction

CLIENT = "client-to-server"
DECISIONS = ("accept", "acceptForSession", "decline", "cancel")
"""The answers to an approval that consist of a decision only, in the order of the keys."""

_Place = tuple[Node, str]


@dataclass(frozen=True, slots=True)
class Fields:
    """The requests of a client and the members of their params, according to the book."""

    book: Book

    @property
    def methods(self) -> list[str]:
        """Return the requests of a client: the book's, then others that we can compose."""
        listed = [row.method for row in self.book.methods if row.direction == CLIENT]
        composed = [
            row.method for row in BY_METHOD.values() if row.direction is Direction.CLIENT_REQUEST
        ]
        return list(dict.fromkeys([*listed, *composed]))

    def members(self, method: str, path: Path = ()) -> list[Member]:
        """Return the members of the object at a path in the params; [] if none is known."""
        reference = self.book.reference(method, "params")
        if reference is None:
            return _composed_members(method) if not path else []
        return list(_members(self.book.schemas, reference, path))

    def values(self, method: str, path: Path) -> list[str]:
        """Return the possible values of a member as JSON; [] if any of its type is possible."""
        reference = self.book.reference(method, "params")
        if reference is None:
            return []
        return list(dict.fromkeys(_values(self.book.schemas, reference, path)))

    def required_members(self, method: str) -> list[str]:
        """Return the members of the params that the specification requires."""
        return [member.name for member in self.members(method) if member.required]

    def decisions(self, method: str) -> list[str]:
        """Return the one-word answers to a server's request; [] if it needs more."""
        reference = self.book.reference(method, "result")
        if reference is None:
            return []
        allowed = [
            value.strip('"') for value in _values(self.book.schemas, reference, ("decision",))
        ]
        return [decision for decision in DECISIONS if decision in allowed]


def _composed_members(method: str) -> list[Member]:
    """Return the members of our own wire model, for params that the specification does not show."""
    row = BY_METHOD.get(method)
    if row is None:
        return []
    return [
        Member(field.alias or name, "our choice: the text shows no params", field.is_required())
        for name, field in row.params.model_fields.items()
    ]


def _members(book: SchemaBook, reference: str, path: Path) -> Iterator[Member]:
    names: set[str] = set()
    for node, file in _schemas_at(book, reference, path):
        required = node.get("required", ())
        for name, member in node.get("properties", {}).items():
            if name not in names:
                names.add(name)
                yield Member(name, type_words(book, member, file), name in required)


def _values(book: SchemaBook, reference: str, path: Path) -> Iterator[str]:
    for node, _ in _schemas_at(book, reference, path):
        for value in (*node.get("enum", ()), *([node["const"]] if "const" in node else ())):
            if isinstance(value, str):
                yield f'"{value}"'
        kind = node.get("type")
        if kind == "boolean" or (isinstance(kind, list) and "boolean" in kind):
            yield from ("true", "false")
    # The values that discriminate kinds of objects are in the conditions of the branches.
    if path and isinstance(path[-1], str):
        for node, _ in _schemas_at(book, reference, path[:-1]):
            for branch in node.get("allOf", ()):
                condition = branch.get("if", {}).get("properties", {}).get(path[-1], {})
                for value in condition.get("enum", [condition.get("const")]):
                    if isinstance(value, str):
                        yield f'"{value}"'


def _schemas_at(book: SchemaBook, reference: str, path: Path) -> list[_Place]:
    """Return every schema for the value at a path, including all kinds of an object."""
    places = list(_expand(book, ({"$ref": reference}, "")))
    for step in path:
        inner: list[_Place] = []
        for node, file in places:
            child = node.get("items") if isinstance(step, int) else None
            if isinstance(step, str):
                child = node.get("properties", {}).get(step)
            if isinstance(child, dict):
                inner += _expand(book, (cast("Node", child), file))
        places = inner
    return places


def _expand(book: SchemaBook, place: _Place) -> Iterator[_Place]:
    node, file = place
    yield place
    if "$ref" in node:
        yield from _expand(book, book.place(node["$ref"], file))
    for branch in (node, *node.get("allOf", ())):
        then: Any = branch.get("then")
        if isinstance(then, dict):
            yield from _expand(book, (cast("Node", then), file))
