"""The benchmark's command line: chosen parts, and `--help` measures nothing."""

from __future__ import annotations

import pytest

from tools.bench.budgets import BUDGETS
from tools.bench.parts import INSIDE, PARTS, parse_arguments, rows

NAMES = [part.name for part in PARTS]


def test_without_a_name_everything_is_measured() -> None:
    assert parse_arguments([]) == (NAMES, False)
    assert rows(NAMES) == list(BUDGETS)


def test_named_parts_alone_are_measured_in_the_order_of_the_table() -> None:
    assert parse_arguments(["suite", "rules", "suite"]) == (["rules", "suite"], False)
    assert parse_arguments([INSIDE, "real"]) == (["real"], True)


def test_table_has_the_rows_of_the_named_parts_only() -> None:
    assert [one.key for one in rows(["rules", "races"])] == ["races", "rules", "rules-memory"]
    known = {budget.key for budget in BUDGETS}
    assert {key for part in PARTS for key in part.keys} <= known


def test_start_and_first_turn_can_be_measured_alone() -> None:
    assert [one.key for one in rows(["start"])] == ["first-answer", "first-turn", "start-cpu"]


def test_help_names_every_part_and_measures_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_arguments(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert [part.title for part in PARTS if part.title not in shown] == []
    assert INSIDE not in shown


def test_unknown_part_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_arguments(["speed"])
    assert ended.value.code == 2
    assert "no part 'speed'; there are: " + ", ".join(NAMES) in capsys.readouterr().err
