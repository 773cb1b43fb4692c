"""The checks between the files of the judge's book, made once when it is loaded.

Every failure is a one-line `BookError` with file and row.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.protocol.spec.book import Book
from harness.protocol.spec.rows import Document, MethodRow
from harness.protocol.spec.schemas import cited_ids
from harness.protocol.spec.yamlfile import BookError


@dataclass(frozen=True, slots=True)
class _Names:
    documents: Mapping[str, Document]
    requirements: frozenset[str]
    unspecified: frozenset[str]
    capabilities: frozenset[str]

    def check_citations(self, place: str, names: Iterable[str]) -> None:
        for name in names:
            table = self.unspecified if name.startswith("?") else self.requirements
            if name.removeprefix("?") not in table:
                raise BookError(f"{place}: nothing is called {name!r}")

    def check_line(self, place: str, document: str, line: int) -> None:
        if document not in self.documents:
            raise BookError(f"{place}: no document {document!r} in documents.yaml")
        if line > self.documents[document].lines:
            raise BookError(f"{place}: {document} has no line {line}")


def check_book(book: Book) -> None:
    """Check the citations and references between the files. Raises BookError for a wrong one."""
    names = _Names(
        documents={document.name: document for document in book.documents},
        requirements=frozenset(row.id for row in book.requirements),
        unspecified=frozenset(point.id for point in book.unspecified),
        capabilities=frozenset(capability.id for capability in book.capabilities),
    )
    _check_lines(book, names)
    _check_operations(book, names)
    _check_schemas(book, names)


def _check_lines(book: Book, names: _Names) -> None:
    for row in book.requirements:
        place = f"requirements: {row.id}"
        clause = row.clause
        names.check_line(place, clause.document, clause.line)
        heading = names.documents[clause.document].heading_at(clause.line)
        if heading != clause.heading:
            raise BookError(f"{place}: line {clause.line} is under {heading!r}")
        names.check_citations(place, row.drawn_from)
    for point in book.unspecified:
        names.check_line(f"unspecified.yaml: {point.id}", point.document, point.line)


def _check_operations(book: Book, names: _Names) -> None:
    for row in (*book.methods, *book.events):
        is_method = isinstance(row, MethodRow)
        place = f"schema: {'methods' if is_method else 'events'}: {row.method}"
        if not row.clauses:
            raise BookError(f"{place}: names no clause")
        names.check_citations(place, row.clauses)
        if row.capability not in names.capabilities:
            raise BookError(f"{place}: no capability {row.capability!r}")
        for reference in filter(None, (row.params, row.result if is_method else None)):
            try:
                book.schemas.place(reference)
            except BookError as error:
                raise BookError(f"{place}: {error}") from None


def _check_schemas(book: Book, names: _Names) -> None:
    for file, node in book.schemas.nodes():
        names.check_citations(f"schema/{file}", cited_ids(node))
        if "$ref" in node:
            try:
                book.schemas.place(node["$ref"], file)
            except BookError as error:
                raise BookError(f"schema/{file}: {error}") from None
