"""Loading of the judge's book: its files are read, made into rows, and checked, once."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar

from harness.protocol.spec.book import Book
from harness.protocol.spec.check import check_book
from harness.protocol.spec.rows import (
    Document,
    EventRow,
    MethodRow,
    Requirement,
    make_capability,
    make_document,
    make_event,
    make_method,
    make_requirement,
    make_unspecified,
    read_messages,
    read_table,
)
from harness.protocol.spec.schemas import SchemaBook
from harness.protocol.spec.yamlfile import BookError, Row, names_in, read_text

T = TypeVar("T")
M = TypeVar("M", MethodRow, EventRow)


@cache
def load_book() -> Book:
    """Return the judge's book, loaded once in a process. Raises BookError if a check fails."""
    documents = _table("documents.yaml", "name", make_document)
    requirements = _requirements(documents)
    unspecified = _table("unspecified.yaml", "id", make_unspecified)
    schemas = SchemaBook.load()
    lines = {row.id: row.clause.line for row in requirements}
    lines |= {f"?{point.id}": point.line for point in unspecified}
    book = Book(
        documents=documents,
        requirements=requirements,
        methods=_messages(schemas, "methods", make_method, lines),
        events=_messages(schemas, "events", make_event, lines),
        unspecified=unspecified,
        capabilities=_table("capabilities.yaml", "id", make_capability),
        schemas=schemas,
    )
    check_book(book)
    return book


def _requirements(documents: tuple[Document, ...]) -> tuple[Requirement, ...]:
    """Return the rows of every file in requirements/, in the order of the specification."""
    requirements: dict[str, Requirement] = {}
    for name in names_in("requirements"):
        for row in read_table(name, read_text(name), "id", make_requirement).values():
            if row.id in requirements:
                raise BookError(f"{name}: id {row.id!r} is taken by a row of another file")
            requirements[row.id] = row
    order = {document.name: index for index, document in enumerate(documents)}
    # A stable sort: rows of one line stay as the file has them.
    rows = sorted(requirements.values(), key=lambda row: row.clause.line)
    return tuple(sorted(rows, key=lambda row: order.get(row.clause.document, len(order))))


def _messages(
    schemas: SchemaBook, part: str, make: Callable[[str, Row], M], lines: Mapping[str, int]
) -> tuple[M, ...]:
    """Return the methods or the events of all schema files, in the order of the specification.

    `lines` is the line of each requirement and, with "?", of each open point.
    """
    messages: dict[str, M] = {}
    for name, document in schemas.files.items():
        for row in read_messages(name, document, part, make):
            if row.method in messages:
                raise BookError(f"schema/{name}: {row.method} is taken by a row of another file")
            messages[row.method] = row
    # check_book reports unknown clauses.
    return tuple(
        sorted(messages.values(), key=lambda row: lines.get(next(iter(row.clauses), ""), 0))
    )


def _table(name: str, key: str, make: Callable[[str, Row], T]) -> tuple[T, ...]:
    return tuple(read_table(name, read_text(name), key, make).values())
