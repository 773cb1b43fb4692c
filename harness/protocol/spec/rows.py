"""The rows of the book's tables as values, and the checks that each must pass."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from harness.protocol.spec.yamlfile import BookError, Row, check_keys, parse_rows

RULE_ID = re.compile(r"[a-z][a-z-]*\.[a-z][a-z-]*")
ROW_ID = re.compile(r"[a-z][a-z-]*(\.[a-z][a-z-]*)?")
REF = re.compile(r"[a-z-]+\.json#/\$defs/[A-Za-z]+")

SESSION_DOCUMENT = "session-protocol"
BASES = ("STATED", "DERIVED", "CHOSEN")
# The level follows from the basis; STATED is SHOULD only where the text itself is a note or a hint.
LEVELS = {"STATED": ("MUST", "SHOULD"), "DERIVED": ("SHOULD", "MUST"), "CHOSEN": ("INFO",)}
BOUND = ("server", "client", "both")
PARTS = ("B", "C", "D", "E", "F")
# The two kinds of reasons why no rule can judge a requirement; the text after it says more.
EXCLUSIONS = ("not observable from outside: ", "under development: ")
DIRECTIONS = ("client-to-server", "server-to-client")
STABILITIES = ("stable", "experimental", "under-development", "silent")


@dataclass(frozen=True, slots=True)
class Clause:
    """One normative sentence, in our own words, and its place in the documents.

    `basis` is STATED, DERIVED or CHOSEN; `level` MUST, SHOULD or INFO; `bound` server, client or
    both; `line` counts in the document.
    """

    id: str
    document: str
    heading: str
    line: int
    statement: str
    basis: str
    level: str
    bound: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """A clause and what judges it: exactly one of `rules`, `excluded` and `owed` is filled.

    `drawn_from` names the clauses that a DERIVED one follows from; `lighter` says why a STATED one
    is no MUST.
    """

    clause: Clause
    rules: tuple[str, ...]
    excluded: str | None
    owed: str | None
    drawn_from: tuple[str, ...]
    lighter: str | None = None

    @property
    def id(self) -> str:
        """The clause's id."""
        return self.clause.id


# What a request may do, as far as a judge must know it. Whatever "may" happen must be allowed for.
EFFECTS: Final = {
    "shows-thread": "its result holds thread objects",
    "opens-thread": "its sender hears of the thread from then on",
    "leaves-thread": "its sender may hear nothing more of the thread",
    "may-reload": "the thread may be unloaded by it, or loaded again",
    "gives-turn": "its result holds the turn that it began",
    "needs-running-turn": "it speaks of a turn that is in progress, and is refused without one",
    "may-end-turn": "a turn that runs may be over by it, though it is no turn/interrupt",
    "done-when-answered": "all of its effect is there when it is answered",
    "rewrites-history": "it may change what a thread remembers",
    "may-work-outside-turns": "it may begin work that no turn/start asked for, or undo a turn",
    "may-change-provider": "the server may go to another model provider for it",
    "may-disturb-model-calls": "it may call the model, rewrite what the model is sent, or keep the "
    "client from hearing of a turn: model calls are no longer certain to be those of known turns",
    "may-change-what-is-taken": "what was refused before may be taken afterwards, or the reverse",
    "leaves-turn-alone": "a turn that runs goes on as if it had not been sent, or ends as it asks",
}


@dataclass(frozen=True, slots=True)
class MethodRow:
    """A request of either side. `params` and `result` are schema references, or None: not shown.

    `effects` says what the request does, in the words of `EFFECTS`.
    """

    method: str
    direction: str
    params: str | None
    result: str | None
    clauses: tuple[str, ...]
    capability: str
    stability: str
    effects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnlistedMethod:
    """A request that the text does not name; `clauses` are the open points that it belongs to."""

    method: str
    clauses: tuple[str, ...]
    effects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EventRow:
    """A notification of the server. `params` is a schema reference, or None: not shown."""

    method: str
    params: str | None
    clauses: tuple[str, ...]
    capability: str
    stability: str


@dataclass(frozen=True, slots=True)
class Unspecified:
    """A point that the text leaves open, and what we chose.

    `surfaces` are those that it is about. `unseen` says why nothing that a play on them writes down
    shows a choice; None where something does.
    """

    id: str
    document: str
    line: int
    question: str
    choice: str
    reason: str
    unseen: str | None = None
    surfaces: tuple[str, ...] = ("session",)

    def is_about(self, surfaces: Collection[str]) -> bool:
        """Return whether it is a point of one of these surfaces."""
        return any(one in surfaces for one in self.surfaces)


