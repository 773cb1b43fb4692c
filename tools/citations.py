"""Checks that the judge's book accounts for every line of the specification's documents.

`python -m tools.citations FOLDER` rewrites lines.yaml from the documents in FOLDER.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias, cast

from harness.protocol.spec.book import Book
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.yamlfile import BookError, Row, check_keys, parse_rows, read_text

Hashes: TypeAlias = Mapping[int, str]

_HEAD = """\
# Line number -> the first 12 hexadecimal digits of the SHA-256 of the stripped line, for every line
# of the documents that is not blank. Made by `python -m tools.citations FOLDER`.
"""


@dataclass(frozen=True, slots=True)
class Uncited:
    """A line that states no requirement; `hash` identifies its text, `why` says why not."""

    document: str
    line: int
    hash: str
    why: str


def hash_of(line: str) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of a stripped line."""
    return sha256(line.strip().encode()).hexdigest()[:12]


def hashes_of(text: str) -> dict[int, str]:
    """Return the hashes of a document's non-blank lines, by line number from 1."""
    lines = enumerate(text.split("\n"), 1)
    return {number: hash_of(line) for number, line in lines if line.strip()}


@cache
def committed_hashes() -> Mapping[str, Hashes]:
    """Return the hashes in lines.yaml by document. Raises BookError."""
    hashes: dict[str, Hashes] = {}
    for row in parse_rows("lines.yaml", read_text("lines.yaml")):
        check_keys("lines.yaml", row, ("document", "lines"))
        hashes[row["document"]] = cast(dict[int, str], row["lines"])
    return hashes


@cache
def uncited_lines() -> tuple[Uncited, ...]:
    """Return the rows of uncited.yaml, one for each line. Raises BookError."""
    return tuple(
        one
        for row in parse_rows("uncited.yaml", read_text("uncited.yaml"))
        for one in _uncited_lines("uncited.yaml", row)
    )


def _uncited_lines(file: str, row: Row) -> Iterator[Uncited]:
    """Yield an `Uncited` for each line of a row of uncited.yaml. Raises BookError."""
    check_keys(file, row, ("document", "why", "lines"))
    lines: Any = row["lines"]
    if not isinstance(lines, dict) or not isinstance(row["why"], str):
        raise BookError(f"{file}: expected a text in why and a mapping in lines, found {row!r}")
    for line, digits in cast(dict[int, str], lines).items():
        yield Uncited(row["document"], line, digits, row["why"])


def gaps(book: Book, hashes: Mapping[str, Hashes], uncited: tuple[Uncited, ...]) -> Iterator[str]:
    """Yield a message for each line that is neither cited nor listed as uncited, or both, or
    whose text differs from the listed hash."""
    rows = [(one.clause.document, one.clause.line) for one in book.requirements]
    cited = {*rows, *((point.document, point.line) for point in book.unspecified)}
    listed: set[tuple[str, int]] = set()
    for uncited_line in uncited:
        place = (uncited_line.document, uncited_line.line)
        name = f"{uncited_line.document}:{uncited_line.line}"
        if place in listed:
            yield f"{name}: listed twice in uncited.yaml"
        listed.add(place)
        if hashes.get(uncited_line.document, {}).get(uncited_line.line) != uncited_line.hash:
            yield f"{name}: uncited.yaml means another line"
        if place in cited:
            yield f"{name}: cited by a row and listed as stating nothing"
    present = {(document, line) for document, lines in hashes.items() for line in lines}
    for document, line in sorted(present - cited - listed):
        yield f"{document}:{line}: no row cites it and uncited.yaml does not list it"
    for document, line in sorted(cited - present):
        yield f"{document}:{line}: cited, and blank"


def lines_yaml(texts: Mapping[str, str]) -> str:
    """Return the content of lines.yaml; `texts` are the documents by name."""
    parts = [_HEAD]
    for name, text in texts.items():
        parts.append(f"- document: {name}\n  lines:\n")
        parts += [f'    {line}: "{digits}"\n' for line, digits in hashes_of(text).items()]
    return "".join(parts)


def main(folder: Path) -> None:
    """Write lines.yaml from the documents in a folder."""
    documents = load_book().documents
    texts = {one.name: (folder / one.file).read_text(encoding="utf-8") for one in documents}
    target = Path(str(files("harness.protocol.spec").joinpath("lines.yaml")))
    target.write_text(lines_yaml(texts), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
