"""The JSON Schemas of scenario and family files, for editors: made from the models, so they cannot
lag behind.

They are looser than the loader: what must be exactly one of several keys, and which names exist,
only the loader knows.
"""

import json
from typing import Any, cast

from harness.protocol.spec.schemas import SchemaBook
from harness.scenario.families import Family
from harness.scenario.filler import KINDS
from harness.scenario.model import Scenario
from harness.scenario.words import words

ID = "scenario.schema.json"
FAMILY_ID = "family.schema.json"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"

# Keys whose mapping may be written as one text.
_SHORT = (("Message", "message"), ("PlanItem", "plan_item"), ("Run", "run"))
# Texts that are not free.
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
    """The schema, JSON Schema 2020-12."""
    schema = Scenario.model_json_schema(by_alias=True)
    for name, key in _SHORT:
        properties = schema["$defs"][name]["properties"]
        properties[key] = {"anyOf": [{"type": "string"}, properties[key]]}
    filled: dict[str, Any] = _with_words(_with_filler(schema))
    filled["$defs"]["Filler"] = _FILLER
    return {
        "$schema": _DRAFT,
        "$id": ID,
        **filled,
        "title": "A scenario of the session protocol's harness",
    }


def family_schema() -> dict[str, Any]:
    """The schema of a family's file: its template is a scenario with parts in any place."""
    schema = Family.model_json_schema(by_alias=True)
    template = json_schema()
    defs = {name: _with_parts(one) for name, one in template.pop("$defs").items()}
    kept = ("type", "properties", "required", "additionalProperties")
    defs["Template"] = _with_parts({key: template[key] for key in kept})
    defs["Part"] = {
        "type": "string",
        "description": "A named part of the row, the column or the family.",
        "pattern": _PART,
    }
    schema["properties"]["scenario"] = {"$ref": "#/$defs/Template"}
    title = "A family of scenarios of the session protocol's harness"
    return {"$schema": _DRAFT, "$id": FAMILY_ID, **schema, "$defs": defs, "title": title}


def schema_text(*, family: bool = False) -> str:
    """The schema as it is committed in docs/."""
    made = family_schema() if family else json_schema()
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _with_parts(value: Any) -> Any:
    """Every member and every element may be a part, or a text that holds one; so may a key."""
    if isinstance(value, list):
        return [_with_parts(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    properties = cast("dict[str, Any] | None", members.get("properties"))
    kept = {name: _with_parts(item) for name, item in members.items() if name != "properties"}
    if properties is not None:
        kept["properties"] = {name: _or_part(_with_parts(one)) for name, one in properties.items()}
        kept["patternProperties"] = {_PART: True}
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = _or_part(kept[key])
    return kept


def _or_part(schema: Any) -> dict[str, Any]:
    return {"anyOf": [schema, {"$ref": "#/$defs/Part"}]}


def _with_words(value: Any) -> Any:
    """Editors offer the protocol's words; a server may have others, so none is refused here."""
    if isinstance(value, list):
        return [_with_words(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    if isinstance(members.get("word"), str):
        return {
            "anyOf": [
                {"enum": words(members["word"], SchemaBook.load())},
                {"type": "string", "minLength": 1},
            ]
        }
    return {name: _with_words(item) for name, item in members.items()}


def _with_filler(value: Any) -> Any:
    """Every free text may be a filler instead."""
    if isinstance(value, list):
        return [_with_filler(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    kept = {name: _with_filler(item) for name, item in members.items()}
    free = members.get("type") == "string" and not _CLOSED & set(members)
    if not free:
        return kept
    about = {name: kept.pop(name) for name in ("title", "description", "default") if name in kept}
    return {"anyOf": [kept, {"$ref": "#/$defs/Filler"}], **about}
