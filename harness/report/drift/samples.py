"""Smallest values that a JSON Schema allows, to send every request that a release knows."""

from typing import Any, Final, cast

from harness.protocol.values import arr, obj, text

MAX_DEPTH: Final = 12
# Texts with a form that a server checks before it answers anything else.
UNKNOWN_ID: Final = "01a20000-0000-7000-8000-000000000000"
ABSOLUTE_PATH: Final = "/no-such-folder"


def smallest_value(schema: dict[str, Any], definitions: dict[str, Any], name: str = "") -> Any:
    """Return a small value for a schema whose references are in `definitions`.

    `name` is the member that gets it: ids of threads and turns are UUIDs, paths are absolute.
    """
    return _value(schema, definitions, name, 0)


def _value(schema: dict[str, Any], definitions: dict[str, Any], name: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        return None
    if "$ref" in schema:
        target = text(schema["$ref"]).rpartition("/")[2]
        is_path = "Path" in target
        return _value(obj(definitions.get(target)), definitions, "path" if is_path else name, depth)
    if "enum" in schema:
        return arr(schema["enum"])[0]
    if "default" in schema and schema["default"] is not None:
        return schema["default"]
    for keyword in ("allOf", "anyOf", "oneOf"):
        for branch in arr(schema.get(keyword)):
            if obj(branch).get("type") != "null":
                return _value({**schema, keyword: None, **branch}, definitions, name, depth + 1)
    types: Any = schema.get("type")
    match text(arr(types)[0] if isinstance(types, list) else types):
        case "object":
            return _object(schema, definitions, depth)
        case "array":
            count = int(schema.get("minItems", 0))
            return [_value(obj(schema.get("items")), definitions, name, depth + 1)] * count
        case "string":
            return _string(name)
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return False
        case _:
            return None


def _object(schema: dict[str, Any], definitions: dict[str, Any], depth: int) -> dict[str, Any]:
    properties = cast("dict[str, dict[str, Any]]", schema.get("properties", {}))
    return {
        member: _value(obj(properties.get(member)), definitions, member, depth + 1)
        for member in arr(schema.get("required"))
    }


def _string(name: str) -> str:
    lowered = name.lower()
    if lowered.endswith(("threadid", "turnid", "sectionid", "itemid")):
        return UNKNOWN_ID
    if any(word in lowered for word in ("path", "cwd", "root", "home")):
        return ABSOLUTE_PATH
    return "x"
