"""What a schema says of each place in a message, in a form in which two schemas can be compared.

Here: `book_facts` for the judge's book, `wire_facts` for a pydantic model, `differences`. A place
is written like `turn.items[].<agentMessage>.text`: `[]` is any element, `<x>` the members that
an object has when its `type` is x. Not here: which differences are right.
"""

from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from harness.spec.schemas import SchemaBook

ANY = frozenset({"any"})


@dataclass
class Fact:
    """Of one place: the JSON types, the values if they are listed, whether it must be there.

    `label` is the place told from the nearest type that the book names, such as `Turn.items`.
    """

    label: str
    required: bool
    types: frozenset[str] = ANY
    values: frozenset[str] | None = None


@dataclass
class Facts:
    """All places of one message; `variants` has the places whose members depend on `type`."""

    places: dict[str, Fact] = field(default_factory=dict[str, Fact])
    variants: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def note(self, place: str, label: str, required: bool) -> Fact:
        """The fact of a place, made when first seen; a place is required if any schema says so."""
        fact = self.places.setdefault(place, Fact(label, required))
        fact.required = fact.required or required
        return fact

    def variant(self, place: str, value: str) -> str:
        """The place of the members that belong to one value of `type`."""
        self.variants.setdefault(place, set()).add(value)
        return f"{place}.<{value}>"


def differences(book: Facts, wire: Facts) -> set[str]:
    """Each place of which the two say something else, as `label: book ...; wire ...`."""
    found: set[str] = set()
    for place, values in book.variants.items():
        label = book.places[place].label
        missing = values - wire.variants.get(place, values)
        found |= {f"{label}.<{value}>: only in the book" for value in missing}
        extra = wire.variants.get(place, values) - values
        found |= {f"{label}.<{value}>: only in the wire" for value in extra}
    missing_places = tuple(
        f"{place}.<{value}>"
        for place, values in book.variants.items()
        for value in values - wire.variants.get(place, set())
    )
    for place, fact in book.places.items():
        if place.startswith(missing_places):
            continue
        other = wire.places.get(place)
        if other is None:
            found.add(f"{fact.label}: only in the book")
        elif place.removesuffix(".type") not in book.variants:
            found |= _compare(fact, other)
    for place in wire.places.keys() - book.places.keys():
        parent = place
        while parent not in book.places:
            parent = parent.rpartition(".")[0]
        found.add(f"{book.places[parent].label}{place[len(parent) :]}: only in the wire")
    return found


def _compare(book: Fact, wire: Fact) -> set[str]:
    found: set[str] = set()
    if book.required != wire.required:
        word = {True: "required", False: "optional"}
        found.add(f"{book.label}: book {word[book.required]}; wire {word[wire.required]}")
    if book.types != wire.types:
        found.add(f"{book.label}: book {_join(book.types)}; wire {_join(wire.types)}")
    elif book.values != wire.values:
        found.add(f"{book.label}: book {_listed(book.values)}; wire {_listed(wire.values)}")
    return found


def _join(names: frozenset[str]) -> str:
    return "|".join(sorted(names))


def _listed(values: frozenset[str] | None) -> str:
    return "open" if values is None else "{" + ",".join(sorted(values)) + "}"


def _types(node: dict[str, Any]) -> frozenset[str]:
    named = node["type"] if isinstance(node["type"], list) else [node["type"]]
    # The text knows numbers only; a model may hold whole ones.
    return frozenset("number" if name == "integer" else name for name in named)


def book_facts(book: SchemaBook, reference: str) -> Facts:
    """The facts of the message that a reference of the book describes."""
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
    if "$ref" in node:
        target, home = book.place(node["$ref"], file)
        name = node["$ref"].rpartition("/")[2]
        named = label if set(target) <= {"$comment", "type", "enum"} else name
        if "type" not in target or target["type"] == "object":
            facts.places[place].label = named or name
        _book(book, target, home, facts, place, required, named or name)
    _book_members(book, node, file, facts, place, label)
    for rule in [*node.get("allOf", []), *([node] if "if" in node else [])]:
        for inner in _branches(rule, facts, place):
            _book(book, rule["then"], file, facts, inner, False, label)
    for value in _tags(node):
        facts.note(facts.variant(place, value), label, False).types = frozenset({"object"})


def _book_members(
    book: SchemaBook, node: dict[str, Any], file: str, facts: Facts, place: str, label: str
) -> None:
    for name, member in node.get("properties", {}).items():
        needed = name in node.get("required", [])
        _book(book, member, file, facts, f"{place}.{name}", needed, f"{label}.{name}")
    if "items" in node:
        _book(book, node["items"], file, facts, f"{place}[]", False, f"{label}[]")


def _tags(node: dict[str, Any]) -> list[str]:
    """The values of `type` on which the members of an object depend; none for most objects."""
    if "allOf" not in node or "type" not in node.get("properties", {}):
        return []
    return node["properties"]["type"].get("enum", [])


def _branches(rule: dict[str, Any], facts: Facts, place: str) -> list[str]:
    """Where the `then` of a rule applies: at the place itself, or for some values of `type`."""
    condition = rule["if"]
    if "type" in condition:
        return [place]
    tag = condition["properties"].get("type")
    if tag is None:
        return []  # a condition on another member: models cannot say it
    values = [tag["const"]] if "const" in tag else tag["enum"]
    return [facts.variant(place, value) for value in values]


def wire_facts(model: type[BaseModel]) -> Facts:
    """The facts of the message that a wire model describes, as it reads it."""
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
        for child in node["anyOf"]:
            before = frozenset() if fact.types == ANY else fact.types
            fact.types = ANY
            _wire(child, defs, facts, place, required)
            fact.types = before | fact.types
        return None
    if "type" in node:
        fact.types = _types(node)
    if "const" in node or "enum" in node:
        fact.values = frozenset([node["const"]] if "const" in node else node["enum"])
    for name, member in node.get("properties", {}).items():
        _wire(member, defs, facts, f"{place}.{name}", name in node.get("required", []))
    if "items" in node:
        _wire(node["items"], defs, facts, f"{place}[]", False)
    return None


def _lift(facts: Facts, place: str, tags: list[str]) -> None:
    """Members that every variant has belong to the object itself, as the book writes them."""

    def members(tag: str) -> dict[str, Fact]:
        prefix = f"{place}.<{tag}>."
        inner = {key: fact for key, fact in facts.places.items() if key.startswith(prefix)}
        return {key.removeprefix(prefix): fact for key, fact in inner.items()}

    shared = set.intersection(*(set(members(tag)) for tag in tags))
    for name in sorted(shared):
        each = [facts.places.pop(f"{place}.<{tag}>.{name}") for tag in tags]
        fact = facts.note(f"{place}.{name}", f"{place}.{name}", all(one.required for one in each))
        fact.types = each[0].types
        if all(one.values is not None for one in each):
            fact.values = frozenset(value for one in each for value in one.values or ())
        # A tag has a default in the models, since it is constant; it is always written.
        fact.required = fact.required or name == "type"
