"""Validation of an answer against a JSON Schema that a client gave."""

from typing import Any

import jsonschema_rs

# In characters: the message of an error can quote the value, which may be long.
_MAX_WORDS = 200


def _nowhere(uri: str) -> Any:
    """Raise `ValueError`: references to other schemas are not followed."""
    raise ValueError(f"{uri} is not looked up")


def schema_violation(schema: dict[str, Any], value: Any) -> str | None:
    """Return the message of the first violation of a schema, None if the value is valid.

    Return "" if the schema itself is not valid or refers to another one.
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
