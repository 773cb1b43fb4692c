"""Meanings of the protocol's own words for `harness explain`: methods, types, members, codes.

An explanation has the shape, the clauses about it, and the points that they leave open.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from harness.protocol.spec.loading import load_book
from harness.protocol.spec.members import Shape, all_shapes, shape_of
from harness.protocol.spec.rows import EventRow, MethodRow, Requirement, Unspecified

_ITEMS: Final = "item.json#/$defs/ThreadItem"
# The error codes of JSON-RPC 2.0; the specification of the protocol names none.
CODES: Final = {
    "-32700": "parse error: the line is not JSON",
    "-32600": "invalid request: the message is not a valid request; some servers use it for any "
    "refusal",
    "-32601": "method not found: the server does not have the method",
    "-32602": "invalid params: params are missing or of a wrong type",
    "-32603": "internal error: the server failed",
}
_CODE: Final = re.compile(r"-32[0-9]{3}")
# Names that statements also use as words of English.
_PLAIN_WORDS: Final = ("error", "plan", "reasoning", "Thread", "Turn", "Request", "Response")
# A value as the type of a member shows it, and how many requirements are listed at most.
_VALUE: Final = re.compile(r"`([^`]+)`")
MAX_MENTIONS: Final = 8
_POINT_OF_CODES: Final = "rpc.error-response"


@cache
def names() -> frozenset[str]:
    """Return every name that is explained; of error codes, only those with a meaning."""
    return frozenset({*_operations(), *_item_types(), *_shapes(), *CODES, *_points(), *_places()})


def is_explained(name: str) -> bool:
    """Return whether `explain_word` knows a name."""
    return name in names() or bool(_CODE.fullmatch(name))


def explain_word(name: str) -> Iterator[str]:
    """Yield the lines that explain a name; one with several meanings has all of them."""
    meanings: list[Iterable[str]] = []
    if name in _operations():
        meanings.append(_operation_lines(_operations()[name]))
    if name in _item_types():
        meanings.append(_item_lines(name))
    if name in _shapes():
        meanings.append(_type_lines(_shapes()[name]))
    if name in _points():
        meanings.append(_point_lines(_points()[name]))
    if name in _places():
        meanings.append(_place_lines(name))
    if _CODE.fullmatch(name):
        meanings.append(_code_lines(name))
    for number, lines in enumerate(meanings):
        yield from [""] * bool(number)
        yield from lines


def clause_lines(requirement: Requirement) -> Iterator[str]:
    """Yield the lines of a requirement: id, statement and place in the specification."""
    clause = requirement.clause
    yield f"requirement {requirement.id} ({clause.basis})"
    yield from wrap(clause.statement, "  ")
    yield f"  {clause.document}, {clause.heading!r}, line {clause.line}"


def wrap(text: str, first: str = "") -> list[str]:
    """Return a text in lines of at most 96 characters."""
    return textwrap.wrap(
        text,
        96,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
    )


def _operations() -> dict[str, MethodRow | EventRow]:
    book = load_book()
    return {row.method: row for row in (*book.methods, *book.events)}


def _item_types() -> dict[str, str]:
    """Return item type -> id of its requirement."""
    shape = shape_of(load_book().schemas, _ITEMS)
    return {variant.value: variant.clause for variant in shape.variants}


@cache
def _shapes() -> dict[str, Shape]:
    return {shape.name: shape for _, shape in all_shapes(load_book().schemas)}


def _points() -> dict[str, Unspecified]:
    return {point.id: point for point in load_book().unspecified}


@cache
def _places() -> dict[str, list[str]]:
    """Return name of a member, or a value -> its members, each as `status of Turn: type`."""
    places: dict[str, dict[str, None]] = {}
    for _, shape in all_shapes(load_book().schemas):
        for member in shape.members:
            place = f"{member.name} of {shape.name}: {member.type}"
            for word in (member.name, *_VALUE.findall(member.type)):
                places.setdefault(word, {})[place] = None
        for word in shape.values:
            places.setdefault(word, {})
    return {name: list(found) for name, found in places.items()}


def _place_lines(name: str) -> Iterator[str]:
    """Yield the members with this name or value, and the requirements that mention it."""
    places = _places()[name]
    is_member = any(place.startswith(f"{name} of ") for place in places)
    is_value = any(not place.startswith(f"{name} of ") for place in places) or not places
    kinds = " and ".join(["member"] * is_member + ["value"] * is_value)
    yield f"{name} ({kinds})"
    for place in places:
        yield from wrap(place, "  ")
    mention = _mention(name)
    book = load_book()
    mentioning = [row for row in book.requirements if mention.search(row.clause.statement)]
    if len(mentioning) > MAX_MENTIONS:
        yield f"  {len(mentioning)} requirements mention it: harness docs protocol"
        return
    for row in mentioning:
        yield ""
        yield from clause_lines(row)


def _mention(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w/.-]){re.escape(name)}(?![\w/])")


def _operation_lines(row: MethodRow | EventRow) -> Iterator[str]:
    kind = (
        f"request, {row.direction.replace('-', ' ')}"
        if isinstance(row, MethodRow)
        else "notification, server to client"
    )
    yield f"{row.method} ({kind}; capability {row.capability}; {row.stability})"
    yield from _payload_lines("params", row.params)
    if isinstance(row, MethodRow):
        yield from _payload_lines("result", row.result)
    yield from _statement_lines(row.method, row.clauses)


def _payload_lines(part: str, reference: str | None) -> Iterator[str]:
    yield ""
    if reference is None:
        yield f"{part}: not shown in the text; any object"
        return
    shape = shape_of(load_book().schemas, reference)
    yield f"{part}:" if shape.members else f"{part}: an empty object"
    yield from _member_lines(shape)


def _member_lines(shape: Shape) -> Iterator[str]:
    width = max((len(member.name) for member in shape.members), default=0)
    for member in shape.members:
        presence = "required" if member.required else "optional"
        yield f"  {member.name:{width}}  {member.type}; {presence}"


def _type_lines(shape: Shape) -> Iterator[str]:
    yield f"{shape.name} (type)"
    if shape.values:
        yield from wrap(f"one of: {', '.join(shape.values)}", "  ")
    yield from _member_lines(shape)
    for variant in shape.variants:
        members = ", ".join(member.name for member in variant.members)
        yield from wrap(f"with the type {variant.value}: {members or 'nothing more'}", "  ")
    yield from _statement_lines(shape.name, shape.clauses)


def _item_lines(name: str) -> Iterator[str]:
    shape = shape_of(load_book().schemas, _ITEMS)
    variant = next(variant for variant in shape.variants if variant.value == name)
    yield f"{name} (item type)"
    yield from _member_lines(Shape(name, (), (), variant.members, ()))
    yield from _statement_lines(name, (variant.clause, *(f"?{point}" for point in variant.open)))


def _point_lines(point: Unspecified) -> Iterator[str]:
    yield f"{point.id} (left open by the text)"
    yield from wrap(point.question, "  ")
    yield from wrap(f"our choice: {point.choice}", "  ")
    yield from wrap(f"why: {point.reason}", "  ")
    heading = next(
        document.heading_at(point.line)
        for document in load_book().documents
        if document.name == point.document
    )
    yield f"  {point.document}, {heading!r}, line {point.line}"


def _code_lines(code: str) -> Iterator[str]:
    meaning = CODES.get(code, "without a meaning of its own in JSON-RPC 2.0")
    yield from wrap(f"{code} (error code): {meaning}")
    yield ""
    yield from wrap("The text of the protocol names no codes, so no rule judges one.")
    mentioned = [point for point in _points().values() if code in point.choice]
    for point in (*mentioned, _points()[_POINT_OF_CODES]):
        yield ""
        yield from _point_lines(point)


def _statement_lines(name: str, cited: tuple[str, ...]) -> Iterator[str]:
    """Yield requirements, open points and rules about a name: cited, of its family, by mention."""
    mention = _mention(name)
    families = _own_families(name)

    def concerns(identifier: str, words: str, citation: str) -> bool:
        family = identifier.partition(".")[0]
        is_mentioned = name not in _PLAIN_WORDS and mention.search(words)
        return citation in cited or family in families or bool(is_mentioned)

    book = load_book()
    requirements = [
        row for row in book.requirements if concerns(row.id, row.clause.statement, row.id)
    ]
    points = [
        point
        for point in book.unspecified
        if concerns(point.id, f"{point.question} {point.choice}", f"?{point.id}")
    ]
    rules = dict.fromkeys(rule for row in requirements for rule in row.rules)
    for row in requirements:
        yield ""
        yield from clause_lines(row)
    for point in points:
        yield ""
        yield from _point_lines(point)
    if rules:
        yield ""
        yield from wrap(f"judged by: {', '.join(rules)}")


def _own_families(name: str) -> set[str]:
    """Return the id families that no other operation cites: `turn-start` for turn/start."""
    rows = _operations()
    if name not in rows:
        return set()
    others = {family for method, row in rows.items() if method != name for family in _families(row)}
    return _families(rows[name]) - others


def _families(row: MethodRow | EventRow) -> set[str]:
    return {clause.partition(".")[0] for clause in row.clauses if not clause.startswith("?")}
