"""Messages of a server checked against the schemas of a release, grouped by place and kind."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import jsonschema_rs

from harness.protocol.spec.schemas import acceptable
from harness.protocol.values import json_type, value_at
from harness.report.drift.messages import Message
from harness.report.drift.release_schemas import Part, ReleaseSchemas

MAX_EXAMPLE_CHARACTERS: Final = 160
MAX_ERRORS_OF_A_MESSAGE: Final = 50

MISSING_MEMBER: Final = "missing member"
WRONG_TYPE: Final = "wrong type"
UNKNOWN_WORD: Final = "unknown word"
UNKNOWN_METHOD: Final = "unknown method"
WRONG_VALUE: Final = "wrong value"


@dataclass(frozen=True, slots=True)
class SchemaError:
    """One place of a message that a schema does not allow."""

    kind: str
    path: str
    detail: str
    value: Any


@dataclass(slots=True)
class Finding:
    """The errors of one kind at one place of one kind of message."""

    message: str
    kind: str
    path: str
    detail: str
    count: int = 0
    scenarios: set[str] = field(default_factory=set[str])
    example: str = ""

    @property
    def line(self) -> str:
        """The finding in one line."""
        place = f"{self.message} {self.path}".rstrip()
        return f"{place}: {self.kind} {self.detail} ({self.count}): {self.example}"


@dataclass(slots=True)
class SchemaCheck:
    """Number of checked messages, and the grouped errors."""

    checked: int = 0
    unchecked: dict[str, int] = field(default_factory=dict[str, int])
    findings: dict[tuple[str, str, str, str], Finding] = field(
        default_factory=dict[tuple[str, str, str, str], Finding]
    )

    @property
    def sorted_findings(self) -> list[Finding]:
        """The findings by message, place and kind."""
        return [self.findings[key] for key in sorted(self.findings)]


def check_messages(schemas: ReleaseSchemas, messages: Iterable[Message]) -> SchemaCheck:
    """Check every message that the release has a schema for; an error answer has none."""
    check = SchemaCheck()
    for message in messages:
        for error in _errors_of_message(schemas, message, check):
            key = (message.name, error.path, error.kind, error.detail)
            finding = check.findings.get(key)
            if finding is None:
                finding = check.findings[key] = Finding(
                    message.name, error.kind, error.path, error.detail, example=_short(error.value)
                )
            finding.count += 1
            finding.scenarios.add(message.scenario)
    return check


def _errors_of_message(
    schemas: ReleaseSchemas, message: Message, check: SchemaCheck
) -> Iterator[SchemaError]:
    if message.part is None:
        return
    validator = schemas.validator(message.part, message.method)
    if validator is None:
        if message.part is Part.RESULT:
            check.unchecked[message.name] = check.unchecked.get(message.name, 0) + 1
        else:
            check.checked += 1
            yield SchemaError(UNKNOWN_METHOD, "", message.method, message.body)
        return
    check.checked += 1
    yield from schema_errors(validator, message.body)


def schema_errors(validator: jsonschema_rs.Validator, body: Any) -> Iterator[SchemaError]:
    """Yield the errors of a value, each at the innermost place that explains it."""
    try:
        if validator.is_valid(body):
            return
    except ValueError:
        body = acceptable(body)
    for number, error in enumerate(validator.iter_errors(body)):
        if number == MAX_ERRORS_OF_A_MESSAGE:
            return
        yield from _inner_errors(error, body)


def _inner_errors(error: Any, body: Any) -> Iterator[SchemaError]:
    details = error.kind.as_dict()
    path = list(error.instance_path)
    if error.kind.name in ("anyOf", "oneOf") and details.get("context"):
        branches = details["context"]
        best = min(branches, key=lambda branch: _distance(branch, path))
        if all(_is_other_variant(branch, path) for branch in branches):
            tag = next(([*path, "type"] for branch in branches if _tag_error(branch, path)), path)
            value = value_at(body, tuple(tag))
            yield SchemaError(UNKNOWN_WORD, _path_words(tag), json.dumps(value)[:80], value)
            return
        for inner in best:
            yield from _inner_errors(inner, body)
        return
    value = value_at(body, tuple(path))
    if error.kind.name == "required":
        yield SchemaError(MISSING_MEMBER, _path_words(path), str(details["property"]), value)
    elif error.kind.name == "type":
        expected = "|".join(details["types"])
        yield SchemaError(
            WRONG_TYPE, _path_words(path), f"{json_type(value)}, not {expected}", value
        )
    elif error.kind.name in ("enum", "const"):
        yield SchemaError(UNKNOWN_WORD, _path_words(path), json.dumps(value)[:80], value)
    else:
        yield SchemaError(WRONG_VALUE, _path_words(path), error.kind.name, value)


def _distance(branch: list[Any], path: list[str | int]) -> tuple[bool, bool, int, int]:
    """Rank a branch of a union: its own variant first, then the one that fails deepest, least."""
    depth = max((len(error.instance_path) for error in branch), default=len(path))
    return (
        _is_other_variant(branch, path),
        any(_is_at(error, path) and error.kind.name == "enum" for error in branch),
        -depth,
        len(branch),
    )


def _is_other_variant(branch: list[Any], path: list[str | int]) -> bool:
    """Return whether a branch is of another `type`, another word, or another JSON type."""
    return _tag_error(branch, path) or any(
        _is_at(error, path) and error.kind.name in ("type", "enum", "const") for error in branch
    )


def _tag_error(branch: list[Any], path: list[str | int]) -> bool:
    return any(
        list(error.instance_path) == [*path, "type"] and error.kind.name in ("enum", "const")
        for error in branch
    )


def _is_at(error: Any, path: list[str | int]) -> bool:
    return list(error.instance_path) == path


def _path_words(path: list[str | int]) -> str:
    return ".".join("*" if isinstance(step, int) else step for step in path)


def _short(value: Any) -> str:
    words = json.dumps(value, ensure_ascii=False)
    if len(words) <= MAX_EXAMPLE_CHARACTERS:
        return words
    return f"{words[:MAX_EXAMPLE_CHARACTERS]}…"
