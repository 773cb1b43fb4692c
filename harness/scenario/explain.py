"""Messages for the author of a scenario, made from a validator's errors."""

from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from harness.scenario.client_steps import METHOD_OF_STEP
from harness.scenario.model import Scenario
from harness.scenario.yaml12 import Document, Mistakes, ScenarioError
from harness.trace.nearest import did_you_mean, unknown_name

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


# Other names of a client step -> the step.
_STEP_OF_SPELLING = {
    spelling: step
    for step, method in METHOD_OF_STEP.items()
    for spelling in (method, method.replace("/", "_"))
}
_SLEEP_NAMES = ("sleep", "delay", "pause")


def describe_error(error: ErrorDetails, *others: ErrorDetails, root: Any = Scenario) -> str:
    """Return a message for a validator's error: value found, value expected, nearest valid name.

    `others` are the errors of the other types that the same value may have.
    """
    kind, value = error["type"], error["input"]
    context = error.get("ctx", {})
    if others and all(detail["type"] in (*_TYPES, *_LITERALS) for detail in (error, *others)):
        return _describe_alternatives((error, *others))
    if kind == "extra_forbidden":
        key = str(error["loc"][-1])
        return unknown_name("key", key, keys_at(error["loc"][:-1], root))
    if kind == "missing":
        return f"the key {error['loc'][-1]!r} is missing"
    if kind == "union_tag_invalid" and not isinstance(value, str):
        return _describe_unknown_step(str(context.get("tag")), keys_at(error["loc"], root))
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        keys = keys_at(error["loc"], root)
        names = ", ".join(sorted(keys - {"text"}))
        or_text = "a text, or " if "text" in keys else ""
        expected = f"expected {or_text}a mapping with exactly one key, one of: {names}"
        return f"{_describe_found(value)}; {expected}"
    if kind in _LITERALS:
        return _describe_unexpected(value, str(context.get("expected", "")))
    if kind == "string_pattern_mismatch":
        return f"{_describe_found(value)}; expected a letter, then letters, digits, - and _"
    if kind == "too_short":
        return "found an empty list; expected one entry at least"
    if kind in _TYPES:
        near = yaml11_hint(value) if kind == "bool_type" else ""
        return f"{_describe_found(value)}; expected {_TYPES[kind]}{near}"
    if kind == "value_error":
        return str(context.get("error", error["msg"]))
    return f"{_describe_found(value)}; {error['msg'].replace('Input should', 'it should')}"


def first_mistake(
    error: ValidationError, document: Document, path: Path, root: Any = Scenario
) -> ScenarioError:
    """Return the error of the first mistake in file order; it carries the others."""
    mistakes = Mistakes(path, document)
    add_mistakes(error, document, mistakes, root)
    found = mistakes.error
    assert found is not None, "a validator that fails has a reason"
    return found


def add_mistakes(
    error: ValidationError, document: Document, mistakes: Mistakes, root: Any = Scenario
) -> None:
    """Add a message to `mistakes` for each place at which a validator found an error."""
    details = error.errors(include_url=False)
    # A misspelt key is also a missing one: the misspelling is the mistake.
    if any(detail["type"] == "extra_forbidden" for detail in details):
        details = [detail for detail in details if detail["type"] != "missing"]
    details_at: dict[tuple[int, int], list[ErrorDetails]] = {}
    for detail in details:
        place = document.place(detail["loc"], key=_is_about_key(detail))
        details_at.setdefault(place, []).append(detail)
    for together in details_at.values():
        first = together[0]
        message = describe_error(*together, root=root)
        mistakes.add(first["loc"], message, key=_is_about_key(first))


def _is_about_key(detail: ErrorDetails) -> bool:
    return detail["type"] == "extra_forbidden" or detail["loc"][-1:] == ("[key]",)


def yaml11_hint(value: Any) -> str:
    """Return advice on a text that older YAML took for a boolean, "" for any other."""
    boolean = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(
        str(value).lower(), ""
    )
    return f"; {value!r} is a text in YAML 1.2: write {boolean}" if boolean else ""


def keys_at(loc: tuple[int | str, ...], root: Any = Scenario) -> set[str]:
    """Return the keys that a scenario, or another `root`, may have at a place."""
    annotations: list[Any] = [root]
    for step in loc:
        annotations = [
            child for annotation in annotations for child in _child_annotations(annotation, step)
        ] or annotations
    return {name for annotation in annotations for name in _keys(annotation)}


def _describe_alternatives(errors: tuple[ErrorDetails, ...]) -> str:
    """Return the message for a value of no allowed type: `…; expected a whole number or 'x'`."""
    value, expected = errors[0]["input"], list[str]()
    for error in errors:
        expected_by_error = str(error.get("ctx", {}).get("expected", ""))
        expected.append(_TYPES.get(error["type"], expected_by_error))
    return _describe_unexpected(value, " or ".join(dict.fromkeys(expected)))


def _describe_unknown_step(name: str, steps: set[str]) -> str:
    """Return the message for an unknown step, with a suggestion."""
    if "start_turn" not in steps:
        return unknown_name("step", name, steps)
    if name in _STEP_OF_SPELLING:
        return f"unknown step {name!r}; did you mean {_STEP_OF_SPELLING[name]!r}?"
    if name in _SLEEP_NAMES:
        return f"unknown step {name!r}: no step sleeps; wait for what must come first, by 'wait'"
    if "/" in name:
        return f"unknown step {name!r}; a method is sent by request: {{method: {name}}}"
    return unknown_name("step", name, steps)


def _describe_unexpected(value: Any, expected: str) -> str:
    options = [part.strip().strip("'") for part in expected.replace(" or ", ",").split(",")]
    near = did_you_mean(value, options) if isinstance(value, str) else ""
    return f"{_describe_found(value)}; expected {expected}{near}"


def _describe_found(value: Any) -> str:
    if value is None:
        return "found nothing (null)"
    if isinstance(value, dict):
        return f"found a mapping with {', '.join(map(repr, value)) or 'no keys'}"  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, list):
        return "found a list"
    text = repr(value)
    return f"found {text if len(text) < 60 else text[:57] + '…'}"


def _alternatives(annotation: Any) -> list[tuple[str, Any]]:
    """Return each member of a union with its tag, "" if untagged; [] if it is not a union."""
    annotation = _without_annotated(annotation)
    if get_origin(annotation) not in (Union, UnionType):
        return []
    return [(_tag(member), member) for member in get_args(annotation)]


def _child_annotations(annotation: Any, step: int | str) -> list[Any]:
    members = _alternatives(annotation)
    if members:
        tagged = [member for tag, member in members if tag == step]
        return tagged or [
            child for _, member in members for child in _child_annotations(member, step)
        ]
    bare = _without_annotated(annotation)
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
    members = _alternatives(annotation)
    if members:
        return {name for tag, member in members for name in (_keys(member) or {tag}) if name}
    bare = _without_annotated(annotation)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        return {field.alias or name for name, field in bare.model_fields.items()}
    return set()


def _without_annotated(annotation: Any) -> Any:
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
