"""The JSON Schema of scenario files, for editors: made from the models, so it cannot lag behind.

Here: what the models' own schema does not say (short forms, filler texts). It is looser than the
loader: what must be exactly one of several keys, and which names exist, only the loader knows.
"""

import json
from typing import Any, cast

from harness.scenario.filler import KINDS
from harness.scenario.model import Scenario
from harness.scenario.words import words
from harness.spec.schemas import SchemaBook

ID = "scenario.schema.json"

# Keys whose mapping may be written as one text.
_SHORT = (("Message", "message"), ("PlanItem", "plan_item"), ("Run", "run"))
# Texts that are not free.
_CLOSED = {"enum", "const", "pattern", "word"}
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
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        **filled,
        "title": "A scenario of the session protocol's harness",
    }


def schema_text() -> str:
    """The schema as it is committed in docs/."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


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
