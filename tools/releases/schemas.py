"""Methods and members of a release, from the schemas that it writes itself.

`codex app-server generate-json-schema --out DIR` writes one file for each message type. Of members
only those are read that a message of our specification reaches: a release has some 900 types.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

# The file of each kind of message.
KINDS = {
    "request": "ClientRequest",
    "notification": "ServerNotification",
    "server request": "ServerRequest",
}
_REFERENCE = "#/definitions/"
# The parts of a schema whose members belong to the type that has the part.
_BRANCHES = ("oneOf", "anyOf", "allOf")


class SchemaError(Exception):
    """The schemas of a release are not in the expected form."""


@dataclass(frozen=True)
class ReleaseSchemas:
    """The schemas of one release, in `folder`."""

    folder: Path

    @cached_property
    def methods(self) -> dict[str, frozenset[str]]:
        """The methods of each kind of message of `KINDS`."""
        return {kind: frozenset(self._branches(kind)) for kind in KINDS}

    def members(self, named: frozenset[str]) -> dict[str, frozenset[str]]:
        """Return the members of each type that a message of the methods `named` reaches.

        An alternative that has a `type` is a type of its own, `ThreadItem.plan`; a word of an
        enumeration stands as `"word"`.
        """
        members_of: dict[str, set[str]] = {}
        for kind in KINDS:
            for method, (schema, types) in self._branches(kind).items():
                if method not in named:
                    continue
                self._collect(method, schema, types, members_of)
                for name, answer in self._answers(schema):
                    self._collect(name, answer, _definitions(answer), members_of)
        return {name: frozenset(members) for name, members in members_of.items() if members}

    def _branches(self, kind: str) -> dict[str, tuple[Any, dict[str, Any]]]:
        """Return the schema of the params of each method, with the types that it refers to."""
        document = self._read(self.folder / f"{KINDS[kind]}.json")
        types = _definitions(document)
        branches = cast("list[Any]", document.get("oneOf") or document.get("anyOf") or [])
        result: dict[str, tuple[Any, dict[str, Any]]] = {}
        for branch in branches:
            properties = branch["properties"]
            result[properties["method"]["enum"][0]] = (properties.get("params", {}), types)
        if not result:
            raise SchemaError(f"{self.folder}: {KINDS[kind]}.json lists no methods")
        return result

    def _answers(self, params: Any) -> Iterator[tuple[str, Any]]:
        """Yield the schema of the result, whose file has the name of that of the params."""
        name = _reference_of(params)
        if name and name.endswith("Params"):
            answer = f"{name.removesuffix('Params')}Response"
            for file in (self.folder / "v2" / f"{answer}.json", self.folder / f"{answer}.json"):
                if file.is_file():
                    yield answer, self._read(file)
                    return

    def _collect(
        self, name: str, schema: Any, types: dict[str, Any], members_of: dict[str, set[str]]
    ) -> None:
        """Add the members of a schema, and of all types that it reaches, to `members_of`."""
        referred = _reference_of(schema)
        if referred:
            if referred not in members_of and referred in types:
                members_of[referred] = set()
                self._collect(referred, types[referred], types, members_of)
            return
        if not isinstance(schema, dict):
            return
        node = cast("dict[str, Any]", schema)
        properties = cast("dict[str, Any]", node.get("properties", {}))
        kinds = cast("list[str]", properties.get("type", {}).get("enum", []))
        if kinds and "." not in name:
            name = f"{name}.{kinds[0]}"
        members = members_of.setdefault(name, set())
        members.update(properties)
        members.update(f'"{word}"' for word in node.get("enum", ()) if isinstance(word, str))
        for inner in properties.values():
            self._collect(name, _without_words(inner), types, members_of)
        for key in _BRANCHES:
            for branch in node.get(key, ()):
                self._collect(name, branch, types, members_of)
        for key in ("items", "additionalProperties"):
            self._collect(name, _without_words(node.get(key)), types, members_of)

    def _read(self, file: Path) -> dict[str, Any]:
        try:
            return json.loads(file.read_bytes())
        except (OSError, ValueError) as error:
            raise SchemaError(f"{file}: {error}") from error


def _without_words(schema: Any) -> Any:
    """Return a schema without its own words: those of a member are no members of its owner."""
    if not isinstance(schema, dict):
        return schema
    node = cast("dict[str, Any]", schema)
    return {key: value for key, value in node.items() if key != "enum"}


def _reference_of(schema: Any) -> str:
    """Return the name of the type that a schema refers to, "" if it has its own members."""
    if not isinstance(schema, dict):
        return ""
    node = cast("dict[str, Any]", schema)
    reference = node.get("$ref", "")
    if not reference:
        # A member with a description refers to its type by allOf, an optional one by anyOf.
        parts = [part for key in ("allOf", "anyOf") for part in node.get(key, ())]
        references = [part["$ref"] for part in parts if "$ref" in part]
        if len(references) == 1 and len(parts) - len(references) <= 1:
            reference = references[0]
    return reference.removeprefix(_REFERENCE)


def _definitions(document: dict[str, Any]) -> dict[str, Any]:
    return cast("dict[str, Any]", document.get("definitions", {}))
