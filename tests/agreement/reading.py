"""Extraction of facts from a schema of the judge's book and from a wire model."""

from typing import Any

from pydantic import BaseModel

from agreement.facts import ANY, Fact, Facts
from harness.protocol.spec.schemas import SchemaBook


def _types(node: dict[str, Any]) -> frozenset[str]:
    return frozenset(node["type"] if isinstance(node["type"], list) else [node["type"]])


def book_facts(book: SchemaBook, reference: str) -> Facts:
    """Return the facts of the message that a schema reference of the book describes."""
    facts = Facts()
    _book(book, {"$ref": reference}, "", facts, "", True)
    return facts


def _book(
    book: SchemaBook,
    node: dict[str, Any],
    file: str,
    facts: Facts,
    place: str,
    required: bool,
    label: str = "",
) -> None:
    fact = facts.note(place, label, required)
    if "type" in node and fact.types == ANY:
        fact.types = _types(node)
    if "enum" in node:
        fact.values = frozenset(node["enum"])
    fact.pattern = node.get("pattern", fact.pattern)
    if "$ref" in node:
        target, home = book.place(node["$ref"], file)
        name = node["$ref"].rpartition("/")[2]
        named = label if set(target) <= {"$comment", "type", "enum"} else name
        if "type" not in target or target["type"] == "object":
            facts.places[place].label = named or name
        _book(book, target, home, facts, place, required, named or name)
    _book_members(book, node, file, facts, place, label)
    for rule in [*node.get("allOf", []), *([node] if "if" in node else [])]:
        for inner in _branches(rule, facts, place, _tags(node)):
            _book(book, rule["then"], file, facts, inner, False, label)
    for value in _tags(node):
        facts.note(facts.variant(place, value), label, False).types = frozenset({"object"})


def _book_members(
    book: SchemaBook, node: dict[str, Any], file: str, facts: Facts, place: str, label: str
) -> None:
    for name, member in node.get("properties", {}).items():
        needed = name in node.get("required", [])
        _book(book, member, file, facts, f"{place}.{name}", needed, f"{label}.{name}")
    for name in set(node.get("required", [])) - node.get("properties", {}).keys():
        fact = facts.places.get(f"{place}.{name}")
        if fact is not None:  # said of a member that the schema referred to describes
            fact.required, fact.label = True, f"{label}.{name}"
    if "items" in node:
        _book(book, node["items"], file, facts, f"{place}[]", False, f"{label}[]")


def _tags(node: dict[str, Any]) -> list[str]:
    """Return the values of `type` on which an object's members depend; [] for most objects."""
    if "allOf" not in node or "type" not in node.get("properties", {}):
        return []
    return node["properties"]["type"].get("enum", [])


def _branches(rule: dict[str, Any], facts: Facts, place: str, tags: list[str]) -> list[str]:
    """Return the places to which the `then` of a rule applies: this one, or those of types.

    A condition on another member is added to `facts.conditions`; [] then.
    """
    condition = rule["if"]
    if "type" in condition:
        return [place]
    tag = condition["properties"].get("type")
    if tag is None:
        facts.conditions |= {
            f"{facts.places[place].label}.{name} where {other} is {value['const']}"
            for other, value in condition["properties"].items()
            for name in rule["then"]["properties"]
        }
        return []
    values = [tag["const"]] if "const" in tag else tag["enum"]
    return [facts.variant(place, value) for value in values if value in tags]


def wire_facts(model: type[BaseModel]) -> Facts:
    """Return the facts of the message that a wire model validates."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    facts = Facts()
    _wire(schema, schema.get("$defs", {}), facts, "", True)
    return facts


def _wire(
    node: dict[str, Any], defs: dict[str, Any], facts: Facts, place: str, required: bool
) -> None:
    if "$ref" in node:
        return _wire(defs[node["$ref"].rpartition("/")[2]], defs, facts, place, required)
    fact = facts.note(place, place, required)
    if "discriminator" in node:
        fact.types = frozenset({"object"})
        for value, reference in node["discriminator"]["mapping"].items():
            inner = facts.variant(place, value)
            _wire({"$ref": reference}, defs, facts, inner, False)
        return _lift(facts, place, list(node["discriminator"]["mapping"]))
    if "anyOf" in node:
        return _any_of(node["anyOf"], defs, facts, place, required)
    if "type" in node:
        fact.types = _types(node)
    if "const" in node or "enum" in node:
        fact.values = frozenset([node["const"]] if "const" in node else node["enum"])
    fact.pattern = node.get("pattern", fact.pattern)
    for name, member in node.get("properties", {}).items():
        _wire(member, defs, facts, f"{place}.{name}", name in node.get("required", []))
    if "items" in node:
        _wire(node["items"], defs, facts, f"{place}[]", False)
    return None


_ANY_OBJECT = {"type": "object", "additionalProperties": True}
_SAYS = {"$ref", "type", "anyOf", "discriminator", "const", "enum"}


def _any_of(
    choices: list[dict[str, Any]],
    defs: dict[str, Any],
    facts: Facts,
    place: str,
    required: bool,
) -> None:
    """Add the facts of a place with alternatives; if one allows anything, the place does."""
    fact = facts.note(place, place, required)
    if any(not choice.keys() & _SAYS for choice in choices):
        return  # anything at all
    types: frozenset[str] = frozenset()
    open_object = _ANY_OBJECT in choices
    for choice in choices:
        if open_object and choice != _ANY_OBJECT and _is_object(choice, defs):
            continue
        fact.types = ANY
        _wire(choice, defs, facts, place, required)
        types |= fact.types
    fact.types = types - ({"integer"} if "number" in types else set())


def _is_object(node: dict[str, Any], defs: dict[str, Any]) -> bool:
    if "$ref" in node:
        node = defs[node["$ref"].rpartition("/")[2]]
    return "discriminator" in node or node.get("type") == "object"


def _lift(facts: Facts, place: str, tags: list[str]) -> None:
    """Move the members that every variant has to the object itself, where the book has them."""

    def members(tag: str) -> dict[str, Fact]:
        prefix = f"{place}.<{tag}>."
        inner = {key: fact for key, fact in facts.places.items() if key.startswith(prefix)}
        return {key.removeprefix(prefix): fact for key, fact in inner.items()}

    shared = set.intersection(*(set(members(tag)) for tag in tags))
    for name in sorted(shared):
        each = [facts.places.pop(f"{place}.<{tag}>.{name}") for tag in tags]
        fact = facts.note(f"{place}.{name}", f"{place}.{name}", all(one.required for one in each))
        fact.types = frozenset[str]().union(*(one.types for one in each))
        if all(one.values is not None for one in each):
            fact.values = frozenset(value for one in each for value in one.values or ())
        # A tag has a default in the models, since it is constant; it is always written.
        fact.required = fact.required or name == "type"
