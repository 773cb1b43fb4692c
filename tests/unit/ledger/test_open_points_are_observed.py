"""Every point that the text leaves open has an observer, or says why nothing shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.judge.ledger.record import Record, record_trace
from harness.judge.ledger.trace_observer import BROKEN, all_observers
from harness.protocol.spec.loading import load_book
from harness.trace.names import Renamer
from harness.trace.store import load
from harness.trace.surface.registry import SURFACES, classify_of


def beginning(path: Path) -> str:
    """Return the first words of a trace's name; traces that share them are looked at together."""
    return "-".join(path.stem.split("-")[:2])


BOOK = load_book()
OF_ONE_RUN = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-|/tmp|/home|\bthr_|\bturn_\d|\d{9}")
OBSERVED = {(point, one.surface) for one in all_observers() for point in one.points}
TRACES = sorted((Path(__file__).parents[3] / "fixtures" / "traces").glob("[!r]*/*.jsonl"))
BEGINNINGS = sorted({beginning(path) for path in TRACES})


def test_a_point_is_observed_on_each_of_its_surfaces_or_says_why_not() -> None:
    seen = {
        (one.id, surface)
        for one in BOOK.unspecified
        if one.unseen is None
        for surface in one.surfaces
    }
    assert seen == OBSERVED


def test_a_point_names_surfaces_that_there_are() -> None:
    assert {surface for one in BOOK.unspecified for surface in one.surfaces} == {*SURFACES}


def record_of(path: Path) -> Record:
    names = load(path, classify_of=classify_of).header.names
    renamer = Renamer(names, BOOK.paths_of)
    return record_trace(BOOK, load(path, renamer=renamer, classify_of=classify_of))


@pytest.mark.parametrize("name", BEGINNINGS)
def test_no_observer_breaks_and_no_value_is_of_one_run_alone(name: str) -> None:
    for path in TRACES:
        if beginning(path) != name:
            continue
        record = record_of(path)
        assert record.crashes == [], path
        for one in record.choices:
            assert one.value != BROKEN, path
            assert not OF_ONE_RUN.search(one.value), path
            assert len(one.value) < 200, path
            assert one.frame >= 0, path


def test_the_same_trace_gives_the_same_record() -> None:
    assert record_of(TRACES[0]) == record_of(TRACES[0])
