"""Output schemas, given as a mapping or as a type, and the temporary file that holds one.

pydantic, which turns a type into a schema, is imported only if a type is given.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_sdk.errors import AgentError, ConfigError
from agent_sdk.fields import is_array, is_object

OutputSchema = Mapping[str, Any] | type
"""A JSON Schema, or a type that pydantic supports, such as a model or a dataclass."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as JSON text, and the type that a response is parsed into, if any."""

    document: str
    type: type | None


def build_schema(value: object) -> Schema:
    """Return the schema of an `output_schema`: a type's in strict form, a mapping's unchanged.

    Raises ConfigError for anything else, for invalid JSON, or if pydantic is missing.
    """
    if isinstance(value, type):
        return Schema(json.dumps(strict(_schema_of_type(value)), ensure_ascii=False), value)
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"output_schema is {type(value).__name__}, and neither a JSON Schema nor a type"  # pyright: ignore[reportUnknownArgumentType]
        )
    try:
        text = json.dumps(dict(value), ensure_ascii=False, allow_nan=False)  # pyright: ignore[reportUnknownArgumentType]
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"output_schema cannot be written as JSON: {error}") from None
    return Schema(text, None)


def strict(node: Any) -> Any:
    """Return a copy in strict form, as providers want it: objects are closed, all properties
    required, and there are no defaults, which a required property does not need.
    """
    if is_array(node):
        return [strict(one) for one in node]
    if not is_object(node):
        return node
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "$defs") and is_object(value):
            # These keys are names, not keywords of JSON Schema.
            result[key] = {name: strict(one) for name, one in value.items()}
        elif key in ("const", "enum", "examples"):
            result[key] = value
        elif key != "default":
            result[key] = strict(value)
    if is_object(node.get("properties")):
        result.setdefault("additionalProperties", False)
        result["required"] = list(result["properties"])
    return result


def parse(text: str, kind: type | None) -> Any:
    """Parse a final response into an instance of `kind`, or its JSON value if `kind` is None.

    Raises AgentError if the text is not valid for it.
    """
    try:
        return json.loads(text) if kind is None else _adapter(kind).validate_json(text)
    except (ValueError, RecursionError) as error:
        expected = "JSON" if kind is None else f"JSON of a {kind.__name__}"
        raise AgentError(f"the final response is not {expected}: {error}") from error


def _schema_of_type(kind: type) -> dict[str, Any]:
    adapter = _adapter(kind)
    from pydantic import PydanticUserError

    try:
        return adapter.json_schema()
    except PydanticUserError as error:
        raise _schema_error(kind, error.message) from None


def _adapter(kind: type) -> Any:
    try:
        from pydantic import PydanticUserError, TypeAdapter
    except ImportError:
        raise ConfigError(
            f"a schema of {kind.__name__} needs pydantic: install agent-sdk[pydantic], "
            "or give a JSON Schema"
        ) from None
    try:
        return TypeAdapter(kind)
    except PydanticUserError as error:
        raise _schema_error(kind, error.message) from None


def _schema_error(kind: type, reason: str) -> ConfigError:
    return ConfigError(f"{kind.__name__} gives no schema: {reason}")


class SchemaFile:
    """A schema file in a temporary folder of its own that only this user can read."""

    def __init__(self, schema: Schema) -> None:
        self._folder = tempfile.mkdtemp(prefix="agent-output-schema-")
        self.path = os.path.join(self._folder, "schema.json")
        try:
            with open(
                os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
            ) as file:
                file.write(schema.document.encode())
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove the folder, if it still exists."""
        shutil.rmtree(self._folder, ignore_errors=True)
