"""JSON Schemas of scenario and family files, for editors, generated from the models.

They are looser than the loader: only the loader knows which names exist, and which keys exclude
each other.
"""

import json
from typing import Any, cast

from harness.protocol.spec.schemas import DRAFT, SchemaBook
from harness.scenario.families import Family
from harness.scenario.filler import KINDS
from harness.scenario.model import Scenario
from harness.scenario.words import protocol_words

SCENARIO_SCHEMA_ID = "scenario.schema.json"
FAMILY_SCHEMA_ID = "family.schema.json"

# Models and keys whose mapping may be written as one text.
_SHORT = (("Message", "message"), ("PlanItem", "plan_item"), ("Run", "run"))
# Keywords that restrict a text.
_CLOSED = {"enum", "const", "pattern", "word"}
_PART = "<[A-Za-z][A-Za-z0-9_-]*>"
_FILLER: dict[str, Any] = {
    "type": "object",
    "description": "Filler text: the same each time for one scenario; n gives another one.",
    "properties": {"fake": {"enum": list(KINDS)}, "n": {"type": "integer"}},
    "required": ["fake"],
    "additionalProperties": False,
}


def json_schema() -> dict[str, Any]:
    """Return the schema of a scenario file, JSON Schema 2020-12."""
    schema = Scenario.model_json_schema(by_alias=True)
    for name, key in _SHORT:
        properties = schema["$defs"][name]["properties"]
        properties[key] = {"anyOf": [{"type": "string"}, properties[key]]}
    body: dict[str, Any] = _with_words(_with_filler(schema))
    body["$defs"]["Filler"] = _FILLER
    return {
        "$schema": DRAFT,
        "$id": SCENARIO_SCHEMA_ID,
        **body,
        "title": "A scenario of the session protocol's harness",
    }


def family_schema() -> dict[str, Any]:
    """Return the schema of a family file: its template is a scenario with parts in any place."""
    schema = Family.model_json_schema(by_alias=True)
    template = json_schema()
    defs = {name: _with_parts(definition) for name, definition in template.pop("$defs").items()}
    keys = ("type", "properties", "required", "additionalProperties")
    defs["Template"] = _with_parts({key: template[key] for key in keys})
    defs["Part"] = {
        "type": "string",
        "description": "A named part of the row, the column or the family.",
        "pattern": _PART,
    }
    schema["properties"]["scenario"] = {"$ref": "#/$defs/Template"}
    title = "A family of scenarios of the session protocol's harness"
    return {"$schema": DRAFT, "$id": FAMILY_SCHEMA_ID, **schema, "$defs": defs, "title": title}


def schema_text(*, family: bool = False) -> str:
    """Return a schema as the text that is committed in docs/."""
    schema = family_schema() if family else json_schema()
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _with_parts(value: Any) -> Any:
    """Return the schema with a part allowed in place of every member, element and key."""
    if isinstance(value, list):
        return [_with_parts(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    properties = cast("dict[str, Any] | None", members.get("properties"))
    result = {name: _with_parts(item) for name, item in members.items() if name != "properties"}
    if properties is not None:
        result["properties"] = {
            name: _or_part(_with_parts(schema)) for name, schema in properties.items()
        }
        result["patternProperties"] = {_PART: True}
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), dict):
            result[key] = _or_part(result[key])
    return result


def _or_part(schema: Any) -> dict[str, Any]:
    return {"anyOf": [schema, {"$ref": "#/$defs/Part"}]}


def _with_words(value: Any) -> Any:
    """Return the schema with the protocol's names as suggestions; any text stays valid."""
    if isinstance(value, list):
        return [_with_words(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    if isinstance(members.get("word"), str):
        return {
            "anyOf": [
                {"enum": protocol_words(members["word"], SchemaBook.load())},
                {"type": "string", "minLength": 1},
            ]
        }
    return {name: _with_words(item) for name, item in members.items()}


def _with_filler(value: Any) -> Any:
    """Return the schema with a filler allowed in place of every unrestricted text."""
    if isinstance(value, list):
        return [_with_filler(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    result = {name: _with_filler(item) for name, item in members.items()}
    free = members.get("type") == "string" and not _CLOSED & set(members)
    if not free:
        return result
    annotations = {
        name: result.pop(name) for name in ("title", "description", "default") if name in result
    }
    return {"anyOf": [result, {"$ref": "#/$defs/Filler"}], **annotations}
