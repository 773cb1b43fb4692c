"""Facts of the book about each item type, besides the shape of its members.

`traits` are words of `TRAITS`; `about` names the members that identify the subject of the item.
Also: the item type of each delta notification. Rules need these facts when their modules are
imported, so only the two files on items are read.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, cast

from harness.protocol.spec.rows import make_event, read_messages
from harness.protocol.spec.yamlfile import BookError, load_schemas

TRAITS: Final = {
    "at-once": "it is there at once: nothing goes on between its beginning and its end",
    "models-words": "it is the model's own words, which a retry of the model call can cut off",
    "runs-elsewhere": "a program or a tool does the work: it may take any time and write any file",
}
_FILE: Final = "item.json"
_EVENTS: Final = "item-events.json"


@cache
def _definitions() -> Mapping[str, Any]:
    """Return the schema of each item type that has members of its own, by the type."""
    return read_definitions(load_schemas([_FILE])[_FILE])


def read_definitions(document: Any) -> dict[str, Any]:
    """Return the `_definitions` of a parsed item.json. Raises BookError for an unknown trait."""
    definitions: dict[str, Any] = {}
    for branch in document["$defs"]["ThreadItem"]["allOf"]:
        condition = branch["if"]["properties"]["type"]
        name = branch["then"]["$ref"].rpartition("/")[2]
        definition = document["$defs"][name]
        for trait in definition.get("traits", ()):
            if trait not in TRAITS:
                raise BookError(f"schema/{_FILE}: {name}: {trait!r} is none of {', '.join(TRAITS)}")
        for item_type in condition.get("enum") or [condition["const"]]:
            definitions[item_type] = definition
    return definitions


def types_with(trait: str) -> tuple[str, ...]:
    """Return the item types that have a trait of `TRAITS`, in the order of item.json.

    Raises KeyError for an unknown trait.
    """
    if trait not in TRAITS:
        raise KeyError(trait)
    return tuple(name for name, shape in _definitions().items() if trait in shape.get("traits", ()))


def required_members() -> dict[str, tuple[str, ...]]:
    """Return the required members of each item type that has members of its own."""
    return {name: tuple(shape.get("required", ())) for name, shape in _definitions().items()}


def members_about() -> dict[str, tuple[str, ...]]:
    """Return the members that identify the subject of an item, by item type."""
    return {
        name: tuple(shape["about"]) for name, shape in _definitions().items() if "about" in shape
    }


def status_types() -> dict[str, str]:
    """Return the name of the status enumeration of each item type that has a status."""
    types: dict[str, str] = {}
    for name, shape in _definitions().items():
        status = cast("dict[str, Any]", shape["properties"].get("status", {}))
        if "$ref" in status:
            types[name] = status["$ref"].rpartition("/")[2]
    return types


def delta_types() -> dict[str, str]:
    """Return the item type of each delta notification: the middle of its name.

    Notifications whose params the specification does not show are left out.
    """
    rows = read_messages(_EVENTS, load_schemas([_EVENTS])[_EVENTS], "events", make_event)
    parts_of = {row.method: row.method.split("/") for row in rows if row.params is not None}
    return {method: parts[1] for method, parts in parts_of.items() if len(parts) == 3}
