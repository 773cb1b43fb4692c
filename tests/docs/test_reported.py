"""The page of reported bugs names real scenarios, and each that was made for a report."""

from __future__ import annotations

import re
from pathlib import Path

from harness.scenario.bundled import bundled_ids_on
from harness.trace.surfaces import COMMAND, EXEC, SESSION

PAGE = (Path(__file__).parents[2] / "docs" / "reported.md").read_text("utf-8")
ROWS = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| [")]
PLAYED = [row for row in ROWS if len(row) > 3]
NAMED = {name for row in PLAYED for name in re.findall(r"`([a-z-]+/[a-z/-]+)`", row[2])}
BUNDLED = {
    re.sub(r"@\w+$", "", name)
    for surface in (SESSION, EXEC, COMMAND)
    for name in bundled_ids_on(surface)
}


def test_every_scenario_of_the_page_is_bundled_and_each_made_for_a_report_is_on_it() -> None:
    made = {name for name in BUNDLED if name.startswith("reported/")}
    assert made <= NAMED <= BUNDLED
    assert len(made) >= 8


def test_a_row_says_what_shows_the_bug_or_why_nothing_does() -> None:
    reproduced = [row for row in ROWS if len(row) == 6]
    assert all(row[3] and row[4] and row[5].strip("| ") for row in reproduced)
    assert len(reproduced) >= 10
    assert len(ROWS) >= 20
    assert {len(row) for row in ROWS} == {3, 4, 6}
