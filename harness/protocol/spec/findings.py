"""The list of findings outside the rules: `scenario.*`, `setup.*`, `hygiene.*` and more.

Explain, baselines and docs/reports.md take the ids and meanings from `finding_kinds`. The texts are
in findings.yaml.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, cast

from harness.protocol.spec.yamlfile import BookError, Row, check_keys, parse_rows, read_text

FILE = "findings.yaml"


@dataclass(frozen=True, slots=True)
class FindingKind:
    """The meaning of one id of a finding.

    `means` explains it in half a sentence, `causes` gives usual causes, `advice` what to do.
    `accepted` is false for a finding that no baseline can accept.
    """

    id: str
    means: str
    causes: tuple[str, ...]
    advice: str
    accepted: bool = True

    @property
    def family(self) -> str:
        """The part of the id before the dot; the whole id where there is none."""
        return self.id.split(".", 1)[0]


@cache
def finding_kinds() -> Mapping[str, FindingKind]:
    """Return the kinds of findings by id, in the file's order. Raises `BookError` for a bad row."""
    kinds: dict[str, FindingKind] = {}
    for row in parse_rows(FILE, read_text(FILE)):
        kind = _kind(row)
        if kind.id in kinds:
            raise BookError(f"{FILE}: id {kind.id!r} is given twice")
        kinds[kind.id] = kind
    return MappingProxyType(kinds)


def accepted_ids() -> frozenset[str]:
    """Return the ids of findings that a baseline may name, besides those of rules."""
    return frozenset(kind.id for kind in finding_kinds().values() if kind.accepted)


def _kind(row: Row) -> FindingKind:
    place = f"{FILE}: {row.get('id', 'a row without id')}"
    check_keys(place, row, ("id", "means", "causes", "advice"), ("accepted",))
    causes = row["causes"]
    if not isinstance(causes, list) or not causes:
        raise BookError(f"{place}: causes: expected a list of texts")
    return FindingKind(
        id=_text(place, row, "id"),
        means=_text(place, row, "means"),
        causes=tuple(_check_text(place, "causes", cause) for cause in cast(list[Any], causes)),
        advice=_text(place, row, "advice"),
        accepted=row.get("accepted", True) is not False,
    )


def _text(place: str, row: Row, key: str) -> str:
    return _check_text(place, key, row[key])


def _check_text(place: str, key: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BookError(f"{place}: {key}: expected a text, found {value!r}")
    return value.strip()
