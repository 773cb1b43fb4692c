"""Sets of scenarios, packed as text."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from harness.report.results.sightings import Sightings, pack, pack_places, unpack, unpack_places

PLACES = st.lists(st.integers(0, 500), min_size=1, unique=True).map(sorted)


@given(places=PLACES, frame=st.integers(-1, 10_000))
def test_packed_places_are_unpacked_unchanged(places: list[int], frame: int) -> None:
    shown = Sightings(tuple(places), places[0], frame)
    assert unpack(pack(shown)) == shown


@given(places=PLACES)
def test_neighbours_are_one_range(places: list[int]) -> None:
    packed = pack_places(places)
    assert list(unpack_places(packed)) == places
    gaps = sum(later - earlier > 1 for earlier, later in itertools.pairwise(places))
    assert packed.count(",") == gaps


def test_a_range_reads_as_people_write_it() -> None:
    assert pack(Sightings((0, 1, 2, 5), 0, 33)) == "0-2,5:0#33"
