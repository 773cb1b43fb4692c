"""A small folder of schemas in the form that a release writes them."""

import json
from pathlib import Path
from typing import Any

ITEM: dict[str, Any] = {
    "oneOf": [
        {
            "properties": {
                "type": {"enum": ["commandExecution"], "type": "string"},
                "command": {"type": "string"},
                "status": {"$ref": "#/definitions/Status"},
            },
            "required": ["command", "type"],
            "type": "object",
        },
        {
            "properties": {"type": {"enum": ["plan"], "type": "string"}},
            "required": ["type"],
            "type": "object",
        },
    ]
}
DEFINITIONS: dict[str, Any] = {
    "Item": ITEM,
    "Status": {"enum": ["inProgress", "completed"], "type": "string"},
    "ItemStarted": {
        "properties": {
            "item": {"$ref": "#/definitions/Item"},
            "threadId": {"type": "string"},
            "note": {"anyOf": [{"$ref": "#/definitions/Status"}, {"type": "null"}]},
        },
        "required": ["item", "threadId"],
        "type": "object",
    },
    "ModelListParams": {
        "properties": {"cwd": {"$ref": "#/definitions/AbsolutePath"}, "limit": {"minimum": 2}},
        "required": ["cwd"],
        "type": "object",
    },
    "AbsolutePath": {"type": "string"},
}


def variant(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return one message of a list, as a release describes it."""
    return {"properties": {"method": {"enum": [method], "type": "string"}, "params": params}}


def write_schemas(folder: Path) -> Path:
    """Write schemas of one notification and two requests, and return the folder."""
    started = variant("item/started", {"$ref": "#/definitions/ItemStarted"})
    listed = variant("model/list", {"$ref": "#/definitions/ModelListParams"})
    logout = variant("account/logout", {"type": "null"})
    lists = {"ServerNotification": [started], "ClientRequest": [listed, logout]}
    for name, variants in {**lists, "ServerRequest": []}.items():
        text = json.dumps({"oneOf": variants, "definitions": DEFINITIONS})
        (folder / f"{name}.json").write_text(text)
    (folder / "v2").mkdir()
    result = {"properties": {"data": {"type": "array"}}, "required": ["data"], "type": "object"}
    (folder / "v2" / "ModelListResponse.json").write_text(json.dumps(result))
    (folder / "v2" / "LogoutAccountResponse.json").write_text(json.dumps({"type": "object"}))
    return folder
