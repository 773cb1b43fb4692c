"""The rows of the book's tables as values. A row that fails a check raises `BookError`."""

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
# The level follows from the basis; STATED is SHOULD only if the specification gives a note or hint.
LEVELS = {"STATED": ("MUST", "SHOULD"), "DERIVED": ("SHOULD", "MUST"), "CHOSEN": ("INFO",)}
BOUND = ("server", "client", "both")
# The beginnings of the reasons why no rule can judge a requirement.
EXCLUSIONS = ("not observable from outside: ", "under development: ")
DIRECTIONS = ("client-to-server", "server-to-client")
STABILITIES = ("stable", "experimental", "under-development", "silent")


@dataclass(frozen=True, slots=True)
class Clause:
    """One normative sentence, in the project's own words, and its place in the specification.

    `basis` is STATED, DERIVED or CHOSEN; `level` MUST, SHOULD or INFO; `bound` server, client or
    both; `line` is the line in the document, from 1.
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
    """A clause and its judges: exactly one of `rules` and `excluded` is set.

    `drawn_from` names the clauses from which a DERIVED one follows; `lighter` says why a STATED one
    is not a MUST.
    """

    clause: Clause
    rules: tuple[str, ...]
    excluded: str | None
    drawn_from: tuple[str, ...]
    lighter: str | None = None

    @property
    def id(self) -> str:
        """The clause's id."""
        return self.clause.id


# Effects of requests that the judge must know. It must allow for everything that "may" happen.
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
    """A request of either side.

    `params` and `result` are schema references, None if not shown; `effects` are of `EFFECTS`.
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
    """A request that the specification does not name; `clauses` are its open points."""

    method: str
    clauses: tuple[str, ...]
    effects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EventRow:
    """A notification of the server. `params` is a schema reference, None if not shown."""

    method: str
    params: str | None
    clauses: tuple[str, ...]
    capability: str
    stability: str


@dataclass(frozen=True, slots=True)
class Unspecified:
    """A point that the specification leaves open, and the choice of this project.

    `surfaces` are the surfaces that it concerns. `unseen` says why no recording of a play on them
    shows a choice; None if one does.
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
        """Return whether the point concerns one of these surfaces."""
        return any(surface in surfaces for surface in self.surfaces)


