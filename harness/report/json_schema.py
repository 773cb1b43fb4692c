"""Parts of the JSON Schemas that are generated from our classes for users."""

from typing import Any, cast

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without the titles that pydantic makes of each name."""
    return {
        name: _members(value) if name in ("properties", "$defs") else _part(value)
        for name, value in schema.items()
        if name != "title"
    }


def _members(value: Any) -> dict[str, Any]:
    """Return schemas by name; a member may be called `title`."""
    return {name: _part(part) for name, part in cast("dict[str, Any]", value).items()}


def _part(value: Any) -> Any:
    if isinstance(value, dict):
        return without_titles(cast("dict[str, Any]", value))
    return [_part(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value
