"""A profile's renames, applied to a copy of a message; values and raw bytes are never touched.

A rename `Type.field = "wire name"` says that this server writes `wire name` where the spec writes
`field` in objects of `Type`. The places where such objects occur come from the judge's book.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from harness.protocol.values import arr, obj

Path = tuple[str | int, ...]
# (type name, method, "params" | "result") -> paths at which an object of that type stands
PathsOf = Callable[[str, str, str], tuple[Path, ...]]


class Renamer:
    """A mapping of a server's member names to those of the specification, for one message each.

    `names` maps "Type.field" to the name on the wire. With no names it returns its input.
    """

    def __init__(self, names: Mapping[str, str], paths_of: PathsOf) -> None:
        self._renames: list[tuple[str, str, str]] = []
        for target, wire_name in names.items():
            type_name, _, field = target.partition(".")
            self._renames.append((type_name, field, wire_name))
        self._paths_of = paths_of
        self._places: dict[tuple[str, str], list[tuple[Path, str, str]]] = {}

    def apply(self, message: Any, method: str, part: str) -> Any:
        """Return the message with the spec's names; `part` is "params" or "result"."""
        if not self._renames or part not in obj(message):
            return message
        for path, field, wire_name in self._places_in(method, part):
            message = _rename((part, *path), message, field, wire_name)
        return message

    def _places_in(self, method: str, part: str) -> list[tuple[Path, str, str]]:
        key = (method, part)
        if key not in self._places:
            self._places[key] = [
                (path, field, wire_name)
                for type_name, field, wire_name in self._renames
                for path in self._paths_of(type_name, method, part)
            ]
        return self._places[key]


def _rename(path: Path, value: Any, field: str, wire_name: str) -> Any:
    """Return `value` with a member of the object at `path` renamed; `value` is not changed."""
    members = obj(value)
    if not path:
        if wire_name not in members or field in members:
            return value
        return {(field if key == wire_name else key): item for key, item in members.items()}
    step, rest = path[0], path[1:]
    if step == "*":
        return [_rename(rest, element, field, wire_name) for element in arr(value)] or value
    if isinstance(step, str) and step in members:
        child = members[step]
        renamed = _rename(rest, child, field, wire_name)
        return value if renamed is child else {**members, step: renamed}
    return value


def with_wire_names(message: str, names: Mapping[str, str]) -> str:
    """Return a message about members, such as a finding, with the server's own names."""
    for target, wire_name in names.items():
        field = re.escape(target.partition(".")[2])
        message = wire_name.join(re.split(rf'(?<=[."]){field}(?![\w-])', message))
    return message
