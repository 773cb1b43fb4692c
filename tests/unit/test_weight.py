"""Line counts by room, and excesses of the budget."""

from pathlib import Path

import pytest

from tools import weight
from tools.weight import FILES, budget_rows, excesses, lower_budget, room_of, table, weigh


def test_rooms_are_top_folders_but_of_the_three_that_are_split() -> None:
    assert room_of("conftest.py") == "root"
    assert room_of("tools/bench/where.py") == "tools"
    assert room_of("harness/errors.py") == "harness"
    assert room_of("harness/judge/rules/turns/ends.py") == "harness/judge"


def test_lines_of_python_are_counted_and_all_files(tmp_path: Path) -> None:
    module, page = tmp_path / "tools" / "a.py", tmp_path / "page.md"
    module.parent.mkdir()
    module.write_text("1\n2\n")
    page.write_text("1\n2\n3\n")
    assert weigh([module, page], tmp_path) == {FILES: 2, "tools": 2}


def test_a_room_above_its_row_and_one_without_a_row_are_refused() -> None:
    assert excesses({"a": 10, "b": 11, "c": 1}, {"a": 10, "b": 10}) == [
        "b: 11, but its row of tools/weight.yaml has 10",
        "c: 1, but tools/weight.yaml has no row for it",
    ]


def test_rows_are_lowered_in_whole_steps_and_never_raised() -> None:
    assert lower_budget({"a": 120, "b": 500}, {"a": 400, "b": 300, "gone": 5}) == {
        "a": 200,
        "b": 300,
    }


def test_the_table_has_a_room_on_each_line_and_the_lines_in_all() -> None:
    assert table({FILES: 3, "a": 12}, {"a": 100}).splitlines() == [
        "room                       lines   budget",
        "files of the repository        3        0",
        "a                             12      100",
        "in all                        12",
    ]


def test_each_row_of_the_budget_is_a_number() -> None:
    assert FILES in budget_rows()
    assert all(row > 0 for row in budget_rows().values())


def test_the_budget_fails_on_a_room_that_exceeds_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "weight.yaml"
    monkeypatch.setattr(weight, "BUDGET", rows)
    monkeypatch.setattr(weight, "tracked_files", lambda: [])
    monkeypatch.setattr(weight, "weigh", lambda _: {"a": 101})
    rows.write_text("a: 101\n")
    assert weight.main(["--budget"]) == 0
    rows.write_text("a: 100\n")
    assert weight.main(["--budget"]) == 1
    assert capsys.readouterr().out.startswith("a: 101, but its row of tools/weight.yaml has 100")
