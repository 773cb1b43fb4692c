"""The book's schemas: finding, compiling and traversing them.

In addition to the keywords of JSON Schema an object may have `hinted`: the `required` members that
the specification names without saying that they are always present, each with its requirement. If
such a member is missing or null, the error is only a hint.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias, cast

import jsonschema_rs

from harness.protocol.spec.errors import RawError, SchemaError, describe
from harness.protocol.spec.yamlfile import BookError, load_schemas, schema_files
from harness.protocol.values import value_at

DRAFT = "https://json-schema.org/draft/2020-12/schema"
"""The version of JSON Schema in which ours are published."""

Step: TypeAlias = str | int
Path: TypeAlias = tuple[Step, ...]
Node: TypeAlias = dict[str, Any]
Hinted: TypeAlias = dict[str, str]  # a member, and the requirement that names it
Place: TypeAlias = tuple[Node, str]  # a schema, and the file it stands in

FILES = schema_files()
BASE = "book:/"
# A message can have a million errors; only a few are read.
MAX_ERRORS = 20
_MAX_ERRORS_CONSIDERED = 400
# Far below any schema, and below what the validator takes (255).
MAX_DEPTH = 100

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class SchemaBook:
    """All schemas by file name. References read `file.json#/$defs/Name`, or `#/$defs/Name`."""

    files: Mapping[str, Any]
    _registry: jsonschema_rs.Registry = field(init=False)
    _validators: dict[str, jsonschema_rs.Draft202012Validator] = field(
        init=False, default_factory=dict[str, jsonschema_rs.Draft202012Validator]
    )
    _homes: dict[str, str] = field(init=False, default_factory=dict[str, str])
    _paths: dict[tuple[str, str], tuple[Path, ...]] = field(
        init=False, default_factory=dict[tuple[str, str], tuple[Path, ...]]
    )

    def __post_init__(self) -> None:
        for file, document in self.files.items():
            if document.get("$id") != BASE + file:
                raise BookError(f"schema/{file}: expected the $id {BASE + file}")
            for name in document.get("$defs", {}):
                if name in self._homes:
                    raise BookError(f"schema/{file}: {name} is also in {self._homes[name]}")
                self._homes[name] = file
        self._registry = jsonschema_rs.Registry(
            [(BASE + file, document) for file, document in self.files.items()]
        )

    @classmethod
    def load(cls) -> "SchemaBook":
        """Return the schemas of this package."""
        return cls(load_schemas(FILES))

    @property
    def type_names(self) -> frozenset[str]:
        """The names of all objects and enumerations that have a schema."""
        return frozenset(self._homes)

    def references(self) -> Iterator[str]:
        """Yield the reference of every type."""
        return (f"{file}#/$defs/{name}" for name, file in self._homes.items())

    def place(self, reference: str, file: str = "") -> Place:
        """Return the schema of a reference, by default in `file`. Raises BookError if unknown."""
        target, _, pointer = reference.removeprefix(BASE).partition("#")
        target = target or file
        name = pointer.removeprefix("/$defs/")
        if target not in self.files or name not in self.files[target].get("$defs", {}):
            raise BookError(f"schema reference {reference!r} leads nowhere")
        return self.files[target]["$defs"][name], target

    def is_valid(self, reference: str, instance: Any) -> bool:
        """Return whether the instance has no error; much faster than asking for the errors."""
        try:
            return self._validator(reference).is_valid(instance)
        except ValueError:
            return self._validator(reference).is_valid(acceptable(instance))

    def errors(self, reference: str, instance: Any) -> list[SchemaError]:
        """Return at most one error per place and 20 in all, sorted by place; hints give way."""
        if self.is_valid(reference, instance):
            return []
        try:
            raw = list(self._raw_errors(reference, instance))
        except ValueError:
            instance = acceptable(instance)
            raw = list(self._raw_errors(reference, instance))
        errors = describe(raw, instance)
        # Hints must not displace errors.
        reported = sorted(errors, key=lambda error: error.hint)[:MAX_ERRORS]
        return [error for error in errors if error in reported]

    def paths_of(self, type_name: str, reference: str) -> tuple[Path, ...]:
        """Return the paths of a type's objects in a value of the schema; "*" is any element.

        A type that contains itself is followed once. Raises BookError for an unknown type.
        """
        if type_name not in self._homes:
            raise BookError(f"no type {type_name!r} in the judge's book")
        paths = self._paths.get((type_name, reference))
        if paths is None:
            walked = _occurrences(self, ({"$ref": reference}, ""), type_name, (), frozenset())
            paths = self._paths[type_name, reference] = tuple(dict.fromkeys(walked))
        return paths

    def nodes(self) -> Iterator[tuple[str, Node]]:
        """Yield every schema object of every file, with the file's name."""
        for file, document in self.files.items():
            for definition in document["$defs"].values():
                yield from ((file, node) for node in _nested_schemas(definition))

    def _validator(self, reference: str) -> jsonschema_rs.Draft202012Validator:
        validator = self._validators.get(reference)
        if validator is None:
            self.place(reference)
            # The mask keeps the message's values, which may be huge, out of error texts.
            validator = jsonschema_rs.Draft202012Validator(
                {"$ref": BASE + reference}, registry=self._registry, mask="value"
            )
            self._validators[reference] = validator
        return validator

    def _raw_errors(self, reference: str, instance: Any) -> Iterable[RawError]:
        for error in islice(
            self._validator(reference).iter_errors(instance), _MAX_ERRORS_CONSIDERED
        ):
            missing = (
                error.kind.as_dict().get("property") if error.kind.name == "required" else None
            )
            path = tuple(error.instance_path)
            of_object, of_member = self._hints(BASE + reference, error.evaluation_path)
            hint = of_object.get(missing or "")
            if path and value_at(instance, path) is None:
                hint = of_member.get(str(path[-1]))
            yield RawError(
                path=path,
                keyword=error.kind.name,
                details=error.kind.as_dict(),
                clauses=(hint,)
                if hint
                else self._clauses(BASE + reference, error.evaluation_path, missing),
                hint=hint is not None,
            )

    def _hints(self, reference: str, evaluation: list[str | int]) -> tuple[Hinted, Hinted]:
        """Return the hinted members of the value that failed, and those of its parent."""
        node: Any = {"$ref": reference}
        file = ""
        own: Hinted = {}
        outer: Hinted = {}
        is_property = False
        for step in evaluation[:-1]:
            if step == "$ref":
                node, file = self.place(node["$ref"], file)
            else:
                node = node[step]
            if not is_property and step in ("properties", "items"):
                own, outer = {}, own
            is_property = step == "properties" and not is_property
            if not is_property:
                own.update(_hinted_members(node))
        return own, outer

    def _clauses(
        self, reference: str, evaluation: list[str | int], missing: str | None
    ) -> tuple[str, ...]:
        """Return the clauses cited on the path to a failed keyword, the nearest first.

        They are those about the failed value itself or, if there are none, about its parent.
        """
        node: Any = {"$ref": reference}
        file = ""
        own: list[str] = []
        outer: list[str] = []
        nested = False
        for step in evaluation[:-1]:
            if step == "$ref":
                node, file = self.place(node["$ref"], file)
            else:
                node = node[step]
            if step in ("properties", "items") and not nested:
                outer, own = own or outer, []
            nested = step == "properties" and not nested
            if not nested:
                own = [*cited_clauses(node), *own]
        if missing is not None:
            member_clauses = _property_clauses(node, missing)
            return member_clauses or tuple(dict.fromkeys(own or outer))
        return tuple(dict.fromkeys(own or outer))


