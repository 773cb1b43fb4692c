"""Every line of the documents is accounted for, by the documents or by their committed hashes."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.protocol.spec.loading import load_book
from harness.protocol.spec.yamlfile import BookError, parse_rows
from tools import citations
from tools.citations import (
    Hashes,
    Uncited,
    committed_hashes,
    gaps,
    hash_of,
    hashes_of,
    lines_yaml,
    uncited_lines,
)

BOOK = load_book()
DOCUMENTS = Path(__file__).parents[4] / "shared" / "spec"


def documents_here() -> dict[str, str]:
    """The documents that lie beside the checkout: all, or none on a bare clone."""
    paths = {one.name: DOCUMENTS / one.file for one in BOOK.documents}
    return {name: path.read_text("utf-8") for name, path in paths.items() if path.is_file()}


def hashes_here() -> Mapping[str, Hashes]:
    """Return the hashes of the documents if they are here, else the committed ones."""
    return {name: hashes_of(text) for name, text in documents_here().items()} or committed_hashes()


def test_every_line_is_cited_by_a_row_or_listed_as_stating_nothing():
    assert list(gaps(BOOK, hashes_here(), uncited_lines())) == []


def test_the_committed_hashes_are_those_of_the_documents():
    assert hashes_here() == committed_hashes()
    assert set(committed_hashes()) == {one.name for one in BOOK.documents}


def test_the_committed_hashes_are_plausible_without_the_documents():
    for document in BOOK.documents:
        hashes = committed_hashes()[document.name]
        assert all(re.fullmatch("[0-9a-f]{12}", digits) for digits in hashes.values())
        assert list(hashes) == sorted(hashes)
        assert max(hashes) <= document.lines
        for line, heading in document.sections:
            marks = [hash_of(f"{'#' * depth} {heading}") for depth in (1, 2, 3)]
            assert hashes[line] in marks, (document.name, heading)


def test_the_lines_that_state_nothing_are_headings_headers_and_rulers():
    """None of them says that something is not shown: that would be an open point."""
    whys = {one.why for one in uncited_lines()}
    assert len(whys) == 5
    for name, text in documents_here().items():
        lines = text.split("\n")
        bare = [lines[one.line - 1] for one in uncited_lines() if one.document == name]
        assert not [line for line in bare if "not shown" in line]


LINES = {"session-protocol": {7: "aaaaaaaaaaaa", 9: "bbbbbbbbbbbb"}}
LISTED = Uncited("session-protocol", 9, "bbbbbbbbbbbb", "a gloss")
TINY = replace(BOOK, requirements=(BOOK.requirements[0],), unspecified=())


@pytest.mark.parametrize(
    ("lines", "listed", "expected"),
    [
        (LINES, (LISTED,), []),
        (LINES, (), ["session-protocol:9: no row cites it and uncited.yaml does not list it"]),
        (LINES, (LISTED, LISTED), ["session-protocol:9: listed twice in uncited.yaml"]),
        (
            LINES,
            (replace(LISTED, hash="cccccccccccc"),),
            ["session-protocol:9: uncited.yaml means another line"],
        ),
        (
            LINES,
            (LISTED, replace(LISTED, line=7, hash="aaaaaaaaaaaa")),
            ["session-protocol:7: cited by a row and listed as stating nothing"],
        ),
        (
            {"session-protocol": {9: "bbbbbbbbbbbb"}},
            (LISTED,),
            ["session-protocol:7: cited, and blank"],
        ),
        (
            {**LINES, "mcp-cli-and-sdk": {1: "dddddddddddd"}},
            (LISTED,),
            ["mcp-cli-and-sdk:1: no row cites it and uncited.yaml does not list it"],
        ),
    ],
)
def test_each_kind_of_gap_is_named(
    lines: Mapping[str, Hashes], listed: tuple[Uncited, ...], expected: list[str]
):
    assert TINY.requirements[0].clause.line == 7
    assert list(gaps(TINY, lines, listed)) == expected


def test_a_changed_line_is_noticed():
    texts = {one.name: "".join(f"line {n}\n" for n in range(one.lines)) for one in BOOK.documents}
    changed = {name: hashes_of(text) for name, text in texts.items()}
    found = list(gaps(BOOK, changed, uncited_lines()))
    assert sum("means another line" in one for one in found) == len(uncited_lines())


def test_hashes_stand_for_lines_without_the_space_around_them():
    assert hashes_of("a\n\n  a  \n\tb") == {1: hash_of("a"), 3: hash_of("a"), 4: hash_of("b")}


def test_written_citations_are_read_back():
    (row,) = parse_rows("lines.yaml", lines_yaml({"d": "a\n\nb\n"}))
    assert row == {"document": "d", "lines": {1: hash_of("a"), 3: hash_of("b")}}


def test_the_module_writes_the_committed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for document in BOOK.documents:
        (tmp_path / document.file).write_text(f"of {document.name}\n", "utf-8")

    def package(name: str) -> Path:
        assert name == "harness.protocol.spec"
        return tmp_path

    monkeypatch.setattr(citations, "files", package)
    citations.main(tmp_path)
    written = parse_rows("lines.yaml", (tmp_path / "lines.yaml").read_text("utf-8"))
    assert [row["document"] for row in written] == [one.name for one in BOOK.documents]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("- {document: d, why: w}", "missing lines"),
        ("- {document: d, why: w, lines: [1]}", "expected a text in why and a mapping in lines"),
        ("- {document: d, why: 1, lines: {1: a}}", "expected a text in why"),
    ],
)
def test_a_wrong_row_of_uncited_lines_is_refused(
    row: str, message: str, monkeypatch: pytest.MonkeyPatch
):
    def text(_: str) -> Any:
        return row

    monkeypatch.setattr(citations, "read_text", text)
    uncited_lines.cache_clear()
    try:
        with pytest.raises(BookError, match=message):
            uncited_lines()
    finally:
        uncited_lines.cache_clear()
