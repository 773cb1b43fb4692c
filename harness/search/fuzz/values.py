"""Generated JSON: nonsense, and values that match a schema of the specification."""

from collections.abc import Mapping
from typing import Any, cast

from hypothesis import strategies as st

from harness.protocol.spec.schemas import SchemaBook

Json = dict[str, Any]
# Placeholders in string members, replaced by existing values when the request is sent.
THREAD, TURN, FOLDER = "{thread}", "{turn}", "{cwd}"
_STANDS_FOR = {
    "threadId": THREAD,
    "turnId": TURN,
    "expectedTurnId": TURN,
    "cwd": FOLDER,
}

# A placeholder for a text too long for hypothesis to print.
HUGE, HUGE_TEXT = "{huge}", "a" * 300_000
LONG = "a" * 5_000
TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["", " ", "\n", "\u2028", "\u0000", "𝄞", "\ufeff", "e\u0301", "../..", LONG]),
)
NUMBERS = st.one_of(
    st.integers(-2, 3),
    st.sampled_from([2**31, 2**53, -(2**63), 2**64, 10**30, 0.5, -0.0, 1e308]),
)
_SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)


def fill_placeholders(value: Any, replacements: Mapping[str, str]) -> Any:
    """Return a copy in which texts that equal a placeholder are replaced."""
    if isinstance(value, str):
        return replacements.get(value, value)
    if isinstance(value, dict):
        return {
            key: fill_placeholders(inner, replacements) for key, inner in cast(Json, value).items()
        }
    if isinstance(value, list):
        return [fill_placeholders(inner, replacements) for inner in cast("list[Any]", value)]
    return value


def _nest(depth: int) -> Any:
    value: Any = None
    for _ in range(depth):
        value = {"a": [value]}
    return value


NONSENSE = st.one_of(
    _SCALARS,
    st.just(HUGE),
    st.lists(_SCALARS, max_size=2),
    st.dictionaries(st.text(max_size=5), _SCALARS, max_size=2),
    # Objects within arrays, so twice as deep. Parsers stop at 128 or later; no limit is specified.
    st.sampled_from([3, 30, 60]).map(_nest),
)


def valid_values(schemas: SchemaBook, reference: str) -> st.SearchStrategy[Any]:
    """Return a strategy for values that the schema allows."""
    node, file = schemas.place(reference)

    @st.composite
    def draw_root(draw: st.DrawFn) -> Any:
        return _draw_value(draw, schemas, node, file, "")

    return draw_root()


def _draw_value(draw: st.DrawFn, schemas: SchemaBook, node: Any, file: str, name: str) -> Any:
    if "$ref" in node:
        return _draw_value(draw, schemas, *schemas.place(node["$ref"], file), name)
    if "const" in node:
        return node["const"]
    if "enum" in node:
        return draw(st.sampled_from(node["enum"]))
    kinds = node.get("type", "any")
    kind = kinds if isinstance(kinds, str) else draw(st.sampled_from(kinds))
    if node.get("if") == {"type": kind}:
        return _draw_value(draw, schemas, node["then"], file, name)
    match kind:
        case "object":
            return _draw_object(draw, schemas, node, file)
        case "array":
            size = draw(st.sampled_from([1, 1, 1, 2, 0]))
            items = node.get("items", {})
            return [_draw_value(draw, schemas, items, file, name) for _ in range(size)]
        case "string":
            return _draw_string(draw, node, name)
        case "boolean":
            return draw(st.booleans())
        case "number":
            return draw(NUMBERS)
        case "integer":
            return draw(st.integers(-2, 30))
        case "null":
            return None
        case _:
            return draw(NONSENSE)


def _draw_string(draw: st.DrawFn, node: Json, name: str) -> str:
    if node.get("pattern") == "^app://.":
        return "app://" + draw(st.sampled_from(["none", "x/y", "𝄞"]))
    if name in _STANDS_FOR and draw(st.integers(0, 4)):
        return _STANDS_FOR[name]
    return draw(TEXTS)


def _draw_object(draw: st.DrawFn, schemas: SchemaBook, node: Json, file: str) -> Json:
    result: Json = {}
    _draw_members(draw, schemas, node, file, result)
    for part in (node, *node.get("allOf", [])):
        if "then" in part and _holds(part["if"], result):
            _draw_members(draw, schemas, part["then"], file, result)
    return result


def _draw_members(
    draw: st.DrawFn, schemas: SchemaBook, node: Json, file: str, result: Json
) -> None:
    members: Mapping[str, Any] = node.get("properties", {})
    required = node.get("required", [])
    for name in dict.fromkeys([*required, *members]):
        if name not in result and (name in required or draw(st.booleans())):
            result[name] = _draw_value(draw, schemas, members.get(name, {}), file, name)


def _holds(condition: Json, result: Json) -> bool:
    """Return whether the `if` of a conditional schema holds for the members so far.

    Such conditions in our schemas compare members with constants.
    """
    constants = cast(Json, condition.get("properties", {}))
    return all(name in result for name in condition.get("required", [])) and all(
        result.get(name) == schema.get("const") for name, schema in constants.items()
    )
