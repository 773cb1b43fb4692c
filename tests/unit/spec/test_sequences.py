"""The table of pairs of operations names what exists, and has a row for each pair."""

from __future__ import annotations

from itertools import product

import pytest

from harness.judge.base import Side
from harness.judge.rules.discovery import all_rules
from harness.protocol.spec import sequences
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.sequences import PairRow, pair_table
from harness.protocol.spec.yamlfile import BookError
from harness.search.sequences.alphabet import OPERATIONS, SERVER_OPERATIONS

BOOK, TABLE = load_book(), pair_table()
OPERATION = "- {id: turn, means: a turn}"


@pytest.mark.parametrize("row", TABLE.rows, ids=lambda row: row.id)
def test_row_names_rules_and_open_points_that_exist(row: PairRow) -> None:
    rules = all_rules()
    assert [rule for rule in row.rules if rule not in rules] == []
    assert {rules[rule].side for rule in row.rules} <= {Side.SERVER}
    assert set(row.open_points) <= {point.id for point in BOOK.unspecified}


@pytest.mark.parametrize("row", TABLE.rows, ids=lambda row: row.id)
def test_each_rule_of_a_row_judges_one_of_its_clauses(row: PairRow) -> None:
    judges = {rule for clause in row.clauses for rule in BOOK.requirement(clause).rules}
    assert [rule for rule in row.rules if rule not in judges] == []
    unjudged = [name for name in row.clauses if not {*BOOK.requirement(name).rules} & {*row.rules}]
    assert unjudged == [] or not row.rules


def test_operations_are_those_that_sequences_are_made_of() -> None:
    played = [operation.name for operation in (*OPERATIONS, *SERVER_OPERATIONS)]
    assert list(TABLE.operations) == played


def test_each_pair_has_a_row() -> None:
    names = TABLE.operations
    assert [pair for pair in product(names, names) if not TABLE.rows_of(*pair)] == []


def test_each_operation_is_first_and_second_in_a_row_of_its_own() -> None:
    narrow = [row for row in TABLE.rows if len(row.first) < len(TABLE.operations)]
    first = set[str]().union(*(row.first for row in narrow))
    then = set[str]().union(*(row.then for row in TABLE.rows))
    assert set(TABLE.operations) - first == set()
    assert set(TABLE.operations) - then == set()


def test_each_group_is_used() -> None:
    text = sequences.read_text(sequences.FILE).partition("\nrows:\n")[2]
    assert [name for name in TABLE.groups if name not in text] == []


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("{first: [turn], then: [flight]}", "'flight' is neither an operation nor a group"),
        ("{first: [turn], then: []}", "then: expected a list of names"),
        ("{first: [turn, turn], then: [turn]}", "first: a name is given twice"),
        ("{first: [turn], then: [turn], rules: [r]}", None),
        ("{first: [turn], then: [turn]}", "neither a rule judges it, nor is it open"),
    ],
)
def test_bad_row_is_rejected(
    rows: str, problem: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = rows.replace("{", "{id: a, holds: it does, clauses: [c], ", 1)
    text = f"operations:\n  {OPERATION}\ngroups: {{}}\nrows:\n  - {row}\n"
    monkeypatch.setattr(sequences, "read_text", lambda _: text)
    read = pair_table.__wrapped__
    if problem is None:
        assert [one.id for one in read().rows] == ["a"]
    else:
        with pytest.raises(BookError, match=problem):
            read()