@dataclass(frozen=True, slots=True)
class Capability:
    """Something that a server may or may not offer, and how one finds out."""

    id: str
    title: str
    description: str
    probe: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document that the book was made from: its length in lines and its SHA-256.

    `sections` has the line and the words of each heading, in order.
    """

    name: str
    file: str
    lines: int
    sha256: str
    sections: tuple[tuple[int, str], ...]

    def heading_at(self, line: int) -> str | None:
        """The nearest heading at or above a line; None above the first and beyond the end."""
        above = [heading for start, heading in self.sections if start <= line <= self.lines]
        return above[-1] if above else None


T = TypeVar("T")


def read_table(name: str, text: str, key: str, make: Callable[[str, Row], T]) -> dict[str, T]:
    """The rows of a YAML text by their key, in the file's order; a key twice is an error."""
    return _table(name, parse_rows(name, text), key, make)


def read_messages(name: str, document: Any, part: str, make: Callable[[str, Row], T]) -> list[T]:
    """The rows of a schema file: its `methods` or `events` (`part`), in the file's order.

    `name` is that of the file. A row names its schemas without the file, in which they stand.
    """
    rows: list[Row] = []
    for row in document.get(part, ()):
        shapes = {key: row[key] for key in ("params", "result") if row.get(key) is not None}
        rows.append({**row, **{key: f"{name}#/$defs/{one}" for key, one in shapes.items()}})
    return list(_table(f"schema/{name}: {part}", rows, "method", make).values())


def _table(name: str, rows: list[Row], key: str, make: Callable[[str, Row], T]) -> dict[str, T]:
    table: dict[str, T] = {}
    for index, row in enumerate(rows):
        where = f"{name}: row {index + 1} ({row.get(key, 'without ' + key)})"
        if key not in row:
            raise BookError(f"{where}: missing {key}")
        value = make(where, row)
        if row[key] in table:
            raise BookError(f"{where}: {key} {row[key]!r} is taken by an earlier row")
        table[row[key]] = value
    return table


def make_requirement(where: str, row: Row) -> Requirement:
    """A row of a file in requirements/."""
    check_keys(
        where,
        row,
        ("id", "document", "heading", "line", "bound", "basis", "level", "statement"),
        ("rules", "excluded", "owed", "from", "lighter"),
    )
    basis = _one_of(where, row, "basis", BASES)
    owed = _one_of(where, row, "owed", PARTS) if "owed" in row else None
    excluded = _text(where, row, "excluded") if "excluded" in row else None
    if excluded is not None and not excluded.startswith(EXCLUSIONS):
        raise BookError(f"{where}: excluded: expected one of {', '.join(EXCLUSIONS)}and how so")
    rules = _names(where, row, "rules", RULE_ID) if "rules" in row else ()
    if sum((owed is not None, excluded is not None, bool(rules))) != 1:
        raise BookError(f"{where}: expected exactly one of rules, excluded, owed")
    drawn_from = _names(where, row, "from", ROW_ID) if "from" in row else ()
    if (basis == "DERIVED") != (len(drawn_from) >= 2):
        raise BookError(f"{where}: a DERIVED row, and no other, names two rows or more in from")
    clause = Clause(
        id=_name(where, row, "id", ROW_ID),
        document=_text(where, row, "document"),
        heading=_text(where, row, "heading"),
        line=_line(where, row),
        statement=_text(where, row, "statement"),
        basis=basis,
        level=_one_of(where, row, "level", LEVELS[basis]),
        bound=_one_of(where, row, "bound", BOUND),
    )
    lighter = _text(where, row, "lighter") if "lighter" in row else None
    if ((basis, clause.level) == ("STATED", "SHOULD")) != (lighter is not None):
        raise BookError(f"{where}: a STATED row that is SHOULD, and no other, says in lighter why")
    return Requirement(clause, rules, excluded, owed, drawn_from, lighter)


def make_method(where: str, row: Row) -> MethodRow:
    """A row of `methods` in a schema file."""
    check_keys(
        where,
        row,
        ("method", "direction", "params", "result", "clauses", "capability", "stability"),
        ("effects",),
    )
    return MethodRow(
        method=_text(where, row, "method"),
        direction=_one_of(where, row, "direction", DIRECTIONS),
        params=_reference(where, row, "params"),
        result=_reference(where, row, "result"),
        clauses=_strings(where, row, "clauses"),
        capability=_text(where, row, "capability"),
        stability=_one_of(where, row, "stability", STABILITIES),
        effects=_effects(where, row) if "effects" in row else (),
    )


def make_unlisted(where: str, row: Row) -> UnlistedMethod:
    """A row of unlisted_methods.yaml."""
    check_keys(where, row, ("method", "clauses", "effects"))
    return UnlistedMethod(
        method=_text(where, row, "method"),
        clauses=_strings(where, row, "clauses"),
        effects=_effects(where, row),
    )


