"""The YAML tables: their content, agreement, and errors about mistakes in them."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.judge.rules.discovery import every_rule
from harness.protocol.spec import loading
from harness.protocol.spec.book import Book
from harness.protocol.spec.check import check_book
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.rows import (
    LEVELS,
    make_capability,
    make_document,
    make_event,
    make_method,
    make_requirement,
    make_unspecified,
    read_table,
)
from harness.protocol.spec.schemas import SchemaBook
from harness.protocol.spec.yamlfile import BookError, names_in, parse_rows, read_text

BOOK = load_book()
DOCUMENTS = Path(__file__).parents[4] / "shared" / "spec"


def lines_of(document: str) -> list[str] | None:
    """The document's lines where it lies beside the checkout; else None."""
    path = DOCUMENTS / f"{document}.md"
    return path.read_text(encoding="utf-8").split("\n") if path.is_file() else None


def test_every_rule_serves_a_requirement_and_no_other_rule_is_named():
    named = {rule for row in BOOK.requirements for rule in row.rules}
    assert named == set(every_rule())


def test_requirements_name_a_line_in_the_section_they_say():
    documents = {document.name: document for document in BOOK.documents}
    for row in BOOK.requirements:
        document = documents[row.clause.document]
        assert 1 <= row.clause.line <= document.lines
        assert document.heading_at(row.clause.line) == row.clause.heading, row.id
        lines = lines_of(document.name)
        assert lines is None or lines[row.clause.line - 1].strip(), row.id


def test_committed_hashes_are_those_of_the_documents():
    for document in BOOK.documents:
        assert re.fullmatch("[0-9a-f]{64}", document.sha256)
        lines = lines_of(document.name)
        if lines is not None:
            raw = (DOCUMENTS / document.file).read_bytes()
            assert hashlib.sha256(raw).hexdigest() == document.sha256
            assert len(lines) == document.lines
            headings = [
                (number, line.lstrip("# "))
                for number, line in enumerate(lines, 1)
                if line.startswith("#")
            ]
            assert list(document.sections) == headings


NOT_SHOWN = {
    "session-protocol": {
        *(21, 40, 59, 80, 104, 136, 137, 138, 139, 140, 155, 214, 264, 300, 304, 337),
        *(338, 351, 355, 359),
    },
    "mcp-cli-and-sdk": {26, 27, 39, 91, 154, 158, 162},
}


@pytest.mark.parametrize("document", NOT_SHOWN)
def test_every_point_not_shown_has_a_row(document: str):
    lines = lines_of(document)
    if lines is not None:
        said = {number for number, line in enumerate(lines, 1) if "not shown" in line}
        assert said == NOT_SHOWN[document]
    answered = {point.line for point in BOOK.unspecified if point.document == document}
    assert answered >= NOT_SHOWN[document]


def test_the_documents_say_not_shown_twenty_seven_times():
    assert sum(map(len, NOT_SHOWN.values())) == 27


def test_requirements_come_in_the_order_of_the_text():
    documents = [document.name for document in BOOK.documents]
    places = [(documents.index(r.clause.document), r.clause.line) for r in BOOK.requirements]
    assert places == sorted(places)


def test_an_id_in_two_files_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loading, "names_in", lambda _: ("requirements/sdk.yaml",) * 2)
    with pytest.raises(BookError, match="is taken by a row of another file"):
        load_book.__wrapped__()


def test_levels_follow_from_the_basis():
    for row in BOOK.requirements:
        assert row.clause.level in LEVELS[row.clause.basis]
    assert {row.clause.level for row in BOOK.requirements_of("thread.id-shape")} == {"SHOULD"}
    before = {row.id: row.clause.level for row in BOOK.requirements_of("response.before-effects")}
    assert before == {
        "turn-start.response-first": "INFO",
        "turn-interrupt.response-first": "SHOULD",
    }


def test_derived_rows_are_drawn_from_stated_or_derived_rows():
    for row in BOOK.requirements:
        for name in row.drawn_from:
            assert BOOK.requirement(name).clause.basis != "CHOSEN", row.id


def test_statements_are_single_short_sentences():
    for row in BOOK.requirements:
        assert row.clause.statement.endswith("."), row.id
        assert len(row.clause.statement) <= 200, row.id


