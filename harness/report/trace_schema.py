"""The JSON Schema of a line of a trace file, for readers in other languages.

The marks are those of the reader: each class of marks is one row of `$defs`.
"""

import json
from typing import Any

from pydantic import TypeAdapter

from harness.report.json_schema import DRAFT, without_titles
from harness.trace.frame import DamageKind, Direction, Origin
from harness.trace.mark_rows import mark_classes
from harness.trace.trace import End, Header

TRACE_SCHEMA_ID = "trace.schema.json"
_SECONDS = {
    "type": "number",
    "minimum": 0,
    "description": "Seconds since the trace began. Lines can be out of order by 0.1 s.",
}
_REFERENCE = "#/$defs/{model}"


def trace_schema() -> dict[str, Any]:
    """Return the schema of one line of a trace, JSON Schema 2020-12.

    The first line is a `Head`, the last an `End`; between them stand frames and marks. A member
    that is missing has its default.
    """
    definitions: dict[str, Any] = {}
    forms = [_head(definitions), _frame(), *_marks(definitions), _end()]
    names = ["Head", "Frame", *(form["properties"]["mark"]["const"] for form in forms[2:-1]), "End"]
    definitions.update(zip(names, forms, strict=True))
    return {
        "$schema": DRAFT,
        "$id": TRACE_SCHEMA_ID,
        "title": "A line of a trace of the session protocol's harness",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in names],
        "$defs": definitions,
    }


def trace_schema_text() -> str:
    """Return the schema as the text that is committed in docs/."""
    return json.dumps(trace_schema(), indent=2, ensure_ascii=False) + "\n"


def _head(definitions: dict[str, Any]) -> dict[str, Any]:
    header = _definition(Header, definitions)
    return _object({"trace": {**header, "required": ["version", "marks"]}}, "The first line.")


def _frame() -> dict[str, Any]:
    properties: dict[str, Any] = {
        "frame": {"type": "integer", "minimum": 0, "description": "The number of the message."},
        "at": _SECONDS,
        "conn": {"type": "string", "description": "The name of the connection."},
        "dir": {"enum": [str(one) for one in Direction]},
        "origin": {"enum": [str(one) for one in Origin], "description": "Its author."},
        "raw": {"type": "string", "description": "The line as sent, without its end."},
        "raw64": {
            "type": "string",
            "contentEncoding": "base64",
            "description": "In place of raw, where the bytes are not UTF-8.",
        },
        "deliberate": {"type": "boolean", "default": False, "description": "Wrong on purpose."},
        "damage": {"enum": [str(one) for one in DamageKind]},
        "note": {"type": "string", "description": "The damage in words."},
    }
    form = _object(properties, "A message.", needed=("frame", "at", "conn", "dir", "origin"))
    return {**form, "oneOf": [{"required": ["raw"]}, {"required": ["raw64"]}]}


def _marks(definitions: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        _object(
            {
                "mark": {"const": kind},
                "at": _SECONDS,
                "after": {
                    "type": "integer",
                    "minimum": -1,
                    "description": "The number of the message before it; -1 if there is none.",
                },
                "data": _definition(body, definitions),
            },
            "An event after a message.",
        )
        for kind, body in mark_classes().items()
    ]


def _end() -> dict[str, Any]:
    return _object({"end": {"enum": [str(one) for one in End]}}, "The last line.")


def _definition(form: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a class; the classes of its members go to `definitions`."""
    schema = TypeAdapter(form).json_schema(ref_template=_REFERENCE)
    definitions.update(
        {name: without_titles(part) for name, part in schema.pop("$defs", {}).items()}
    )
    return without_titles(schema)


def _object(
    properties: dict[str, Any], description: str, needed: tuple[str, ...] = ()
) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(needed or properties),
    }
