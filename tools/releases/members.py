"""Members of the types of a release, from the schemas that it writes itself.

Only those are read that a message of the specification reaches: a release has some 900 types.
"""

from collections.abc import Iterator
from typing import Any

from harness.protocol.values import arr, obj, text
from harness.report.drift.release_schemas import Part, ReleaseSchemas

_REFERENCE = "#/definitions/"
# The parts of a schema whose members belong to the type that has the part.
_BRANCHES = ("oneOf", "anyOf", "allOf")

# The members of each type, by its name.
Members = dict[str, set[str]]


def read_members(schemas: ReleaseSchemas, named: frozenset[str]) -> Members:
    """Return the members of each type that a message of the methods `named` reaches.

    An alternative that has a `type` is a type of its own, `ThreadItem.plan`; a word of an
    enumeration stands as `"word"`.
    """
    members_of: Members = {}
    for part in Part:
        for method in schemas.methods(part):
            if method in named:
                for name, schema in _schemas(schemas, part, method):
                    _collect(name, schema, obj(schema.get("definitions")), members_of)
    return {name: members for name, members in members_of.items() if members}


def _schemas(schemas: ReleaseSchemas, part: Part, method: str) -> Iterator[tuple[str, Any]]:
    """Yield the schemas of a method's params and result, each with its name."""
    if part is Part.RESULT:
        yield method, schemas.params_schema(method)
    schema = schemas.schema(part, method)
    if schema is not None:
        yield text(schema.get("title")) or method, schema


def _collect(name: str, schema: Any, types: dict[str, Any], members_of: Members) -> None:
    """Add the members of a schema, and of all types that it reaches, to `members_of`."""
    node = obj(schema)
    if not node:
        return
    referred = _reference_of(node)
    if referred:
        if referred not in members_of and referred in types:
            members_of[referred] = set()
            _collect(referred, types[referred], types, members_of)
        return
    properties = obj(node.get("properties"))
    kinds = arr(obj(properties.get("type")).get("enum"))
    if kinds and "." not in name:
        name = f"{name}.{kinds[0]}"
    members = members_of.setdefault(name, set())
    members.update(properties)
    members.update(f'"{word}"' for word in arr(node.get("enum")) if isinstance(word, str))
    for inner in properties.values():
        _collect(name, _without_words(inner), types, members_of)
    for key in _BRANCHES:
        for branch in arr(node.get(key)):
            _collect(name, branch, types, members_of)
    for key in ("items", "additionalProperties"):
        _collect(name, _without_words(node.get(key)), types, members_of)


def _without_words(schema: Any) -> dict[str, Any]:
    """Return a schema without its own words: those of a member are no members of its owner."""
    return {key: value for key, value in obj(schema).items() if key != "enum"}


def _reference_of(node: dict[str, Any]) -> str:
    """Return the name of the type that a schema refers to, "" if it has its own members."""
    reference = text(node.get("$ref"))
    if not reference:
        # A member with a description refers to its type by allOf, an optional one by anyOf.
        parts = [obj(part) for key in ("allOf", "anyOf") for part in arr(node.get(key))]
        references = [text(part["$ref"]) for part in parts if "$ref" in part]
        if len(references) == 1 and len(parts) - len(references) <= 1:
            reference = references[0]
    return reference.removeprefix(_REFERENCE)
