"""Comparison of an answer with a schema that a client gave."""

from typing import Any

import jsonschema_rs

# A schema's own words on a value can be as long as the value.
_MAX_WORDS = 200


def _nowhere(uri: str) -> Any:
    """Refuse to look up a reference of a schema."""
    raise ValueError(f"{uri} is not looked up")


def schema_violation(schema: dict[str, Any], value: Any) -> str | None:
    """Return the first violation of a schema by a value, in words; None if it is valid.

    "" if the schema is not valid or refers to another one.
    """
    try:
        validator = jsonschema_rs.validator_for(schema, retriever=_nowhere)
        error = next(iter(validator.iter_errors(value)), None)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, TypeError):
        return ""
    if error is None:
        return None
    words = error.message
    return words if len(words) <= _MAX_WORDS else f"{words[:_MAX_WORDS]}…"
