"""Planted differences of every kind, on either side, are found in facts and by documents."""

from pathlib import Path

import pytest

from agreement.messages import document_differences, stated_differences
from agreement.planted_book import IN_THE_BOOK
from agreement.planted_wire import IN_THE_WIRE
from agreement.plants import Plant, messages_of, plant_in_book, plant_in_wire
from agreement.settled import DOCUMENTS, EXPLAINED


def by_kind(plant: Plant) -> str:
    return plant.kind.replace(" ", "-")


def test_every_kind_is_planted_on_both_sides():
    assert [plant.kind for plant in IN_THE_WIRE] == [plant.kind for plant in IN_THE_BOOK]


@pytest.mark.slow
@pytest.mark.parametrize("plant", IN_THE_WIRE, ids=by_kind)
def test_differences_planted_in_the_wire_are_found(plant: Plant, tmp_path: Path):
    with plant_in_wire(tmp_path, plant.file, plant.old, plant.new, plant.method) as messages:
        said = stated_differences(messages=messages)
        shown = document_differences(messages=messages)
    assert said - set(EXPLAINED) == set(plant.found)
    assert bool(shown.keys() - set(DOCUMENTS)) is plant.shown


@pytest.mark.parametrize("plant", IN_THE_BOOK, ids=by_kind)
def test_differences_planted_in_the_book_are_found(plant: Plant):
    schemas = plant_in_book(plant.file, plant.old, plant.new)
    messages = messages_of(plant.method)
    assert stated_differences(schemas, messages) - set(EXPLAINED) == set(plant.found)
    shown = document_differences(schemas, messages)
    assert bool(shown.keys() - set(DOCUMENTS)) is plant.shown


def test_a_plant_that_finds_no_soil_is_an_error(tmp_path: Path):
    with pytest.raises(LookupError, match="0 times"):
        plant_in_book("turn.json", "no such text", "")
    nowhere = plant_in_wire(tmp_path, "turn.py", "no such text", "", "turn/start")
    with pytest.raises(LookupError, match="0 times"), nowhere:
        pass
