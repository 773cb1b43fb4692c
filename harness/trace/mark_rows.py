"""Marks as rows of a trace file: their fields as JSON members, and back.

A field with its default value is not written. An unknown kind or member is an error: rules rely
on marks, so a file with unknown content must not be judged.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, cast

from harness.protocol.values import text
from harness.trace.marks import BODIES, DEFAULT_CODE, CallEnd, MarkBody
from harness.trace.mcp_marks import MCP_BODIES
from harness.trace.model_marks import MODEL_BODIES

_BY_KIND = {body.kind: body for body in (*BODIES, *MCP_BODIES, *MODEL_BODIES)}

T = TypeVar("T")


def mark_classes() -> dict[str, type[MarkBody]]:
    """Return the class of each kind of marks."""
    return dict(_BY_KIND)


def to_row(body: MarkBody) -> dict[str, Any]:
    """Return the members of a body that differ from their defaults."""
    return _members_of(body)


def from_row(kind: str, row: Mapping[str, Any]) -> MarkBody:
    """Return the body in a row of this version.

    Raises `ValueError` for an unknown kind, and for unknown, missing or wrong members.
    """
    body = _BY_KIND.get(kind)
    if body is None:
        raise ValueError(f"mark of the unknown kind {kind!r}; known are {', '.join(_BY_KIND)}")
    return _build(body, row, kind)


def from_former_row(kind: str, row: Mapping[str, Any]) -> MarkBody | None:
    """Return the body in a row of version 1, None for an obsolete kind.

    Those rows were written unchecked: missing members have their defaults, and unknown ones are
    left out. Raises `ValueError` for a value of a wrong type.
    """
    body = _BY_KIND.get(kind)
    if body is None:
        return None
    members = {_RENAMED.get((kind, name), name): value for name, value in row.items()}
    if kind == "model-end":
        members.update(_outcome_of(text(members.get("outcome")), members))
    field_names = {name for name, _, _ in _fields_of(body)}
    return _build(
        body, {name: value for name, value in members.items() if name in field_names}, kind
    )


# The members of version 1 that have other names now.
_RENAMED = {
    ("gate", "open"): "gate",
    ("place", "server-cwd"): "server_cwd",
    ("partial-line", "bytes"): "size",
    ("recorder", "rc"): "status",
}
_OUTCOMES = {
    "completed": CallEnd.COMPLETED,
    "disconnected": CallEnd.DISCONNECTED,
    "dropped by the caller": CallEnd.DROPPED,
}


def _outcome_of(words: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields for an outcome in the words of version 1, such as `status 500`."""
    name, _, rest = words.partition(" ")
    if name == "status" and rest.isdecimal():
        return {"outcome": CallEnd.STATUS, "status": int(rest)}
    if name == "failed" and rest:
        code = row.get("code") or ("" if rest == DEFAULT_CODE else rest)
        return {"outcome": CallEnd.FAILED, "code": code}
    return {"outcome": _OUTCOMES.get(words, CallEnd.UNKNOWN)}


@cache
def _fields_of(body: type) -> tuple[tuple[str, Any, bool], ...]:
    """Return the fields of a class: name, type, and whether it is required."""
    hints = typing.get_type_hints(body)
    return tuple(
        (field.name, hints[field.name], field.default is dataclasses.MISSING)
        for field in dataclasses.fields(body)
    )


def _members_of(value: Any) -> dict[str, Any]:
    return {
        field.name: _plain(getattr(value, field.name))
        for field in dataclasses.fields(value)
        if field.default is dataclasses.MISSING or getattr(value, field.name) != field.default
    }


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(element) for element in cast("tuple[Any, ...]", value)]
    if isinstance(value, StrEnum):
        return value.value
    return _members_of(value) if dataclasses.is_dataclass(value) else value


def _build(form: type[T], row: object, place: str) -> T:
    """Return an object of a dataclass from its members; `place` begins the text of an error."""
    if not isinstance(row, Mapping):
        raise ValueError(f"{place}: expected an object")
    members = cast("Mapping[str, Any]", row)
    fields = _fields_of(form)
    unknown = sorted(members.keys() - {name for name, _, _ in fields})
    if unknown:
        raise ValueError(f"{place}: unknown member(s) {', '.join(unknown)}")
    missing = [name for name, _, needed in fields if needed and name not in members]
    if missing:
        raise ValueError(f"{place}: no {', '.join(missing)}")
    return form(
        **{
            name: _value(hint, members[name], f"{place}.{name}")
            for name, hint, _ in fields
            if name in members
        }
    )


def _value(hint: Any, value: Any, place: str) -> Any:
    """Return a value converted to the type of a field. Raises `ValueError` if it does not fit."""
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        [inner] = [option for option in typing.get_args(hint) if option is not types.NoneType]
        return None if value is None else _value(inner, value, place)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{place}: expected an array")
        inner, elements = typing.get_args(hint)[0], cast("list[Any]", value)
        return tuple(
            _value(inner, element, f"{place}[{index}]") for index, element in enumerate(elements)
        )
    if dataclasses.is_dataclass(hint):
        return _build(cast("type[Any]", hint), value, place)
    if issubclass(hint, StrEnum):
        return hint(value)
    accepted = (int, float) if hint is float else (hint,)
    if not isinstance(value, accepted) or (isinstance(value, bool) and hint is not bool):
        raise ValueError(f"{place}: expected {hint.__name__}")
    return value
