"""docs/protocol.md is the judge's book in prose: all of it, in its place, and nothing else."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from harness.protocol.spec.loading import load_book
from harness.protocol.spec.machines import MACHINES
from harness.protocol.spec.members import all_shapes
from tools import protocol_page as protocoldoc
from tools.protocol_page import DIAGRAMS, PAGE, protocol_page
from tools.protocol_sections import TITLES
from tools.site import slugify

BOOK = load_book()
TEXT = PAGE.read_text("utf-8")
LINES = TEXT.splitlines()
ANCHORS = Counter(re.findall(r'<a id="([^"]+)"></a>', TEXT))
HEADINGS = [line.lstrip("# ") for line in LINES if re.match(r"#{1,4} ", line)]


def test_the_committed_page_is_what_the_book_says():
    assert protocol_page(BOOK) == TEXT, "`python -m tools.protocol_page` writes it anew"


def test_every_requirement_and_every_open_point_has_one_anchor():
    points = {f"open.{point.id}" for point in BOOK.unspecified}
    assert set(ANCHORS) == {row.id for row in BOOK.requirements} | points
    assert set(ANCHORS.values()) == {1}


def test_every_heading_is_one_anchor_and_the_contents_link_to_sections():
    linked = re.findall(r"\]\(#([^)]+)\)", TEXT)
    slugs = Counter(slugify(heading) for heading in HEADINGS)
    assert len(linked) > 40
    assert {link: slugs[link] for link in linked} == dict.fromkeys(linked, 1)
    # A forge numbers headings of one name: a section must not come after another of its name.
    assert [link for link in linked if link in ANCHORS] == []


def _section_of(anchor: str) -> str:
    """The section that an anchor stands in."""
    where = next(n for n, line in enumerate(LINES) if f'<a id="{anchor}"></a>' in line)
    above = [line for line in LINES[:where] if line.startswith("### ")]
    return above[-1].removeprefix("### ").removesuffix(" (command and SDK)")


def test_requirements_stand_under_the_heading_of_the_text():
    for row in BOOK.requirements[::7]:
        assert _section_of(row.id) == row.clause.heading


def test_open_points_stand_under_the_heading_of_the_text():
    documents = {document.name: document for document in BOOK.documents}
    for point in BOOK.unspecified[::7]:
        assert _section_of(f"open.{point.id}") == documents[point.document].heading_at(point.line)


def test_every_method_and_notification_has_a_heading():
    named = {row.method for row in (*BOOK.methods, *BOOK.events) if row.stability != "silent"}
    assert named - set(HEADINGS) == set()


def test_every_member_of_every_message_is_in_a_table():
    # A shape without a clause is ours: the text does not show it, and its open point describes it.
    for shape in (one for _, one in all_shapes(BOOK.schemas) if one.clauses):
        members = [*shape.members, *(one for v in shape.variants for one in v.members)]
        for member in members:
            assert f"| `{member.name}` | {member.type} |" in TEXT, (shape.name, member.name)


def test_the_type_words_say_arrays_null_lists_and_names():
    rows = {
        "| `turns` | array of Turn | optional |",
        "| `path` | string or null | always |",
        "| `status` | `inProgress`, `completed`, `interrupted`, `failed` | always |",
        "| `error` | TurnError or null | always |",
        "| `phase` | anything | optional |",
        "| `cwds` | array of string or null | optional |",
    }
    assert rows - set(LINES) == set()


def test_item_types_have_their_rows_and_open_points_beside_them():
    start = LINES.index("#### agentMessage")
    part = "\n".join(LINES[start : LINES.index("#### plan")])
    assert "| `text` | string | always |" in part
    assert 'id="item.agent-message"' in part
    assert 'id="open.item.message-phase"' in part


def test_every_machine_is_drawn_in_its_section():
    assert {name for names in DIAGRAMS.values() for name in names} == set(MACHINES)
    assert TEXT.count("```mermaid") == len(MACHINES)
    for heading in DIAGRAMS:
        assert LINES[LINES.index(f"### {heading}") + 2] == "```mermaid"


def test_each_title_names_a_family_that_exists():
    families = {row.id.partition(".")[0] for row in BOOK.requirements}
    assert set(TITLES) <= families


def test_lines_of_prose_are_short():
    prose = [line for line in LINES if not line.startswith(("|", "- [", "  - [", "#"))]
    assert [line for line in prose if len(line) > 100] == []


def test_the_page_is_made_of_the_book_it_is_given():
    first = BOOK.requirements[0]
    clause = replace(first.clause, statement="Something else holds.")
    other = replace(BOOK, requirements=(replace(first, clause=clause), *BOOK.requirements[1:]))
    page = protocol_page(other)
    assert "**MUST** Something else holds." in page
    changed = set(page.splitlines()) ^ set(LINES)
    assert 2 <= len(changed) <= 4


def test_a_requirement_says_who_is_bound_where_it_comes_from_and_what_judges_it():
    joined = " ".join(TEXT.split())
    assert "turn.started-once; line 169; derived from turn.started-announced and" in joined
    assert "input.types; line 63; stated; both are bound; rules `shape.response`" in joined
    answer = "rpc.answer-form; line 16; stated; the client is bound; rules `duty.answer-form`"
    assert answer in joined
    assert "limits.page-size; line 355; stated; no rule: not observable from outside" in joined


def test_the_module_writes_the_page(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(protocoldoc, "PAGE", tmp_path / "protocol.md")
    protocoldoc.main()
    assert (tmp_path / "protocol.md").read_text("utf-8") == TEXT
