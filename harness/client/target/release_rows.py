"""The part of a profile's file that holds for one release, each value with its place."""

from typing import Any, cast

from harness.client.target.inheritance import overlay_tables
from harness.client.target.tomltext import Loc, Place, Toml
from harness.errors import UsageError
from harness.protocol.releases import holds_for, range_words

BLOCKS, RANGE_KEYS = "releases", ("since", "until")
# Keys that cannot differ between releases.
FIXED_KEYS = ("name", "title", "extends", "version", BLOCKS)
# Lists whose rows can have a range.
_RANGED_LISTS = ("deviations", "tools", "capabilities")


def select_release(toml: Toml, release: str | None) -> Toml:
    """Return what holds for a release, None for any: rows in range, blocks merged into the file.

    Rows keep their range. The file was validated before.
    """
    blocks = cast("list[dict[str, Any]]", toml.value.get(BLOCKS, []))
    result = toml
    for index, block in enumerate(blocks):
        if release is None or holds_for(release, block):
            result = overlay_tables(result, block_of(toml, index))
    value = {key: inner for key, inner in result.value.items() if key != BLOCKS}
    result = Toml(result.file, value, result.keys, result.values, dict(result.ranges))
    for key in _RANGED_LISTS:
        if isinstance(rows := value.get(key), list):
            _select_rows(result, key, cast("list[Any]", rows), release)
    return result


def block_of(toml: Toml, index: int) -> Toml:
    """Return a block as a file of its own; its range is left out. `UsageError` for a wrong key."""
    block: dict[str, Any] = toml.value[BLOCKS][index]
    for key in FIXED_KEYS:
        if key in block:
            place = toml.place((BLOCKS, index, key), key=True)
            raise UsageError(f"{place}: {BLOCKS}: {key!r} cannot differ between releases")
    members = {key: value for key, value in block.items() if key not in RANGE_KEYS}
    prefix: Loc = (BLOCKS, index)

    def inner(places: dict[Loc, Place]) -> dict[Loc, Place]:
        return {loc[2:]: place for loc, place in places.items() if loc[:2] == prefix and loc[2:]}

    values, words = inner(toml.values), range_words(block)
    ranges = dict.fromkeys(values.values(), words)
    return Toml(toml.file, members, inner(toml.keys), values, ranges)


def first_range(toml: Toml) -> Place | None:
    """Return the place of the first range in a file, None if it has none."""
    places = [
        place
        for loc, place in toml.keys.items()
        if loc[-1] in RANGE_KEYS and loc[0] in (BLOCKS, *_RANGED_LISTS)
    ]
    return min(places, key=lambda place: place.line, default=None)


def _select_rows(toml: Toml, key: str, rows: list[Any], release: str | None) -> None:
    """Leave the rows in range in a list; capabilities become their names."""
    new_index: dict[int, int] = {}
    selected: list[Any] = []
    for index, row in enumerate(rows):
        ranges = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
        if release is None or holds_for(release, ranges):
            new_index[index] = len(selected)
            toml.ranges[toml.place((key, index))] = range_words(ranges)
            selected.append(ranges["name"] if key == "capabilities" and ranges else row)
    if len(selected) < len(rows):
        toml.keys, toml.values = (
            _with_indexes(places, key, new_index) for places in (toml.keys, toml.values)
        )
    toml.value[key] = selected


def _with_indexes(
    places: dict[Loc, Place], key: str, new_index: dict[int, int]
) -> dict[Loc, Place]:
    moved: dict[Loc, Place] = {}
    for loc, place in places.items():
        if len(loc) > 1 and loc[0] == key and isinstance(loc[1], int):
            if loc[1] in new_index:
                moved[(key, new_index[loc[1]], *loc[2:])] = place
        else:
            moved[loc] = place
    return moved
