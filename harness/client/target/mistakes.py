"""One-line messages for mistakes in a TOML file: the place, the mistake, the expected value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from harness.client.target.tomltext import Loc, Place, Toml, dotted_key
from harness.trace.nearest import did_you_mean, unknown_name

_WORDS = (
    ("Input should", "it should"),
    ("a valid dictionary", "a table"),
    ("a valid string", "a text"),
    ("a valid list", "a list"),
    ("a valid number", "a number"),
    ("a valid boolean", "true or false"),
    ("a valid date", "a day such as 2027-01-31, without quotes"),
    ("Value error, ", ""),
    ("List should have at least 1 item after validation, not 0", "it should have an entry"),
)


@dataclass(frozen=True, slots=True)
class _Detail:
    """One error of the validator, and the path that it is about."""

    kind: str
    loc: Loc
    place: Place
    message: str
    name: str
    near: str


def first_mistake(error: ValidationError, model: type[BaseModel], toml: Toml) -> str:
    """Return the first mistake of a file, in the order of its lines."""
    details = _details(error, toml)
    # A misspelt key is also reported as a missing one; the misspelling is the mistake.
    if any(detail.kind == "extra_forbidden" for detail in details):
        details = [detail for detail in details if detail.kind != "missing"]
    first = min(details, key=lambda detail: (detail.place.line, detail.place.column))
    same = [detail for detail in details if detail.place == first.place]
    return f"{first.place}: {_describe_mistake(same, model)}"


def _details(error: ValidationError, toml: Toml) -> list[_Detail]:
    details: list[_Detail] = []
    for error_details in error.errors(include_url=False):
        kind, loc = error_details["type"], _known_part(error_details["loc"], toml)
        is_key = kind == "extra_forbidden" or error_details["loc"][-1:] == ("[key]",)
        place, name = toml.place(loc, key=is_key), str(error_details["loc"][-1])
        expected = str(error_details.get("ctx", {}).get("expected", ""))
        near = _near_hint(error_details["input"], expected) if kind == "literal_error" else ""
        details.append(_Detail(kind, loc, place, _plain_message(error_details["msg"]), name, near))
    return details


def _known_part(loc: Loc, toml: Toml) -> Loc:
    """Return the path without parts that the validator adds: union members, and `[key]`."""
    known_path: Loc = ()
    for step in loc:
        if (*known_path, step) not in toml.values:
            break
        known_path = (*known_path, step)
    return known_path


def _describe_mistake(same: Sequence[_Detail], model: type[BaseModel]) -> str:
    first = same[0]
    if first.kind == "extra_forbidden":
        return unknown_name("key", first.name, _fields_at(model, first.loc[:-1]))
    if first.kind == "missing":
        return f"the key {first.name!r} is missing"
    # For a value of several possible types, every type reports an error.
    messages = list(dict.fromkeys(detail.message for detail in same))
    words = messages[0] + "".join(
        f" or {message.removeprefix('it should be ')}" for message in messages[1:]
    )
    key = dotted_key(tuple(step for step in first.loc if isinstance(step, str)))
    return f"{key}: {words}{first.near}"


def _plain_message(message: str) -> str:
    for validator_words, plain_words in _WORDS:
        message = message.replace(validator_words, plain_words)
    return message


def _near_hint(value: Any, expected: str) -> str:
    options = [part.strip(" '") for part in expected.replace(" or ", ",").split(",")]
    return did_you_mean(value, options) if isinstance(value, str) else ""


def _fields_at(model: type[BaseModel], loc: Loc) -> list[str]:
    """Return the keys that the model allows at a place in a file, also in lists of tables."""
    for step in loc:
        if isinstance(step, int) or step not in model.model_fields:
            continue
        annotation: Any = model.model_fields[step].annotation
        for inner in (annotation, *get_args(annotation)):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                model = inner
    return [field.alias or name for name, field in model.model_fields.items()]
