"""The messages that book and models both describe, and their differences."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pydantic import BaseModel

from agreement.documents import disagreements
from agreement.facts import differences
from agreement.reading import book_facts, wire_facts
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.rows import MethodRow
from harness.protocol.spec.schemas import SchemaBook
from harness.protocol.wire.methods import METHODS, MethodSpec

BOOK = load_book()


class Pair(NamedTuple):
    """Params or result of one method: the book's schema reference and the wire model."""

    method: str
    reference: str
    model: type[BaseModel]


def pairs(methods: Iterable[MethodSpec] = METHODS) -> Iterator[Pair]:
    """Yield the params and results that the specification shows; others may be any object."""
    for spec in methods:
        row = BOOK.method(spec.method) or BOOK.event(spec.method)
        if row is None:
            continue
        result = row.result if isinstance(row, MethodRow) else None
        for reference, model in ((row.params, spec.params), (result, spec.result)):
            if reference is not None and model is not None:
                yield Pair(spec.method, reference, model)


def stated_differences(
    schemas: SchemaBook = BOOK.schemas, messages: Iterable[Pair] | None = None
) -> set[str]:
    """Return the differences between the facts of both sides, one line each."""
    found: set[str] = set()
    for pair in pairs() if messages is None else messages:
        found |= differences(book_facts(schemas, pair.reference), wire_facts(pair.model))
    return found


def document_differences(
    schemas: SchemaBook = BOOK.schemas, messages: Iterable[Pair] | None = None
) -> dict[str, str]:
    """Return the differences that documents show, by label, each with a document."""
    found: dict[str, str] = {}
    for pair in pairs() if messages is None else messages:
        found |= disagreements(schemas, pair.reference, pair.model)
    return found
