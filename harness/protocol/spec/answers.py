"""Comparison of an answer with a schema that a client gave."""

from typing import Any

import jsonschema_rs

# A schema's own words on a value can be as long as the value.
_MAX_WORDS = 200


def _nowhere(uri: str) -> Any:
    """Refuse to look up a reference of a schema."""
    raise ValueError(f"{uri} is not looked up")


def unmet(schema: dict[str, Any], value: Any) -> str | None:
    """Return what of the schema a value does not meet, in words; None if it meets all of it.

    "" where that cannot be told, since the schema is none or refers to another.
    """
    try:
        validator = jsonschema_rs.validator_for(schema, retriever=_nowhere)
        found = next(iter(validator.iter_errors(value)), None)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, TypeError):
        return ""
    if found is None:
        return None
    words = found.message
    return words if len(words) <= _MAX_WORDS else f"{words[:_MAX_WORDS]}…"