def test_every_method_and_event_of_the_text_has_one_row():
    # Own methods are silent: they change no number.
    assert sum(row.stability != "silent" for row in BOOK.methods) == 21
    assert sum(row.stability != "silent" for row in BOOK.events) == 24
    lines = lines_of("session-protocol")
    if lines is not None:
        table = lines[lines.index("## Events") : lines.index("## Errors")]
        named = [
            match[1] for line in table if (match := re.match(r"\| ([a-zA-Z]+[/a-zA-Z]*) \|", line))
        ]
        events = [row.method for row in BOOK.events if row.stability != "silent"]
        assert events == [name for name in named if name != "Method"]


def test_capabilities_hold_each_method_once_and_core_holds_the_thin_path():
    methods = [method for one in BOOK.capabilities for method in BOOK.methods_of(one.id)]
    assert sorted(methods) == sorted(row.method for row in (*BOOK.methods, *BOOK.events))
    core = set(BOOK.methods_of("core"))
    assert {"thread/start", "thread/read", "turn/start", "turn/interrupt"} <= core
    assert BOOK.methods_of("plan") == ("item/plan/delta",)
    assert BOOK.methods_of("sandbox") == ()


def test_every_schema_citation_of_an_open_point_is_used():
    cited = {name[1:] for name in all_citations() if name.startswith("?")}
    assert cited <= {point.id for point in BOOK.unspecified}
    assert len(cited) >= 20


def all_citations() -> list[str]:
    named = [name for row in (*BOOK.methods, *BOOK.events) for name in row.clauses]
    for _, node in BOOK.schemas.nodes():
        named += str(node.get("$comment", "")).split()
    return named


