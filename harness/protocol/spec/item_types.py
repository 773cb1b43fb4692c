"""Facts of the book about each item type beside the shape of its members.

`traits` are words of `TRAITS`, which rules ask for; `about` names the members that tell what the
item is about. Also: which notification adds to items of which type. Rules ask when their modules
are imported, so this reads the two files on items alone.
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
    """The schema of each item type that has members of its own, by the type."""
    return read_definitions(load_schemas([_FILE])[_FILE])


def read_definitions(document: Any) -> dict[str, Any]:
    """As `_definitions`, of a parsed item.json. Raises BookError for a trait that is no word."""
    found: dict[str, Any] = {}
    for branch in document["$defs"]["ThreadItem"]["allOf"]:
        named = branch["if"]["properties"]["type"]
        name = branch["then"]["$ref"].rpartition("/")[2]
        definition = document["$defs"][name]
        for trait in definition.get("traits", ()):
            if trait not in TRAITS:
                raise BookError(f"schema/{_FILE}: {name}: {trait!r} is none of {', '.join(TRAITS)}")
        for item_type in named.get("enum") or [named["const"]]:
            found[item_type] = definition
    return found


def types_with(trait: str) -> tuple[str, ...]:
    """The item types that have a trait, in the order of the text. Raises KeyError for another word.

    The words are explained in `TRAITS`.
    """
    if trait not in TRAITS:
        raise KeyError(trait)
    return tuple(name for name, one in _definitions().items() if trait in one.get("traits", ()))


def required_members() -> dict[str, tuple[str, ...]]:
    """Of each item type that has members of its own, those that it must have."""
    return {name: tuple(one.get("required", ())) for name, one in _definitions().items()}


def members_about() -> dict[str, tuple[str, ...]]:
    """Of each item type that has them, the members that tell what it is about."""
    return {name: tuple(one["about"]) for name, one in _definitions().items() if "about" in one}


def status_types() -> dict[str, str]:
    """Of each item type that has a status, the name of the enumeration of its words."""
    found: dict[str, str] = {}
    for name, definition in _definitions().items():
        status = cast("dict[str, Any]", definition["properties"].get("status", {}))
        if "$ref" in status:
            found[name] = status["$ref"].rpartition("/")[2]
    return found


def delta_types() -> dict[str, str]:
    """Of each notification that adds to an item, the item type: the middle of its name.

    One whose params the text does not show is left out: which item it names is not known.
    """
    rows = read_messages(_EVENTS, load_schemas([_EVENTS])[_EVENTS], "events", make_event)
    named = {row.method: row.method.split("/") for row in rows if row.params is not None}
    return {method: parts[1] for method, parts in named.items() if len(parts) == 3}
