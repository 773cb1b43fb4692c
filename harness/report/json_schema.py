"""Parts of the JSON Schemas that are generated from our classes for users."""

import json
import re
from typing import Any, cast

_WORDS = {"None": "null", "True": "true", "False": "false"}
_PYTHON = re.compile(rf"\b({'|'.join(_WORDS)})\b")
_EMPTY: dict[str, Any] = {"array": [], "object": {}}


def for_readers(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema in the words of JSON, without the titles that pydantic makes of each name.

    A list or a mapping that may be missing gets an empty default, which pydantic leaves out.
    """
    required = cast("list[str]", schema.get("required", []))
    result: dict[str, Any] = {}
    for name, value in schema.items():
        if name == "properties":
            result[name] = {
                key: part if key in required else {**_default_of(part), **part}
                for key, part in _members(value).items()
            }
        elif name == "$defs":
            result[name] = _members(value)
        elif name == "description" and isinstance(value, str):
            result[name] = _PYTHON.sub(lambda match: _WORDS[match[1]], value)
        elif name != "title":
            result[name] = _part(value)
    return result


def _default_of(part: dict[str, Any]) -> dict[str, Any]:
    kind = part.get("type")
    return {"default": _EMPTY[kind]} if kind in _EMPTY and "default" not in part else {}


def prune_definitions(schema: dict[str, Any]) -> None:
    """Remove the definitions that nothing refers to."""
    definitions: dict[str, Any] = schema["$defs"]
    while True:
        text = json.dumps(schema)
        unused = [name for name in definitions if f'"#/$defs/{name}"' not in text]
        if not unused:
            return
        for name in unused:
            del definitions[name]


def _members(value: Any) -> dict[str, Any]:
    """Return schemas by name; a member may be called `title`."""
    return {name: _part(part) for name, part in cast("dict[str, Any]", value).items()}


def _part(value: Any) -> Any:
    if isinstance(value, dict):
        return for_readers(cast("dict[str, Any]", value))
    return [_part(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value