@dataclass(frozen=True, slots=True)
class Capability:
    """An optional feature of a server, and how to probe for it."""

    id: str
    title: str
    description: str
    probe: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document of the specification: its length in lines and its SHA-256.

    `sections` has the line and the text of each heading, in order.
    """

    name: str
    file: str
    lines: int
    sha256: str
    sections: tuple[tuple[int, str], ...]

    def heading_at(self, line: int) -> str | None:
        """Return the nearest heading at or above a line; None if there is none."""
        above = [heading for start, heading in self.sections if start <= line <= self.lines]
        return above[-1] if above else None


T = TypeVar("T")


def read_table(name: str, text: str, key: str, make: Callable[[str, Row], T]) -> dict[str, T]:
    """Return the rows of a YAML text by key, in order. Raises BookError for a repeated key."""
    return _table(name, parse_rows(name, text), key, make)


def read_messages(name: str, document: Any, part: str, make: Callable[[str, Row], T]) -> list[T]:
    """Return the rows of a schema file: its `methods` or `events` (`part`), in the file's order.

    `name` is that of the file, which is put before the names of schemas in a row.
    """
    rows: list[Row] = []
    for row in document.get(part, ()):
        shapes = {key: row[key] for key in ("params", "result") if row.get(key) is not None}
        rows.append({**row, **{key: f"{name}#/$defs/{shape}" for key, shape in shapes.items()}})
    return list(_table(f"schema/{name}: {part}", rows, "method", make).values())


def _table(name: str, rows: list[Row], key: str, make: Callable[[str, Row], T]) -> dict[str, T]:
    table: dict[str, T] = {}
    for index, row in enumerate(rows):
        place = f"{name}: row {index + 1} ({row.get(key, 'without ' + key)})"
        if key not in row:
            raise BookError(f"{place}: missing {key}")
        value = make(place, row)
        if row[key] in table:
            raise BookError(f"{place}: {key} {row[key]!r} is taken by an earlier row")
        table[row[key]] = value
    return table


def make_requirement(place: str, row: Row) -> Requirement:
    """Parse a row of a file in requirements/."""
    check_keys(
        place,
        row,
        ("id", "document", "heading", "line", "bound", "basis", "level", "statement"),
        ("rules", "excluded", "from", "lighter"),
    )
    basis = _one_of(place, row, "basis", BASES)
    excluded = _text(place, row, "excluded") if "excluded" in row else None
    if excluded is not None and not excluded.startswith(EXCLUSIONS):
        raise BookError(f"{place}: excluded: expected one of {', '.join(EXCLUSIONS)}and how so")
    rules = _names(place, row, "rules", RULE_ID) if "rules" in row else ()
    if (excluded is not None) == bool(rules):
        raise BookError(f"{place}: expected exactly one of rules, excluded")
    drawn_from = _names(place, row, "from", ROW_ID) if "from" in row else ()
    if (basis == "DERIVED") != (len(drawn_from) >= 2):
        raise BookError(f"{place}: a DERIVED row, and no other, names two rows or more in from")
    clause = Clause(
        id=_name(place, row, "id", ROW_ID),
        document=_text(place, row, "document"),
        heading=_text(place, row, "heading"),
        line=_line(place, row),
        statement=_text(place, row, "statement"),
        basis=basis,
        level=_one_of(place, row, "level", LEVELS[basis]),
        bound=_one_of(place, row, "bound", BOUND),
    )
    lighter = _text(place, row, "lighter") if "lighter" in row else None
    if ((basis, clause.level) == ("STATED", "SHOULD")) != (lighter is not None):
        raise BookError(f"{place}: a STATED row that is SHOULD, and no other, says in lighter why")
    return Requirement(clause, rules, excluded, drawn_from, lighter)


def make_method(place: str, row: Row) -> MethodRow:
    """Parse a row of `methods` in a schema file."""
    check_keys(
        place,
        row,
        ("method", "direction", "params", "result", "clauses", "capability", "stability"),
        ("effects",),
    )
    return MethodRow(
        method=_text(place, row, "method"),
        direction=_one_of(place, row, "direction", DIRECTIONS),
        params=_reference(place, row, "params"),
        result=_reference(place, row, "result"),
        clauses=_strings(place, row, "clauses"),
        capability=_text(place, row, "capability"),
        stability=_one_of(place, row, "stability", STABILITIES),
        effects=_effects(place, row) if "effects" in row else (),
    )


def make_unlisted(place: str, row: Row) -> UnlistedMethod:
    """Parse a row of unlisted_methods.yaml."""
    check_keys(place, row, ("method", "clauses", "effects"))
    return UnlistedMethod(
        method=_text(place, row, "method"),
        clauses=_strings(place, row, "clauses"),
        effects=_effects(place, row),
    )


def _effects(place: str, row: Row) -> tuple[str, ...]:
    effects = _strings(place, row, "effects")
    if unknown := sorted(set(effects) - EFFECTS.keys()):
        raise BookError(f"{place}: effects: {unknown[0]!r} is none of {', '.join(EFFECTS)}")
    return effects


def make_event(place: str, row: Row) -> EventRow:
    """Parse a row of `events` in a schema file."""
    check_keys(place, row, ("method", "params", "clauses", "capability", "stability"))
    return EventRow(
        method=_text(place, row, "method"),
        params=_reference(place, row, "params"),
        clauses=_strings(place, row, "clauses"),
        capability=_text(place, row, "capability"),
        stability=_one_of(place, row, "stability", STABILITIES),
    )


def make_unspecified(place: str, row: Row) -> Unspecified:
    """Parse a row of unspecified.yaml."""
    keys = ("id", "document", "line", "question", "choice", "reason")
    check_keys(place, row, keys, ("unseen", "surfaces"))
    return Unspecified(
        id=_name(place, row, "id", ROW_ID),
        document=_text(place, row, "document"),
        line=_line(place, row),
        question=_text(place, row, "question"),
        choice=_text(place, row, "choice"),
        reason=_text(place, row, "reason"),
        unseen=_text(place, row, "unseen") if "unseen" in row else None,
        surfaces=_strings(place, row, "surfaces") if "surfaces" in row else ("session",),
    )


def make_capability(place: str, row: Row) -> Capability:
    """Parse a row of capabilities.yaml."""
    check_keys(place, row, ("id", "title", "description", "probe"))
    return Capability(
        id=_name(place, row, "id", ROW_ID),
        title=_text(place, row, "title"),
        description=_text(place, row, "description"),
        probe=_text(place, row, "probe"),
    )


def make_document(place: str, row: Row) -> Document:
    """Parse a row of documents.yaml."""
    check_keys(place, row, ("name", "file", "lines", "sha256", "sections"))
    return Document(
        name=_text(place, row, "name"),
        file=_text(place, row, "file"),
        lines=_line(place, row, "lines"),
        sha256=_name(place, row, "sha256", re.compile("[0-9a-f]{64}")),
        sections=_sections(place, row),
    )


def _text(place: str, row: Row, key: str) -> str:
    value = row[key]
    if not isinstance(value, str) or not value.strip():
        raise BookError(f"{place}: {key}: expected a text, found {value!r}")
    return value


def _line(place: str, row: Row, key: str = "line") -> int:
    value = row[key]
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BookError(f"{place}: {key}: expected a whole number from 1, found {value!r}")
    return value


def _one_of(place: str, row: Row, key: str, allowed: tuple[str, ...]) -> str:
    value = row[key]
    if value not in allowed:
        raise BookError(f"{place}: {key}: expected one of {', '.join(allowed)}, found {value!r}")
    return value


def _name(place: str, row: Row, key: str, shape: re.Pattern[str]) -> str:
    value = row[key]
    if not isinstance(value, str) or not shape.fullmatch(value):
        raise BookError(f"{place}: {key}: {value!r} does not look like {shape.pattern}")
    return value


def _strings(place: str, row: Row, key: str) -> tuple[str, ...]:
    value: Any = row[key]
    if not isinstance(value, list) or not all(
        isinstance(part, str) for part in cast(list[Any], value)
    ):
        raise BookError(f"{place}: {key}: expected a list of texts, found {value!r}")
    return tuple(cast(list[str], value))


def _names(place: str, row: Row, key: str, shape: re.Pattern[str]) -> tuple[str, ...]:
    names = _strings(place, row, key)
    for name in names:
        if not shape.fullmatch(name):
            raise BookError(f"{place}: {key}: {name!r} does not look like {shape.pattern}")
    if len(set(names)) != len(names):
        raise BookError(f"{place}: {key}: a name is given twice")
    return names


def _sections(place: str, row: Row) -> tuple[tuple[int, str], ...]:
    value: Any = row["sections"]
    if not isinstance(value, dict):
        raise BookError(f"{place}: sections: expected a mapping of lines to headings")
    sections = tuple(cast(dict[Any, Any], value).items())
    for line, heading in sections:
        if not isinstance(line, int) or not isinstance(heading, str):
            raise BookError(f"{place}: sections: {line!r}: {heading!r} is not a line and a heading")
    if list(sections) != sorted(sections):
        raise BookError(f"{place}: sections: not in the order of their lines")
    return cast(tuple[tuple[int, str], ...], sections)


def _reference(place: str, row: Row, key: str) -> str | None:
    if row[key] is None:
        return None
    return _name(place, row, key, REF)
