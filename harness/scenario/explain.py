"""Turns a validator's errors into sentences for the author of a scenario."""

from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from harness.scenario.client_steps import METHOD_OF_STEP
from harness.scenario.model import Scenario
from harness.scenario.yaml12 import Document, ScenarioError
from harness.trace.nearest import hint, unknown

_TYPES = {
    "string_type": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_LITERALS = ("literal_error", "enum")


# What a client step is called elsewhere, and what is meant by it here.
_STEPS = {
    spelling: step
    for step, method in METHOD_OF_STEP.items()
    for spelling in (method, method.replace("/", "_"))
}
_SLEEPS = ("sleep", "delay", "pause")


def sentence(error: ErrorDetails, *others: ErrorDetails, root: Any = Scenario) -> str:
    """Return what was found, what was expected, and the nearest valid name.

    `others` are the complaints of the other kinds that the same value may be of.
    """
    kind, found = error["type"], error["input"]
    context = error.get("ctx", {})
    if others and all(one["type"] in (*_TYPES, *_LITERALS) for one in (error, *others)):
        return _of_several((error, *others))
    if kind == "extra_forbidden":
        key = str(error["loc"][-1])
        return unknown("key", key, keys_at(error["loc"][:-1], root))
    if kind == "missing":
        return f"the key {error['loc'][-1]!r} is missing"
    if kind == "union_tag_invalid" and not isinstance(found, str):
        return _step(str(context.get("tag")), keys_at(error["loc"], root))
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        keys = keys_at(error["loc"], root)
        names = ", ".join(sorted(keys - {"text"}))
        or_text = "a text, or " if "text" in keys else ""
        return f"{_found(found)}; expected {or_text}a mapping with exactly one key, one of: {names}"
    if kind in _LITERALS:
        return _literal(found, str(context.get("expected", "")))
    if kind == "string_pattern_mismatch":
        return f"{_found(found)}; expected a letter, then letters, digits, - and _"
    if kind == "too_short":
        return "found an empty list; expected one entry at least"
    if kind in _TYPES:
        near = yaml11(found) if kind == "bool_type" else ""
        return f"{_found(found)}; expected {_TYPES[kind]}{near}"
    if kind == "value_error":
        return str(context.get("error", error["msg"]))
    return f"{_found(found)}; {error['msg'].replace('Input should', 'it should')}"


def first_mistake(
    error: ValidationError, document: Document, path: Path, root: Any = Scenario
) -> ScenarioError:
    """The first mistake in the order of the file."""
    details = error.errors(include_url=False)
    # A misspelt key is also a missing one: the misspelling is the mistake.
    if any(detail["type"] == "extra_forbidden" for detail in details):
        details = [detail for detail in details if detail["type"] != "missing"]
    mistakes: dict[tuple[int, int], list[ErrorDetails]] = {}
    for detail in details:
        is_key = detail["type"] == "extra_forbidden" or detail["loc"][-1:] == ("[key]",)
        mistakes.setdefault(document.place(detail["loc"], key=is_key), []).append(detail)
    place = min(mistakes)
    message = sentence(*mistakes[place], root=root)
    more = f" ({len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
    return ScenarioError(path, place, message + more)


def yaml11(found: Any) -> str:
    """Return advice on a text that older YAML took for a boolean, "" for any other."""
    meant = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(str(found).lower(), "")
    return f"; {found!r} is a text in YAML 1.2: write {meant}" if meant else ""


def keys_at(loc: tuple[int | str, ...], root: Any = Scenario) -> set[str]:
    """The keys that a scenario, or what else is the `root`, may have at a place."""
    annotations: list[Any] = [root]
    for step in loc:
        annotations = [
            child for one in annotations for child in _children(one, step)
        ] or annotations
    return {name for one in annotations for name in _keys(one)}


def _of_several(errors: tuple[ErrorDetails, ...]) -> str:
    """A value that is of none of several kinds: `a whole number or 'until-turn-ends'`."""
    found, expected = errors[0]["input"], list[str]()
    for one in errors:
        told = str(one.get("ctx", {}).get("expected", ""))
        expected.append(_TYPES.get(one["type"], told))
    return _literal(found, " or ".join(dict.fromkeys(expected)))


def _step(name: str, steps: set[str]) -> str:
    """A step that there is not, which has another name here, or is a request."""
    if "start_turn" not in steps:
        return unknown("step", name, steps)
    if name in _STEPS:
        return f"unknown step {name!r}; did you mean {_STEPS[name]!r}?"
    if name in _SLEEPS:
        return f"unknown step {name!r}: no step sleeps; wait for what must come first, by 'wait'"
    if "/" in name:
        return f"unknown step {name!r}; a method is sent by request: {{method: {name}}}"
    return unknown("step", name, steps)


def _literal(found: Any, expected: str) -> str:
    options = [part.strip().strip("'") for part in expected.replace(" or ", ",").split(",")]
    near = hint(found, options) if isinstance(found, str) else ""
    return f"{_found(found)}; expected {expected}{near}"


def _found(value: Any) -> str:
    if value is None:
        return "found nothing (null)"
    if isinstance(value, dict):
        return f"found a mapping with {', '.join(map(repr, value)) or 'no keys'}"  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, list):
        return "found a list"
    shown = repr(value)
    return f"found {shown if len(shown) < 60 else shown[:57] + '…'}"


def _members(annotation: Any) -> list[tuple[str, Any]]:
    """The alternatives of a union with their tags, "" for an alternative without."""
    annotation = _bare(annotation)
    if get_origin(annotation) not in (Union, UnionType):
        return []
    return [(_tag(member), member) for member in get_args(annotation)]


def _children(annotation: Any, step: int | str) -> list[Any]:
    members = _members(annotation)
    if members:
        tagged = [member for tag, member in members if tag == step]
        return tagged or [child for _, member in members for child in _children(member, step)]
    bare = _bare(annotation)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        for name, field in bare.model_fields.items():
            if step in (field.alias or name, name):
                return [field.annotation]
        return []
    origin, args = get_origin(bare), get_args(bare)
    if origin is list and isinstance(step, int):
        return [args[0]]
    if origin is dict and isinstance(step, str):
        return [args[1]]
    return []


def _keys(annotation: Any) -> set[str]:
    members = _members(annotation)
    if members:
        return {name for tag, member in members for name in (_keys(member) or {tag}) if name}
    bare = _bare(annotation)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        return {field.alias or name for name, field in bare.model_fields.items()}
    return set()


def _bare(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _tag(annotation: Any) -> str:
    if get_origin(annotation) is Annotated:
        for extra in get_args(annotation)[1:]:
            if isinstance(extra, Tag):
                return extra.tag
    if get_origin(annotation) is Literal:
        return "literal"
    return ""
