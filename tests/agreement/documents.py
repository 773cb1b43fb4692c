"""Comparison of book and models by documents that only one of them accepts.

Documents with every member, variant and listed value are generated from the facts of both sides,
then each place in them is changed in many ways, and both sides validate the result. A document that
a model does not write as it was read is a difference too. So this also finds differences that the
comparison of facts does not see.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from agreement.facts import Facts, label_of
from agreement.reading import book_facts, wire_facts
from harness.protocol.spec.schemas import SchemaBook

Step = str | int
WRONG: tuple[Any, ...] = (None, "no such value", "", 7, 1.5, True, [], {}, [None], {"a": 1})
OF_TYPE: dict[str, Any] = {
    "string": "text",
    "number": 1,
    "integer": 1,
    "boolean": False,
    "any": "anything",
}
OF_PATTERN = {"^app://.": "app://x", "^#[0-9A-Fa-f]{6}$": "#0aF9b2"}
_NAME = re.compile(r"\.(\w+)")


class Spot(NamedTuple):
    """Path of a value in a document, and the name of that place in the facts."""

    path: tuple[Step, ...]
    place: str


def disagreements(schemas: SchemaBook, reference: str, model: type[BaseModel]) -> dict[str, str]:
    """Return the differences by label (`PLACE: only the book takes it`), each with a document."""
    book, wire = book_facts(schemas, reference), wire_facts(model)
    found: dict[str, str] = {}
    for place, document, known in _documents(book, wire):
        label = label_of(book, place)
        taken = schemas.is_valid(reference, document)
        written = _written(model, document)
        if taken != (written is not None):
            side = "book" if taken else "wire"
            found.setdefault(f"{label}: only the {side} takes it", _text(document))
        elif written is not None and known and _text(written) != _text(document):
            seen = f"{_text(document)} is written as {_text(written)}"
            found.setdefault(f"{label}: written otherwise", seen)
    return found


def _documents(book: Facts, wire: Facts) -> Iterator[tuple[str, Any, bool]]:
    """Yield the changed place, the document, and whether both sides know all its members."""
    seen: set[str] = set()
    for document in examples(book, "", wire):
        yield "", document, True
        for spot in list(_spots(book, document)):
            if spot.place not in seen:
                seen.add(spot.place)
                yield from _changes(book, wire, document, spot)


def _changes(
    book: Facts, wire: Facts, document: Any, spot: Spot
) -> Iterator[tuple[str, Any, bool]]:
    value = _at(document, spot.path)
    is_tag = spot.place.removesuffix(".type") in book.variants
    if spot.path and isinstance(spot.path[-1], str):
        yield spot.place, _without(document, spot.path), True
    others = [*WRONG, *sorted(_values(book, spot.place) | _values(wire, spot.place))]
    if not isinstance(value, dict):
        others += examples(wire, spot.place, book)
    for other in others:
        is_known = other != {"a": 1} and not is_tag
        yield spot.place, _with(document, spot.path, other), is_known
    if isinstance(value, dict):
        yield spot.place, _with(document, (*spot.path, "unheardOf"), 1), False
        for name, place in _missing(wire, spot.place, value).items():
            for other in (*WRONG, *examples(wire, place, book)):
                yield place, _with(document, (*spot.path, name), other), False


def _missing(facts: Facts, place: str, value: dict[str, Any]) -> dict[str, str]:
    """Return the members (name -> place) that an object at a place could have and lacks."""
    return {
        name: member
        for inner in _inner(facts, place, value)
        for name, member in _members(facts, inner).items()
        if name not in value
    }


def examples(facts: Facts, place: str, other: Facts) -> list[Any]:
    """Return values for a place that together have all its members, variants and types but null.

    Listed values come from `other` if only that side lists any.
    """
    fact = facts.places.get(place)
    if fact is None:
        return []
    if place in facts.variants:
        return [
            one
            for tag in sorted(facts.variants[place])
            for one in _objects(facts, [place, f"{place}.<{tag}>"], {"type": [tag]}, other)
        ]
    found: list[Any] = []
    for name in sorted(fact.types - {"null"}):
        if name == "object":
            found += _objects(facts, [place], {}, other)
        elif name == "array":
            found.append(examples(facts, f"{place}[]", other))
        elif name == "string" and (values := fact.values or _values(other, place)):
            found.append(min(values))
        elif name == "string" and fact.pattern:
            found.append(OF_PATTERN[fact.pattern])
        else:
            found.append(OF_TYPE[name])
    return found


def _objects(
    facts: Facts, places: list[str], fixed: dict[str, list[Any]], other: Facts
) -> list[dict[str, Any]]:
    """Return objects with all members, enough of them to have every example of each member."""
    choices = {
        name: examples(facts, member, other)
        for place in places
        for name, member in _members(facts, place).items()
    } | fixed
    count = max((len(some) for some in choices.values()), default=1)
    return [
        {name: some[index % len(some)] for name, some in choices.items() if some}
        for index in range(count)
    ]


def _members(facts: Facts, place: str) -> dict[str, str]:
    """Return the members of the object at a place: name -> place."""
    rest = ((one.removeprefix(place), one) for one in facts.places if one.startswith(place))
    return {match[1]: one for tail, one in rest if (match := _NAME.fullmatch(tail))}


def _values(facts: Facts, place: str) -> frozenset[str]:
    fact = facts.places.get(place)
    return (fact and fact.values) or frozenset()


def _inner(facts: Facts, place: str, value: dict[str, Any]) -> list[str]:
    """Return the places of an object's members: the object's own, and that of its `type`."""
    tag = value.get("type")
    return [place, f"{place}.<{tag}>"] if tag in facts.variants.get(place, ()) else [place]


def _spots(
    facts: Facts, value: Any, place: str = "", path: tuple[Step, ...] = ()
) -> Iterator[Spot]:
    yield Spot(path, place)
    if isinstance(value, dict):
        for inner in _inner(facts, place, value):
            for name, member in _members(facts, inner).items():
                if name in value:
                    yield from _spots(facts, value[name], member, (*path, name))
    if isinstance(value, list):
        for index, element in enumerate(value):
            yield from _spots(facts, element, f"{place}[]", (*path, index))


def _at(document: Any, path: tuple[Step, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


def _with(document: Any, path: tuple[Step, ...], value: Any) -> Any:
    if not path:
        return value
    step, copy = path[0], document.copy()
    copy[step] = value if len(path) == 1 else _with(document[step], path[1:], value)
    return copy


def _without(document: Any, path: tuple[Step, ...]) -> Any:
    around = _at(document, path[:-1])
    return _with(document, path[:-1], {k: v for k, v in around.items() if k != path[-1]})


def _written(model: type[BaseModel], document: Any) -> Any:
    """Return the document as the model writes it after reading it; None if the model rejects it."""
    try:
        read = model.model_validate(document, by_alias=True, by_name=False)
    except ValidationError:
        return None
    return read.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
