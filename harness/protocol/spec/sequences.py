"""Sentences on pairs of operations: what must hold of one that follows another (sequences.yaml)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast

from harness.protocol.spec.yamlfile import BookError, check_keys, parse_mapping, read_text

FILE: Final = "sequences.yaml"
_ANYTHING: Final = "anything"


@dataclass(frozen=True, slots=True)
class PairRow:
    """A sentence on each operation in `then` that follows one in `first`.

    `clauses` are ids of requirements, `rules` of the rules that judge it, `open_points` of what the
    text leaves open. At least one of the last two is not empty.
    """

    id: str
    first: frozenset[str]
    then: frozenset[str]
    holds: str
    clauses: tuple[str, ...]
    rules: tuple[str, ...]
    open_points: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PairTable:
    """The operations with their meanings, and the rows on pairs of them, in the file's order."""

    operations: Mapping[str, str]
    groups: Mapping[str, tuple[str, ...]]
    rows: tuple[PairRow, ...]

    def rows_of(self, first: str, then: str) -> list[PairRow]:
        """Return the rows on an operation that follows another."""
        return [row for row in self.rows if first in row.first and then in row.then]


@cache
def pair_table() -> PairTable:
    """Return the table. Raises `BookError` for a bad row, or an unknown or repeated name."""
    content = parse_mapping(FILE, read_text(FILE))
    check_keys(FILE, content, ("operations", "groups", "rows"))
    operations: dict[str, str] = {}
    for row in _rows(content, "operations"):
        place = f"{FILE}: {row.get('id', 'an operation without id')}"
        check_keys(place, row, ("id", "means"))
        if row["id"] in operations or row["id"] == _ANYTHING:
            raise BookError(f"{place}: the id is given twice")
        operations[row["id"]] = row["means"]
    groups = {name: _names(FILE, content["groups"], name) for name in content["groups"]}
    for name, members in groups.items():
        unknown = [member for member in members if member not in operations]
        if name in operations or unknown:
            raise BookError(f"{FILE}: group {name!r}: not an operation: {unknown or name}")
    pairs = tuple(_pair(row, operations, groups) for row in _rows(content, "rows"))
    ids = [pair.id for pair in pairs]
    repeated = next((name for name in ids if ids.count(name) > 1), None)
    if repeated is not None:
        raise BookError(f"{FILE}: row {repeated!r} is given twice")
    return PairTable(operations, groups, pairs)


def _rows(content: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    rows = content[key]
    if not isinstance(rows, list) or not rows:
        raise BookError(f"{FILE}: {key}: expected a list of rows")
    return cast("list[dict[str, Any]]", rows)


def _pair(
    row: dict[str, Any], operations: Mapping[str, str], groups: Mapping[str, tuple[str, ...]]
) -> PairRow:
    place = f"{FILE}: {row.get('id', 'a row without id')}"
    check_keys(place, row, ("id", "first", "then", "holds", "clauses"), ("rules", "open"))
    sides = {
        side: frozenset(
            operation
            for name in _names(place, row, side)
            for operation in _expand(place, name, operations, groups)
        )
        for side in ("first", "then")
    }
    rules, points = (_names(place, row, key) if key in row else () for key in ("rules", "open"))
    if not rules and not points:
        raise BookError(f"{place}: neither a rule judges it, nor is it open")
    clauses = _names(place, row, "clauses")
    return PairRow(
        row["id"], **sides, holds=row["holds"], clauses=clauses, rules=rules, open_points=points
    )


def _expand(
    place: str, name: str, operations: Mapping[str, str], groups: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the operations that a name stands for."""
    if name == _ANYTHING:
        return tuple(operations)
    if name in operations:
        return (name,)
    if name not in groups:
        raise BookError(f"{place}: {name!r} is neither an operation nor a group")
    return groups[name]


def _names(place: str, row: Mapping[str, Any], key: str) -> tuple[str, ...]:
    names = row[key]
    texts = cast("list[Any]", names) if isinstance(names, list) else []
    if not texts or not all(isinstance(name, str) for name in texts):
        raise BookError(f"{place}: {key}: expected a list of names")
    if len(set(texts)) < len(texts):
        raise BookError(f"{place}: {key}: a name is given twice")
    return tuple(texts)
