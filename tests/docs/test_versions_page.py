"""The comparison of two releases has the form that its tool writes, and says how it was made.

The runs behind it are of real servers, which no test starts.
"""

from __future__ import annotations

import re

import pytest

from harness.judge.verdict import Verdict
from harness.report.compare.comparison import compare
from harness.report.compare.text import HEADINGS, OF_KNOWN, UNSTEADY
from harness.report.compare.values import Kind
from tests.unit.compare.recorded_runs import SCENARIO, played, row, run
from tools.compare_page import HEAD, PAGE, PROGRAMS, RUNS, SECOND, page

TEXT = PAGE.read_text("utf-8")
PARTS = TEXT.split(SECOND)


def sections(text: str) -> dict[str, list[str]]:
    """The rows of the table below each heading."""
    found: dict[str, list[str]] = {}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        heading, _, body = part.partition("\n")
        found[heading] = [line for line in body.splitlines() if line.startswith("| ")][1:]
    return found


def test_the_page_says_how_it_was_made() -> None:
    assert TEXT.startswith(HEAD)
    assert "`make real`" in HEAD
    assert len(PARTS) == 2
    assert all(name in TEXT for name in (*RUNS, *PROGRAMS))


@pytest.mark.parametrize("part", PARTS, ids=["sessions", "programs"])
def test_its_headings_are_those_of_a_comparison_in_their_order(part: str) -> None:
    of_known = [heading + OF_KNOWN for heading in HEADINGS.values()]
    order = [*HEADINGS.values(), *of_known, UNSTEADY]
    headings = list(sections(part))
    assert headings == [heading for heading in order if heading in headings]
    assert len(headings) > 3


@pytest.mark.parametrize("part", PARTS, ids=["sessions", "programs"])
def test_every_heading_has_rows_and_the_last_line_counts_at_least_as_many(part: str) -> None:
    last = part.rstrip().splitlines()[-1]
    counts = {name: int(count) for count, name in re.findall(r"(\d+) ([a-z ,]+?)(?=, \d|\.)", last)}
    for kind in Kind:
        found, heading = sections(part), HEADINGS[kind]
        rows = found.get(heading, []) + found.get(heading + OF_KNOWN, [])
        # Scenarios that failed for one reason are one row.
        assert bool(rows) == (kind.value in counts), kind
        assert len(rows) <= counts.get(kind.value, 0)


def test_nothing_of_the_machine_is_on_it() -> None:
    assert not re.search(r"/(work|home|tmp|root)/|\.harness|[0-9a-f]{8}-[0-9a-f]{4}-", TEXT)


def test_the_tool_writes_such_a_page() -> None:
    first = run("old", played(SCENARIO, row(Verdict.PASS)))
    text = page(compare(first, first), compare(first, first))
    assert text.startswith(HEAD)
    assert text.rstrip().endswith("Differences: none.")
