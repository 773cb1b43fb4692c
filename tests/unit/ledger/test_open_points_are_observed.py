"""Every point that the text leaves open has an observer, or says why no message shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.ledger.discovery import all_observers
from harness.ledger.observing import BROKEN
from harness.ledger.record import Record, recorded
from harness.spec.loading import load_book
from harness.surface.known import classify_of
from harness.trace.names import Renamer
from harness.trace.store import load

BOOK = load_book()
OBSERVED = {point for observer in all_observers() for point in observer.points}
SESSION = [one for one in BOOK.unspecified if one.document == "session-protocol"]
TRACES = sorted((Path(__file__).parents[3] / "fixtures" / "traces").glob("[!r]*/*.jsonl"))


def test_a_point_is_observed_or_says_why_not() -> None:
    both = [one.id for one in SESSION if (one.id in OBSERVED) == (one.unseen is not None)]
    assert both == []


def test_the_observers_know_no_other_points() -> None:
    assert {one.id for one in SESSION} >= OBSERVED


def test_the_points_of_the_other_document_wait() -> None:
    assert all(one.unseen is None for one in BOOK.unspecified if one not in SESSION)


def record_of(path: Path) -> Record:
    names = load(path, classify_of=classify_of).header.names
    renamer = Renamer(names, BOOK.paths_of)
    return recorded(BOOK, load(path, renamer=renamer, classify_of=classify_of))


@pytest.mark.parametrize("path", TRACES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_observer_breaks_and_no_value_is_of_one_run_alone(path: Path) -> None:
    record = record_of(path)
    assert record.broken == []
    for one in record.choices:
        assert one.value != BROKEN
        assert not re.search(
            r"[0-9a-f]{8}-[0-9a-f]{4}-|/tmp|/home|\bthr_|\bturn_\d|\d{9}", one.value
        )
        assert len(one.value) < 200
        assert one.frame >= 0


def test_the_same_trace_gives_the_same_record() -> None:
    assert record_of(TRACES[0]) == record_of(TRACES[0])
