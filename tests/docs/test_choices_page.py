"""docs/choices.md has each open point, sorted by the observed choices of both servers."""

import re

from harness.protocol.spec.loading import load_book
from tools.choices_page import TITLES, choices_page, seen_choices

BOOK = load_book()
PAGE = choices_page(BOOK)


def section_of(point: str) -> str:
    """The heading that stands above the row of a point."""
    above = PAGE[: PAGE.index(f"| [{point}](")]
    return re.findall(r"^## (.+)$", above, flags=re.M)[-1]


def test_each_open_point_is_one_row_with_ours_theirs_and_why() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| [")]
    listed = [re.findall(r"\| \[([^]]+)\]", row)[0] for row in rows]
    assert sorted(listed) == sorted(point.id for point in BOOK.unspecified)
    cells = [re.split(r"(?<!\\) \| ", row.strip("| ")) for row in rows]
    assert {len(row) for row in cells} == {4}
    assert all(cell for row in cells for cell in row)


def test_a_point_stands_where_what_was_seen_puts_it() -> None:
    assert section_of("mcp-remove.credentials") == TITLES["other"]
    assert section_of("mcp-get.unknown") == TITLES["same"]
    assert section_of("approval-policy.accepted-then-stopped") == TITLES["unknown"]


def test_counts_and_places_of_a_report_are_left_out_and_the_last_report_counts() -> None:
    def report(value: str) -> dict[str, object]:
        return {"choices": {"p": [{"about": "a", "value": value, "count": 3, "shown": "1"}]}}

    assert seen_choices([report("old"), report("new")]) == {"p": {"a": ["new"]}}
