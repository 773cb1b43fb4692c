"""The judge's book: everything that the specification says, as one value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal, TypeAlias

from harness.protocol.spec.errors import SchemaError
from harness.protocol.spec.rows import (
    Capability,
    Document,
    EventRow,
    MethodRow,
    Requirement,
    Unspecified,
)
from harness.protocol.spec.schemas import Path, SchemaBook
from harness.protocol.spec.yamlfile import BookError

Part: TypeAlias = Literal["params", "result"]

# The schema of a payload that the specification does not show: its message forms say "object".
ANY_OBJECT = "rpc.json#/$defs/AnyObject"


@dataclass(frozen=True)
class Book:
    """The tables, requirements and schemas, in the order of the specification. Read-only."""

    documents: tuple[Document, ...]
    requirements: tuple[Requirement, ...]
    methods: tuple[MethodRow, ...]
    events: tuple[EventRow, ...]
    unspecified: tuple[Unspecified, ...]
    capabilities: tuple[Capability, ...]
    schemas: SchemaBook
    _requirement_of: Mapping[str, Requirement] = field(init=False, repr=False)
    _method_of: Mapping[str, MethodRow] = field(init=False, repr=False)
    _event_of: Mapping[str, EventRow] = field(init=False, repr=False)
    _requirements_of: Mapping[str, tuple[Requirement, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        of_rule: dict[str, tuple[Requirement, ...]] = {}
        for row in self.requirements:
            for rule in dict.fromkeys(row.rules):
                of_rule[rule] = (*of_rule.get(rule, ()), row)
        indexes = {
            "_requirement_of": {row.id: row for row in self.requirements},
            "_method_of": {row.method: row for row in self.methods},
            "_event_of": {row.method: row for row in self.events},
            "_requirements_of": of_rule,
        }
        for name, index in indexes.items():
            object.__setattr__(self, name, index)

    @property
    def revision(self) -> str:
        """Twelve hexadecimal digits of a hash over the documents that the book was made from."""
        hashes = "".join(document.sha256 for document in self.documents)
        return sha256(hashes.encode()).hexdigest()[:12]

    def requirement(self, requirement_id: str) -> Requirement:
        """Return the requirement of that id. Raises BookError for an unknown one."""
        try:
            return self._requirement_of[requirement_id]
        except KeyError:
            raise BookError(f"no requirement {requirement_id!r} in the judge's book") from None

    def method(self, name: str) -> MethodRow | None:
        """Return the row of a request of either side, None if the specification has no such one."""
        return self._method_of.get(name)

    def event(self, name: str) -> EventRow | None:
        """Return the row of a notification, None if the specification does not name it."""
        return self._event_of.get(name)

    def sender_of(self, name: str) -> Literal["client", "server", ""]:
        """Return the side that sends a method, "" if the specification does not name it."""
        if name == "initialized":
            return "client"
        row = self.method(name)
        if row is not None:
            return "client" if row.direction == "client-to-server" else "server"
        return "server" if self.event(name) is not None else ""

    def requirements_of(self, rule_id: str) -> tuple[Requirement, ...]:
        """Return the requirements that a rule judges, in the order of the specification."""
        return self._requirements_of.get(rule_id, ())

    def methods_of(self, capability_id: str) -> tuple[str, ...]:
        """Return the requests and notifications of a capability, in the order of the tables."""
        rows = (*self.methods, *self.events)
        return tuple(row.method for row in rows if row.capability == capability_id)

    def validate_params(self, method: str, params: Any) -> list[SchemaError]:
        """Return the errors of a request's params; an unlisted method may have any object."""
        return self.schemas.errors(self._reference(method, "params"), params)

    def validate_result(self, method: str, result: Any) -> list[SchemaError]:
        """Return the errors of a request's result; an unlisted method may have any object."""
        return self.schemas.errors(self._reference(method, "result"), result)

    def validate_event(self, method: str, params: Any) -> list[SchemaError]:
        """Return the errors of a notification's params; an unlisted one may have any object."""
        return self.schemas.errors(self._event_reference(method), params)

    def is_valid_event(self, method: str, params: Any) -> bool:
        """Return whether `validate_event` would find nothing. The fast path: microseconds."""
        return self.schemas.is_valid(self._event_reference(method), params)

    def is_valid_params(self, method: str, params: Any) -> bool:
        """Return whether `validate_params` would find nothing."""
        return self.schemas.is_valid(self._reference(method, "params"), params)

    def is_valid_result(self, method: str, result: Any) -> bool:
        """Return whether `validate_result` would find nothing."""
        return self.schemas.is_valid(self._reference(method, "result"), result)

    def paths_of(self, type_name: str, method: str, part: Part | str) -> tuple[Path, ...]:
        """Return the paths of the objects of a schema type (such as TurnError) in a message.

        `method` is a request or a notification, `part` "params" or "result"; paths begin inside
        that part, and "*" stands for any element of an array. An unlisted method has none. Raises
        BookError for a type that no schema has.
        """
        if method in self._event_of and part == "params":
            reference = self._event_reference(method)
        else:
            reference = self._reference(method, part)
        return self.schemas.paths_of(type_name, reference)

    def reference(self, method: str, part: str) -> str | None:
        """Return the schema reference of a message's `part`, which is "params" or "result".

        None if the specification shows no schema or the method is unknown.
        """
        reference = self._reference(method, part)
        if part == "params" and method in self._event_of:
            reference = self._event_reference(method)
        return None if reference == ANY_OBJECT else reference

    def _reference(self, method: str, part: str) -> str:
        row = self._method_of.get(method)
        if row is None:
            return ANY_OBJECT
        return (row.params if part == "params" else row.result) or ANY_OBJECT

    def _event_reference(self, method: str) -> str:
        row = self._event_of.get(method)
        return (row.params if row else None) or ANY_OBJECT
