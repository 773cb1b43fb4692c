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
    `integer` is a kind of `number`: a model that takes whole ones only says something else.
    """

    label: str
    required: bool
    types: frozenset[str] = ANY
    values: frozenset[str] | None = None
    pattern: str | None = None


@dataclass
class Facts:
    """All places of one message; `variants` has the places whose members depend on `type`.

    `conditions` has what depends on another member, which no model here says.
    """

    places: dict[str, Fact] = field(default_factory=dict[str, Fact])
    variants: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    conditions: set[str] = field(default_factory=set[str])

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
    """Each place of which the two say something else, as `label: book ...; wire ...`.

    What lies within a place that only one of them has is not told apart.
    """
    found = {f"{condition}: only in the book" for condition in book.conditions}
    variants = {
        place: (book.variants.get(place, set()), wire.variants.get(place, set()))
        for place in book.variants.keys() | wire.variants.keys()
    }
    for place, (ours, theirs) in variants.items():
        label = _label(book, place)
        found |= {f"{label}.<{value}>: only in the book" for value in ours - theirs}
        found |= {f"{label}.<{value}>: only in the wire" for value in theirs - ours}
    lone = {
        f"{place}.<{value}>"
        for place, (ours, theirs) in variants.items()
        for value in ours ^ theirs
    }
    lone |= book.places.keys() ^ wire.places.keys()
    for place in book.places.keys() | wire.places.keys():
        if place.endswith("[]") and _says_nothing(book, wire, place):
            continue
        if any(above in lone for above in _above(place)):
            continue
        mine, other = book.places.get(place), wire.places.get(place)
        if mine is None or other is None:
            if place in lone and not place.endswith(">"):
                side = "wire" if mine is None else "book"
                found.add(f"{_label(book, place)}: only in the {side}")
        elif place.removesuffix(".type") not in variants:
            found |= _compare(mine, other)
    return found


def _says_nothing(book: Facts, wire: Facts, place: str) -> bool:
    """Elements that one side leaves out and the other lets be anything are the same."""
    facts = (book.places.get(place), wire.places.get(place))
    return all(fact is None or (fact.types, fact.values) == (ANY, None) for fact in facts)


def _above(place: str) -> list[str]:
    """The places around a place; the message itself is none."""
    ends = [index for index, char in enumerate(place) if char in ".[" and index]
    return [place[:end] for end in ends]


def _label(book: Facts, place: str) -> str:
    """How the book calls a place, or the nearest one around it and the rest."""
    near = place
    while near not in book.places:
        near = (_above(near) or [""])[-1]
    return book.places[near].label + place[len(near) :]


def _compare(book: Fact, wire: Fact) -> set[str]:
    found: set[str] = set()
    if book.required != wire.required:
        word = {True: "required", False: "optional"}
        found.add(f"{book.label}: book {word[book.required]}; wire {word[wire.required]}")
    if book.types != wire.types:
        found.add(f"{book.label}: book {_join(book.types)}; wire {_join(wire.types)}")
    if book.values != wire.values:
        found.add(f"{book.label}: book {_listed(book.values)}; wire {_listed(wire.values)}")
    if book.pattern != wire.pattern:
        found.add(f"{book.label}: book {book.pattern}; wire {wire.pattern}")
    return found


def _join(names: frozenset[str]) -> str:
    return "|".join(sorted(names))


def _listed(values: frozenset[str] | None) -> str:
    return "open" if values is None else "{" + ",".join(sorted(values)) + "}"


def _types(node: dict[str, Any]) -> frozenset[str]:
    return frozenset(node["type"] if isinstance(node["type"], list) else [node["type"]])


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
    for name in set(node.get("required", [])) - node.get("properties", {}).keys():
        fact = facts.places.get(f"{place}.{name}")
        if fact is not None:  # said of a member that the schema referred to describes
            fact.required, fact.label = True, f"{label}.{name}"
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
        facts.conditions |= {
            f"{facts.places[place].label}.{name} where {other} is {value['const']}"
            for other, value in condition["properties"].items()
            for name in rule["then"]["properties"]
        }
        return []
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
    """A place with several forms: where one of them takes anything, the others say nothing."""
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
    """Members that every variant has belong to the object itself, as the book writes them."""

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
