"""Members of the objects that the book's schemas describe, in words for pages of the docs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from harness.protocol.spec.schemas import Node, SchemaBook, cited_clauses, cited_ids


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object; `type` is in words."""

    name: str
    type: str
    required: bool


@dataclass(frozen=True, slots=True)
class Variant:
    """The additional members of an object whose `type` is `value`; `clause` is its requirement.

    `open` are the ids of the open points that its schema, or one within it, cites.
    """

    value: str
    clause: str
    members: tuple[Member, ...]
    open: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """A type of the book. An enumeration has `values` and no members."""

    name: str
    clauses: tuple[str, ...]
    values: tuple[str, ...]
    members: tuple[Member, ...]
    variants: tuple[Variant, ...]


def shape_of(book: SchemaBook, reference: str) -> Shape:
    """Return the shape that a reference names. Raises BookError if there is none."""
    node, file = book.place(reference)
    return Shape(
        name=reference.rpartition("/")[2],
        clauses=cited_clauses(node),
        values=tuple(node.get("enum", ())),
        members=tuple(_members(book, node, file)),
        variants=tuple(_variants(book, node, file)),
    )


def all_shapes(book: SchemaBook) -> Iterator[tuple[str, Shape]]:
    """Yield every type of the book with its reference."""
    for file, document in book.files.items():
        for name in document["$defs"]:
            reference = f"{file}#/$defs/{name}"
            yield reference, shape_of(book, reference)


def _members(book: SchemaBook, node: Node, file: str) -> Iterator[Member]:
    required = node.get("required", ())
    for name, member in node.get("properties", {}).items():
        yield Member(name, type_words(book, member, file), name in required)


def _variants(book: SchemaBook, node: Node, file: str) -> Iterator[Variant]:
    for branch in node.get("allOf", ()):
        condition = branch["if"].get("properties", {}).get("type")
        if condition is None:
            continue  # a condition on another member: its requirement says it in words
        then, home = branch["then"], file
        if "$ref" in then:
            then, home = book.place(then["$ref"], file)
        values = [condition["const"]] if "const" in condition else condition["enum"]
        members = tuple(_members(book, then, home))
        clauses = cited_clauses(then) or _clauses_of_members(then)
        points = tuple(dict.fromkeys(_open_points(book, then, home)))
        for index, value in enumerate(values):
            yield Variant(value, clauses[min(index, len(clauses) - 1)], members, points)


def _open_points(book: SchemaBook, value: Any, file: str) -> Iterator[str]:
    """Yield the open points cited in a schema and in those of the same file that it refers to."""
    if isinstance(value, list):
        for element in cast(list[Any], value):
            yield from _open_points(book, element, file)
    if not isinstance(value, dict):
        return
    node = cast(Node, value)
    yield from (name[1:] for name in cited_ids(node) if name.startswith("?"))
    for key, inner in node.items():
        if key == "$ref" and cast(str, inner).startswith("#"):
            yield from _open_points(book, book.place(inner, file)[0], file)
        elif key != "$comment":
            yield from _open_points(book, inner, file)


def _clauses_of_members(node: Node) -> tuple[str, ...]:
    return tuple(
        clause for member in node["properties"].values() for clause in cited_clauses(member)
    )


def type_words(book: SchemaBook, node: Node, file: str) -> str:
    """Return a type in words: "array of string", "Turn", "string or null", "`a`, `b`"."""
    if "$ref" in node:
        target, home = book.place(node["$ref"], file)
        if "enum" in target:
            return type_words(book, target, home)
        return cast(str, node["$ref"]).rpartition("/")[2]
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    declared: Any = node.get("type", "anything")
    names = cast(list[str], declared) if isinstance(declared, list) else [cast(str, declared)]
    inner = node.get("then", {})
    if inner:
        names = [type_words(book, inner, file), *(name for name in names if name == "null")]
    return " or ".join(_one_name(book, node, file, name) for name in names)


def _one_name(book: SchemaBook, node: Node, file: str, name: str) -> str:
    if name == "array" and "items" in node:
        return f"array of {type_words(book, node['items'], file)}"
    return name