def cited_ids(node: Any) -> tuple[str, ...]:
    """Return the ids cited in a schema; those of unspecified.yaml begin with "?"."""
    return (*_comment_ids(node), *dict.fromkeys(_hinted_members(node).values()))


def cited_clauses(node: Any) -> tuple[str, ...]:
    """Return the requirement ids in a schema's `$comment`."""
    return tuple(clause for clause in _comment_ids(node) if not clause.startswith("?"))


def _comment_ids(node: Any) -> tuple[str, ...]:
    comment = cast(Node, node).get("$comment") if isinstance(node, dict) else None
    return tuple(comment.split()) if isinstance(comment, str) else ()


def _hinted_members(node: Any) -> Hinted:
    return cast(Node, node).get("hinted", {}) if isinstance(node, dict) else {}


def acceptable(value: Any, depth: int = 0) -> Any:
    """Return a copy that the validator accepts: nested at most `MAX_DEPTH`, and in UTF-8.

    Deeper containers become empty ones; no schema describes what is in them. Lone surrogates,
    which JSON can spell and UTF-8 cannot, become replacement characters.
    """
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        members = cast(dict[str, Any], value) if depth < MAX_DEPTH else {}
        return {acceptable(key): acceptable(item, depth + 1) for key, item in members.items()}
    if isinstance(value, list):
        items = cast(list[Any], value) if depth < MAX_DEPTH else []
        return [acceptable(item, depth + 1) for item in items]
    return value


def _property_clauses(node: Any, name: str) -> tuple[str, ...]:
    if not isinstance(node, dict):
        return ()
    properties = cast(dict[str, Node], cast(Node, node).get("properties", {}))
    return cited_clauses(properties.get(name, {}))


def _subschemas(node: Node) -> Iterator[tuple[Path, Node]]:
    """Yield the direct subschemas of a schema, each with the path where it applies."""
    for name, child in node.get("properties", {}).items():
        yield (name,), child
    if isinstance(node.get("items"), dict):
        yield ("*",), node["items"]
    for keyword in ("allOf", "anyOf"):
        for child in node.get(keyword, []):
            yield (), child
    for keyword in ("then", "else"):
        if isinstance(node.get(keyword), dict):
            yield (), node[keyword]


def _nested_schemas(node: Node) -> Iterator[Node]:
    yield node
    for _, child in _subschemas(node):
        yield from _nested_schemas(child)


def _occurrences(
    book: SchemaBook, place: Place, type_name: str, path: Path, entered: frozenset[str]
) -> Iterator[Path]:
    node, file = place
    if "$ref" in node:
        target, home = book.place(node["$ref"], file)
        name = cast(str, node["$ref"]).rpartition("/")[2]
        if name == type_name:
            yield path
        if name not in entered:
            yield from _occurrences(book, (target, home), type_name, path, entered | {name})
    for step, child in _subschemas(node):
        yield from _occurrences(book, (child, file), type_name, (*path, *step), entered)
