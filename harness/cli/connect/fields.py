"""Words for a request: the members of its params, and values that are words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from harness.protocol.spec.book import Book
from harness.protocol.spec.members import Member, type_words
from harness.protocol.spec.schemas import Node, Path, SchemaBook
from harness.protocol.wire.methods import BY_METHOD, Direction

CLIENT = "client-to-server"
DECISIONS = ("accept", "acceptForSession", "decline", "cancel")
"""The answers to an approval that hold nothing but a decision, in the order of the keys."""

_Place = tuple[Node, str]


@dataclass(frozen=True, slots=True)
class Fields:
    """The requests of a client and what their params hold, as the book tells it."""

    book: Book

    @property
    def methods(self) -> list[str]:
        """The requests of a client: the book's, then others that we can compose."""
        listed = [row.method for row in self.book.methods if row.direction == CLIENT]
        composed = [
            row.method for row in BY_METHOD.values() if row.direction is Direction.CLIENT_REQUEST
        ]
        return list(dict.fromkeys([*listed, *composed]))

    def members(self, method: str, path: Path = ()) -> list[Member]:
        """The members of an object of the params, at a path in them; [] where none is known."""
        reference = self.book.reference(method, "params")
        if reference is None:
            return _composed(method) if not path else []
        return list(_members(self.book.schemas, reference, path))

    def values(self, method: str, path: Path) -> list[str]:
        """The words that a member may be, as JSON; [] where it may be anything of its type."""
        reference = self.book.reference(method, "params")
        if reference is None:
            return []
        return list(dict.fromkeys(_values(self.book.schemas, reference, path)))

    def required(self, method: str) -> list[str]:
        """The members that the params must have, as far as the text says."""
        return [member.name for member in self.members(method) if member.required]

    def decisions(self, method: str) -> list[str]:
        """The decisions that answer a server's request by one word; [] where it asks for more."""
        reference = self.book.reference(method, "result")
        if reference is None:
            return []
        allowed = [
            value.strip('"') for value in _values(self.book.schemas, reference, ("decision",))
        ]
        return [decision for decision in DECISIONS if decision in allowed]


def _composed(method: str) -> list[Member]:
    """The members that we ourselves send: our choice, since the text shows none."""
    row = BY_METHOD.get(method)
    if row is None:
        return []
    return [
        Member(field.alias or name, "our choice: the text shows no params", field.is_required())
        for name, field in row.params.model_fields.items()
    ]


def _members(book: SchemaBook, reference: str, path: Path) -> Iterator[Member]:
    names: set[str] = set()
    for node, file in _at(book, reference, path):
        required = node.get("required", ())
        for name, member in node.get("properties", {}).items():
            if name not in names:
                names.add(name)
                yield Member(name, type_words(book, member, file), name in required)


def _values(book: SchemaBook, reference: str, path: Path) -> Iterator[str]:
    for node, _ in _at(book, reference, path):
        for value in (*node.get("enum", ()), *([node["const"]] if "const" in node else ())):
            if isinstance(value, str):
                yield f'"{value}"'
        kind = node.get("type")
        if kind == "boolean" or (isinstance(kind, list) and "boolean" in kind):
            yield from ("true", "false")
    # What tells the kinds of an object apart stands in the conditions of their branches.
    if path and isinstance(path[-1], str):
        for node, _ in _at(book, reference, path[:-1]):
            for branch in node.get("allOf", ()):
                condition = branch.get("if", {}).get("properties", {}).get(path[-1], {})
                for value in condition.get("enum", [condition.get("const")]):
                    if isinstance(value, str):
                        yield f'"{value}"'


def _at(book: SchemaBook, reference: str, path: Path) -> list[_Place]:
    """Every schema that speaks of the value at a path, all kinds of an object among them."""
    places = list(_spread(book, ({"$ref": reference}, "")))
    for step in path:
        inner: list[_Place] = []
        for node, file in places:
            child = node.get("items") if isinstance(step, int) else None
            if isinstance(step, str):
                child = node.get("properties", {}).get(step)
            if isinstance(child, dict):
                inner += _spread(book, (cast("Node", child), file))
        places = inner
    return places


def _spread(book: SchemaBook, place: _Place) -> Iterator[_Place]:
    node, file = place
    yield place
    if "$ref" in node:
        yield from _spread(book, book.place(node["$ref"], file))
    for branch in (node, *node.get("allOf", ())):
        then: Any = branch.get("then")
        if isinstance(then, dict):
            yield from _spread(book, (cast("Node", then), file))