def _effects(where: str, row: Row) -> tuple[str, ...]:
    effects = _strings(where, row, "effects")
    if unknown := sorted(set(effects) - EFFECTS.keys()):
        raise BookError(f"{where}: effects: {unknown[0]!r} is none of {', '.join(EFFECTS)}")
    return effects


def make_event(where: str, row: Row) -> EventRow:
    """A row of `events` in a schema file."""
    check_keys(where, row, ("method", "params", "clauses", "capability", "stability"))
    return EventRow(
        method=_text(where, row, "method"),
        params=_reference(where, row, "params"),
        clauses=_strings(where, row, "clauses"),
        capability=_text(where, row, "capability"),
        stability=_one_of(where, row, "stability", STABILITIES),
    )


def make_unspecified(where: str, row: Row) -> Unspecified:
    """A row of unspecified.yaml."""
    keys = ("id", "document", "line", "question", "choice", "reason")
    check_keys(where, row, keys, ("unseen", "surfaces"))
    return Unspecified(
        id=_name(where, row, "id", ROW_ID),
        document=_text(where, row, "document"),
        line=_line(where, row),
        question=_text(where, row, "question"),
        choice=_text(where, row, "choice"),
        reason=_text(where, row, "reason"),
        unseen=_text(where, row, "unseen") if "unseen" in row else None,
        surfaces=_strings(where, row, "surfaces") if "surfaces" in row else ("session",),
    )


def make_capability(where: str, row: Row) -> Capability:
    """A row of capabilities.yaml."""
    check_keys(where, row, ("id", "title", "description", "probe"))
    return Capability(
        id=_name(where, row, "id", ROW_ID),
        title=_text(where, row, "title"),
        description=_text(where, row, "description"),
        probe=_text(where, row, "probe"),
    )


def make_document(where: str, row: Row) -> Document:
    """A row of documents.yaml."""
    check_keys(where, row, ("name", "file", "lines", "sha256", "sections"))
    return Document(
        name=_text(where, row, "name"),
        file=_text(where, row, "file"),
        lines=_line(where, row, "lines"),
        sha256=_name(where, row, "sha256", re.compile("[0-9a-f]{64}")),
        sections=_sections(where, row),
    )


def _text(where: str, row: Row, key: str) -> str:
    value = row[key]
    if not isinstance(value, str) or not value.strip():
        raise BookError(f"{where}: {key}: expected a text, found {value!r}")
    return value


def _line(where: str, row: Row, key: str = "line") -> int:
    value = row[key]
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BookError(f"{where}: {key}: expected a whole number from 1, found {value!r}")
    return value


def _one_of(where: str, row: Row, key: str, allowed: tuple[str, ...]) -> str:
    value = row[key]
    if value not in allowed:
        raise BookError(f"{where}: {key}: expected one of {', '.join(allowed)}, found {value!r}")
    return value


def _name(where: str, row: Row, key: str, shape: re.Pattern[str]) -> str:
    value = row[key]
    if not isinstance(value, str) or not shape.fullmatch(value):
        raise BookError(f"{where}: {key}: {value!r} does not look like {shape.pattern}")
    return value


def _strings(where: str, row: Row, key: str) -> tuple[str, ...]:
    value: Any = row[key]
    if not isinstance(value, list) or not all(
        isinstance(part, str) for part in cast(list[Any], value)
    ):
        raise BookError(f"{where}: {key}: expected a list of texts, found {value!r}")
    return tuple(cast(list[str], value))


def _names(where: str, row: Row, key: str, shape: re.Pattern[str]) -> tuple[str, ...]:
    names = _strings(where, row, key)
    for name in names:
        if not shape.fullmatch(name):
            raise BookError(f"{where}: {key}: {name!r} does not look like {shape.pattern}")
    if len(set(names)) != len(names):
        raise BookError(f"{where}: {key}: a name is given twice")
    return names


def _sections(where: str, row: Row) -> tuple[tuple[int, str], ...]:
    value: Any = row["sections"]
    if not isinstance(value, dict):
        raise BookError(f"{where}: sections: expected a mapping of lines to headings")
    sections = tuple(cast(dict[Any, Any], value).items())
    for line, heading in sections:
        if not isinstance(line, int) or not isinstance(heading, str):
            raise BookError(f"{where}: sections: {line!r}: {heading!r} is no line and heading")
    if list(sections) != sorted(sections):
        raise BookError(f"{where}: sections: not in the order of their lines")
    return cast(tuple[tuple[int, str], ...], sections)


def _reference(where: str, row: Row, key: str) -> str | None:
    if row[key] is None:
        return None
    return _name(where, row, key, REF)
