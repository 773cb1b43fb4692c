"""The book's bases beside a classification by somebody who had not seen them."""

import csv
from pathlib import Path

import pytest
import yaml

from harness.spec.book import load_book

FOLDER = Path(__file__).parents[3] / "fixtures" / "blind"
CLASSES = {"STATED", "DERIVED", "CHOSEN", "WRONG"}
BOOK = load_book()
ROWS = {row.id: row for row in BOOK.requirements}


def _blind() -> dict[str, str]:
    with (FOLDER / "classification.tsv").open(encoding="utf-8") as lines:
        return {row["requirement"]: row["class"] for row in csv.DictReader(lines, delimiter="\t")}


BLIND = _blind()
SETTLED: dict[str, dict[str, str]] = yaml.safe_load((FOLDER / "settled.yaml").read_text("utf-8"))


def test_all_rows_of_that_day_were_classified():
    assert len(BLIND) == 504
    assert set(BLIND.values()) <= CLASSES


@pytest.mark.parametrize("row_id", sorted(set(BLIND) & set(ROWS)))
def test_the_basis_is_what_a_blind_reader_found_or_the_difference_is_settled(row_id: str):
    if BLIND[row_id] != ROWS[row_id].clause.basis:
        assert row_id in SETTLED["stands"] or row_id in SETTLED["reworded"]


def test_only_differences_are_settled():
    for row_id in SETTLED["stands"]:
        assert BLIND[row_id] != ROWS[row_id].clause.basis, f"{row_id}: nothing left to settle"
    for row_id in SETTLED["reworded"]:
        assert BLIND[row_id] != "STATED", f"{row_id}: the blind reader agreed"


def test_a_row_that_went_is_no_longer_spoken_of():
    assert {*SETTLED["stands"], *SETTLED["reworded"]} <= set(ROWS)