REQUIREMENT: dict[str, Any] = {
    "id": "a.b",
    "document": "session-protocol",
    "heading": "Thread",
    "line": 29,
    "bound": "server",
    "basis": "STATED",
    "level": "MUST",
    "statement": "Something holds.",
    "rules": ["turn.completes"],
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rules": ["Turn.completes"]}, "rules: 'Turn.completes' does not look like"),
        ({"rules": ["turncompletes"]}, "rules: 'turncompletes' does not look like"),
        ({"rules": ["a.b", "a.b"]}, "rules: a name is given twice"),
        ({"rules": []}, "exactly one of rules, excluded"),
        ({"owed": "B"}, "unknown key owed"),
        ({"rules": "turn.completes"}, "rules: expected a list of texts"),
        ({"excluded": "too hard"}, "excluded: expected one of not observable from outside: , "),
        ({"basis": "GUESSED"}, "basis: expected one of STATED, DERIVED, CHOSEN"),
        ({"basis": "CHOSEN"}, "level: expected one of INFO, found 'MUST'"),
        ({"basis": "DERIVED"}, "a DERIVED row, and no other, names two rows"),
        ({"from": ["a.c", "a.d"]}, "a DERIVED row, and no other, names two rows"),
        ({"bound": "nobody"}, "bound: expected one of server, client, both"),
        ({"line": 0}, "line: expected a whole number from 1"),
        ({"line": True}, "line: expected a whole number from 1"),
        ({"statement": " "}, "statement: expected a text"),
        ({"id": "A"}, "id: 'A' does not look like"),
        ({"colour": "red"}, "unknown key colour"),
    ],
)
def test_a_wrong_requirement_row_is_one_line_that_names_the_row(
    changes: dict[str, Any], message: str
):
    with pytest.raises(BookError) as caught:
        make_requirement("requirements.yaml: row 3 (a.b)", {**REQUIREMENT, **changes})
    text = str(caught.value)
    assert text.startswith("requirements.yaml: row 3 (a.b): ")
    assert message in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("make", "row", "message"),
    [
        (make_method, {"method": "a"}, "missing direction, params, result"),
        (
            make_event,
            {
                "method": "a",
                "params": "turn.json",
                "clauses": [],
                "capability": "core",
                "stability": "stable",
            },
            "params: 'turn.json' does not look like",
        ),
        (make_unspecified, {"id": "a.b"}, "missing document"),
        (make_capability, {"id": "a", "title": "A"}, "missing description"),
        (
            make_document,
            {"name": "a", "file": "a.md", "lines": 1, "sha256": "12", "sections": {1: "A"}},
            "sha256: '12' does not look like",
        ),
        (
            make_document,
            {"name": "a", "file": "a.md", "lines": 1, "sha256": "0" * 64, "sections": []},
            "sections: expected a mapping",
        ),
        (
            make_document,
            {"name": "a", "file": "a.md", "lines": 1, "sha256": "0" * 64, "sections": {1: 2}},
            "sections: 1: 2 is not a line and a heading",
        ),
        (
            make_document,
            {
                "name": "a",
                "file": "a",
                "lines": 9,
                "sha256": "0" * 64,
                "sections": {5: "B", 1: "A"},
            },
            "sections: not in the order of their lines",
        ),
    ],
)
def test_wrong_rows_of_the_other_tables_are_refused(
    make: Callable[[str, Any], object], row: dict[str, Any], message: str
):
    with pytest.raises(BookError, match=re.escape(message)):
        make("x.yaml: row 1", row)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {id: a, id: b}", "x.yaml: line 1: key 'id' is given twice"),
        ("id: a", "x.yaml: expected a list of rows"),
        ("- word", "x.yaml: row 1: expected a mapping"),
        ("- {id: a", "x.yaml: "),
        ("- !!python/object:os.system {}", "x.yaml: could not determine a constructor"),
    ],
)
def test_wrong_yaml_is_one_line_that_names_the_file(text: str, message: str):
    with pytest.raises(BookError) as caught:
        parse_rows("x.yaml", text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_key_given_to_two_rows_is_refused():
    row = "- {id: a.b, document: d, line: 1, question: q, choice: c, reason: r}\n"
    with pytest.raises(BookError, match=r"row 2 \(a\.b\): id 'a\.b' is taken"):
        read_table("unspecified.yaml", row * 2, "id", make_unspecified)
    with pytest.raises(BookError, match=r"row 1 \(without id\): missing id"):
        read_table("unspecified.yaml", "- {document: d}", "id", make_unspecified)


def test_a_method_of_two_schema_files_is_refused(monkeypatch: pytest.MonkeyPatch):
    files = dict(SchemaBook.load().files)
    row = files["rpc.json"]["methods"][0]
    files["turn.json"] = {**files["turn.json"], "methods": [row]}
    monkeypatch.setattr(SchemaBook, "load", lambda: SchemaBook(files))
    with pytest.raises(BookError, match=r"schema/turn\.json: initialize is taken"):
        load_book.__wrapped__()


def broken_books() -> list[tuple[Book, str]]:
    requirement, event = BOOK.requirements[0], BOOK.events[0]
    method = BOOK.methods[1]
    clause = requirement.clause
    return [
        (
            replace(BOOK, requirements=(replace(requirement, clause=replace(clause, line=9999)),)),
            "session-protocol has no line 9999",
        ),
        (
            replace(
                BOOK, requirements=(replace(requirement, clause=replace(clause, document="x")),)
            ),
            "no document 'x'",
        ),
        (
            replace(BOOK, requirements=(replace(requirement, clause=replace(clause, line=300)),)),
            "requirements: service.conversation: line 300 is under 'Server requests'",
        ),
        (
            replace(BOOK, events=(replace(event, clauses=("no.such-clause",)),)),
            "schema: events: thread/started: nothing is called 'no.such-clause'",
        ),
        (replace(BOOK, events=(replace(event, clauses=()),)), "names no clause"),
        (
            replace(BOOK, events=(replace(event, capability="magic"),)),
            "no capability 'magic'",
        ),
        (
            replace(BOOK, methods=(replace(method, result="turn.json#/$defs/Nothing"),)),
            "schema: methods: skills/list: schema reference",
        ),
        (replace(BOOK, unspecified=()), "nothing is called '?"),
    ]


@pytest.mark.parametrize(("book", "message"), broken_books())
def test_tables_that_disagree_are_refused(book: Book, message: str):
    with pytest.raises(BookError) as caught:
        check_book(book)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_tables_hold_no_path_of_a_machine():
    tables = [f"{name}.yaml" for name in ("unspecified", "capabilities", "documents", "uncited")]
    for name in (*tables, *names_in("requirements"), *names_in("schema", ".json")):
        assert not re.search(r"/(home|root|work|tmp)/", read_text(name))
