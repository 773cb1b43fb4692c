"""The book's bases, and the rules' levels, beside a classification by somebody who knew neither."""

import csv
from pathlib import Path
from typing import Any

import yaml

from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level
from harness.protocol.spec.loading import load_book

FOLDER = Path(__file__).parents[3] / "fixtures" / "blind"
CLASSES = {"STATED", "DERIVED", "CHOSEN", "WRONG"}
# What a rule may weigh by what the blind reader found: no more than this.
ALLOWED = {
    "STATED": {Level.MUST, Level.SHOULD, Level.INFO},
    "DERIVED": {Level.SHOULD, Level.INFO},
    "CHOSEN": {Level.INFO},
    "WRONG": set[Level](),
}
BOOK = load_book()
ROWS = {row.id: row for row in BOOK.requirements}
RULES = all_rules()


def _blind(name: str, key: str) -> dict[str, str]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as lines:
        return {row[key]: row["class"] for row in csv.DictReader(lines, delimiter="\t")}


BLIND = _blind("classification.tsv", "requirement")
BLIND_RULES = _blind("rules.tsv", "rule")
SETTLED: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "settled.yaml").read_text("utf-8"))


def test_a_remark_is_made_only_on_what_waits_for_the_next_reader():
    waiting = (set(ROWS) - set(BLIND)) | (set(RULES) - set(BLIND_RULES))
    assert set(SETTLED["unread"]) <= waiting


def test_classified_requirements_still_exist():
    assert set(BLIND) <= set(ROWS)
    assert set(BLIND_RULES) <= set(RULES)
    assert {*BLIND.values(), *BLIND_RULES.values()} <= CLASSES


def test_the_basis_is_what_a_blind_reader_found_or_the_difference_is_settled():
    differ = {one for one in BLIND if BLIND[one] != ROWS[one].clause.basis}
    assert sorted(differ - {*SETTLED["stands"], *SETTLED["reworded"]}) == []


def test_only_differences_are_settled():
    for row_id in SETTLED["stands"]:
        assert BLIND[row_id] != ROWS[row_id].clause.basis, f"{row_id}: nothing left to settle"
    for row_id in SETTLED["reworded"]:
        assert BLIND[row_id] != "STATED", f"{row_id}: the blind reader agreed"


def test_a_rule_weighs_no_more_than_a_blind_reader_found_or_says_why():
    too_heavy = {
        one for one, found in BLIND_RULES.items() if RULES[one].level not in ALLOWED[found]
    }
    assert sorted(too_heavy) == sorted(SETTLED["rules"])


def test_a_row_or_rule_that_went_is_no_longer_spoken_of():
    assert {*SETTLED["stands"], *SETTLED["reworded"]} <= set(ROWS)
    assert set(SETTLED["rules"]) <= set(RULES)
