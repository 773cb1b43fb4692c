"""The judge's book, grouped by the sections of docs/protocol.md."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from harness.protocol.spec.book import Book
from harness.protocol.spec.members import Shape, Variant, all_shapes, shape_of
from harness.protocol.spec.rows import Document, EventRow, MethodRow, Requirement, Unspecified

# Titles of groups, by the first part of requirement ids; for groups not named by a type or method.
TITLES = {
    "rpc": "Messages",
    "service": "The service",
    "turn": "Turns",
    "thread": "Threads",
    "item": "Items",
    "event": "Events",
    "errors": "Errors",
    "operation": "What follows which request",
    "loading": "Loading",
    "storage": "Storage",
    "approval": "Approvals",
    "reasoning": "Reasoning",
    "approval-policy": "Approval policy",
    "sandbox-mode": "Sandbox mode",
    "sort-key": "Sort key",
    "effort": "Effort",
    "summary": "Summary",
    "personality": "Personality",
    "mcp-name": "Names",
    "mcp-kind": "Kinds",
    "mcp-config": "Configuration",
    "state": "States",
    "thread-status": "The status of a thread",
    "skills-entry": "Entries of the listing",
    "mcp-command": "The command",
    "mcp-list": "agent mcp list",
    "mcp-get": "agent mcp get",
    "mcp-add": "agent mcp add",
    "mcp-remove": "agent mcp remove",
    "mcp-login": "agent mcp login",
    "mcp-logout": "agent mcp logout",
    "mcp-auth": "MCP servers",
    "mcp-errors": "The command",
    "sdk-auth": "The SDK",
    "sdk-errors": "The SDK",
    "sdk-order": "Order",
    "sdk-event": "The events of a stream",
    "sdk-agent": "Agent",
    "sdk-thread": "Threads of the SDK",
    "sdk-result": "What a turn gives",
    "sdk-usage": "Usage",
    "sdk-item": "Items of the SDK",
    "sdk-types": "Exported types",
}


@dataclass
class Group:
    """The requirements, shapes and open points of one object, method or event in a section."""

    title: str
    operation: MethodRow | EventRow | None = None
    shapes: list[Shape] = field(default_factory=list[Shape])
    variant: Variant | None = None
    requirements: list[Requirement] = field(default_factory=list[Requirement])
    points: list[Unspecified] = field(default_factory=list[Unspecified])


@dataclass
class Section:
    """A section of a document: its heading, the groups in it, and open points without a group."""

    document: Document
    line: int
    heading: str
    title: str
    groups: list[Group] = field(default_factory=list[Group])
    points: list[Unspecified] = field(default_factory=list[Unspecified])


def sections_of(book: Book) -> Iterator[Section]:
    """Yield a section for each heading of both documents, in order; many are empty."""
    headings: set[str] = set()
    for document in book.documents:
        for line, heading in document.sections:
            # A heading that is in both documents would give the same anchor twice.
            title = heading if heading not in headings else f"{heading} (command and SDK)"
            headings.add(heading)
            section = Section(document, line, heading, title)
            _fill(book, section)
            yield section


def _fill(book: Book, section: Section) -> None:
    rows = [row for row in book.requirements if _belongs(section, row.clause)]
    groups = _special_groups(book, rows)
    lines = _lines_of_groups(rows, groups)
    for row in rows:
        matching = [one for one in groups.values() if row.id in _clauses_of(one)]
        group = matching[0] if matching else lines.get(row.clause.line) or _family(groups, row.id)
        group.requirements.append(row)
    _place_shapes(book, rows, groups)
    for point in (one for one in book.unspecified if _belongs(section, one)):
        cited = [one for one in groups.values() if one.variant and point.id in one.variant.open]
        group = cited[0] if cited else lines.get(point.line) or groups.get(_prefix(point.id))
        (group.points if group else section.points).append(point)
    section.groups = [group for group in groups.values() if group.requirements]
    if len(section.groups) == 1 and section.groups[0].operation is None:
        section.groups[0].title = section.heading


def _belongs(section: Section, row: object) -> bool:
    document, line = getattr(row, "document", None), getattr(row, "line", 0)
    return document == section.document.name and (
        section.document.heading_at(line) == section.heading
    )


def _operations(book: Book) -> Iterator[MethodRow | EventRow]:
    yield from book.methods
    yield from book.events


def _special_groups(book: Book, rows: Sequence[Requirement]) -> dict[str, Group]:
    """Return the groups of a section with operations or item types: a general one, then theirs.

    A section about one method only has one group, with the prefix of its first row as the key.
    """
    if not rows:
        return {}
    ids = {row.id for row in rows}
    operations = [row for row in _operations(book) if _first_clause(row.clauses) in ids]
    if len(operations) == 1:
        return {_prefix(rows[0].id): Group(operations[0].method, operations[0])}
    groups: dict[str, Group] = {}
    if operations:
        _family(groups, rows[0].id)
    for row in operations:
        groups[row.method] = Group(row.method, row)
    for variant in _variants_here(book, rows):
        _family(groups, rows[0].id)
        groups[variant.value] = Group(variant.value, variant=variant)
    return groups


def _clauses_of(group: Group) -> tuple[str, ...]:
    if group.variant is not None:
        return (group.variant.clause,)
    return group.operation.clauses if group.operation is not None else ()


def _lines_of_groups(rows: Sequence[Requirement], groups: dict[str, Group]) -> dict[int, Group]:
    """Return the group of each line that is cited by exactly one operation or item type."""
    line_of = {row.id: row.clause.line for row in rows}
    group_of_line: dict[int, Group | None] = {}
    for group in groups.values():
        for clause in _clauses_of(group):
            line = line_of.get(clause)
            if line is not None and (len(groups) > 1 or group.operation is None):
                group_of_line[line] = group if group_of_line.get(line, group) is group else None
    return {line: group for line, group in group_of_line.items() if group is not None}


def _variants_here(book: Book, rows: Sequence[Requirement]) -> list[Variant]:
    """Return the item types if `rows` are of their section of the specification, else []."""
    shape = shape_of(book.schemas, "item.json#/$defs/ThreadItem")
    return list(shape.variants) if shape.clauses[0] in {row.id for row in rows} else []


def _family(groups: dict[str, Group], row_id: str) -> Group:
    prefix = _prefix(row_id)
    title = TITLES.get(prefix) or prefix.replace("-", " ").replace("sdk", "SDK")
    return groups.setdefault(prefix, Group(title[0].upper() + title[1:]))


def _place_shapes(
    book: Book,
    rows: Sequence[Requirement],
    groups: dict[str, Group],
) -> None:
    """Add each type that is neither a payload nor an item type to the group of its requirement."""
    payloads = {reference for row in _operations(book) for reference in _references(row)}
    variants = {variant.clause for variant in _variants_here(book, rows)}
    rows_by_id = {row.id: row for row in rows}
    for reference, shape in all_shapes(book.schemas):
        first = shape.clauses[0] if shape.clauses else ""
        if reference in payloads or first not in rows_by_id or not (shape.members or shape.values):
            continue
        owner = next(
            (one for one in groups.values() if rows_by_id[first] in one.requirements), None
        )
        if owner is not None and (first not in variants or shape.name == "FileUpdateChange"):
            owner.shapes.append(shape)


def _references(row: MethodRow | EventRow) -> tuple[str, ...]:
    result = row.result if isinstance(row, MethodRow) else None
    return tuple(reference for reference in (row.params, result) if reference)


def _first_clause(clauses: Iterable[str]) -> str:
    return next((clause for clause in clauses if not clause.startswith("?")), "")


def _prefix(row_id: str) -> str:
    return row_id.partition(".")[0]
