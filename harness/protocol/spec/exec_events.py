"""The events of `agent exec` and the items in them, from the tables of exec_events.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, cast

from harness.protocol.spec.yamlfile import BookError, parse_mapping, read_text

Type = Literal["string", "number", "boolean", "array", "object", "any"]
TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "any": (object,),
}
_FILE: Final = "exec_events.yaml"


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member: its name and type, and whether the specification states them (`stated`).

    `late`: it may be missing before the item is completed; `optional`: even afterwards.
    """

    name: str
    type: Type
    stated: bool = True
    late: bool = False
    optional: bool = False

    def holds(self, value: Any) -> bool:
        """Return whether a value has the type of the member."""
        if self.type == "number" and isinstance(value, bool):
            return False
        return isinstance(value, TYPES[self.type])


@dataclass(frozen=True, slots=True)
class ShapeRow:
    """An event or an item: its requirement and its members."""

    clause: str
    members: tuple[MemberRow, ...]


@dataclass(frozen=True, slots=True)
class ExecEvents:
    """The tables. `elements` maps `TYPE.MEMBER`, an array of an item, to its elements' members."""

    events: Mapping[str, ShapeRow]
    items: Mapping[str, ShapeRow]
    elements: Mapping[str, tuple[MemberRow, ...]]
    usage: tuple[str, ...]


@cache
def exec_events() -> ExecEvents:
    """Return the tables, read once in a process. Raises BookError for an unknown type."""
    table = parse_mapping(_FILE, read_text(_FILE))
    return ExecEvents(
        events={name: _shape(row) for name, row in table["events"].items()},
        items={name: _shape(row) for name, row in table["items"].items()},
        elements={name: _members(row) for name, row in table["elements"].items()},
        usage=tuple(table["usage"]),
    )


def _shape(row: Mapping[str, Any]) -> ShapeRow:
    return ShapeRow(row["clause"], _members(row["members"]))


def _members(rows: Mapping[str, Any]) -> tuple[MemberRow, ...]:
    members: list[MemberRow] = []
    for name, row in rows.items():
        if row.get("type") not in TYPES:
            raise BookError(f"{_FILE}: {name}: expected one of {', '.join(TYPES)}")
        members.append(MemberRow(name, **cast("dict[str, Any]", row)))
    return tuple(members)
