"""The JSON Schema of a line of a trace file, for readers in other languages.

The marks are those of the reader: each class of marks is one row of `$defs`.
"""

from typing import Any

from pydantic import TypeAdapter

from harness.protocol.spec.schemas import DRAFT
from harness.report.json_schema import for_readers
from harness.trace.frame import DamageKind, Direction, Origin
from harness.trace.mark_rows import mark_classes
from harness.trace.marks import MARKS_VERSION
from harness.trace.trace import FORMAT_VERSION, End, Header

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
    names = ["Head", "Frame", *(body.__name__ for body in mark_classes().values()), "End"]
    definitions.update(zip(names, forms, strict=True))
    for form in (Direction, Origin, DamageKind, End):
        words = {"enum": [str(word) for word in form]}
        definitions[f"{form.__name__}Word"] = {"type": "string", **words}
    return {
        "$schema": DRAFT,
        "$id": TRACE_SCHEMA_ID,
        "title": "A line of a trace of the session protocol's harness",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in names],
        "$defs": definitions,
    }


def _head(definitions: dict[str, Any]) -> dict[str, Any]:
    header = _definition(Header, definitions)
    header["properties"] |= {
        "version": {"const": FORMAT_VERSION, "description": "The version of the format."},
        "marks": {"const": MARKS_VERSION, "description": "The version of its events."},
    }
    return _object({"trace": {**header, "required": ["version", "marks"]}}, "The first line.")


def _frame() -> dict[str, Any]:
    properties: dict[str, Any] = {
        "frame": {"type": "integer", "minimum": 0, "description": "The number of the message."},
        "at": _SECONDS,
        "conn": {"type": "string", "description": "The name of the connection."},
        "dir": _reference("DirectionWord"),
        "origin": {**_reference("OriginWord"), "description": "Its author: who is to blame."},
        "raw": {"type": "string", "description": "The line as sent, without its end."},
        "raw64": {
            "type": "string",
            "contentEncoding": "base64",
            "description": "In place of raw, where the bytes are not UTF-8, so never JSON.",
        },
        "deliberate": {"type": "boolean", "default": False, "description": "Wrong on purpose."},
        "damage": {
            **_reference("DamageKindWord"),
            "description": "Why the bytes are not one whole message; missing for a whole one.",
        },
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
    line = {"at": _SECONDS, "after": {"type": "integer"}, "text": {"type": "string"}}
    words = "A line of the server's standard error, and the number of the message before it."
    stderr = {"type": "array", "items": _object(line, words)}
    return _object({"end": _reference("EndWord"), "stderr": stderr}, "The last line.", ("end",))


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": _REFERENCE.format(model=name)}


def _definition(form: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a class; the classes of its members go to `definitions`."""
    schema = TypeAdapter(form).json_schema(ref_template=_REFERENCE)
    definitions.update({name: for_readers(part) for name, part in schema.pop("$defs", {}).items()})
    return for_readers(schema)


def _object(
    properties: dict[str, Any], description: str, needed: tuple[str, ...] = ()
) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(needed or properties),
    }
