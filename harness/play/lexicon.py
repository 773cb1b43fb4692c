"""Protocol names and payload checks for the scenario loader, taken from the specification."""

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any, cast, get_args

from harness.client.target.overrides import SCENARIO_PLACEHOLDERS
from harness.protocol.spec.book import Book
from harness.protocol.spec.errors import SchemaError, show_value
from harness.protocol.spec.listed import Unlisted, unlisted_members
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.members import shape_of
from harness.protocol.values import MISSING
from harness.protocol.wire.error import AgentErrorInfo
from harness.protocol.wire.item import MessagePhase
from harness.protocol.wire.thread import ActiveFlag
from harness.scenario.explain import yaml11_hint
from harness.scenario.lexicon import Kind, Mistake, Side
from harness.scenario.words import ITEM, protocol_words
from harness.scenario.yaml12 import Loc
from harness.trace.nearest import did_you_mean, nearest

# An unlisted member is a server's own, unless it is this similar to a listed one.
MIN_SIMILARITY = 0.75
# Likewise a value, where the specification lists none.
MIN_SIMILARITY_OF_VALUES = 0.85
MIN_BEGIN = 4


class BookLexicon:
    """Protocol names and payload checks of one book."""

    placeholders = SCENARIO_PLACEHOLDERS

    def __init__(self, book: Book) -> None:
        self._book = book
        self._names = {
            kind: frozenset(protocol_words(kind, book.schemas)) for kind in get_args(Kind)
        }

    def names(self, kind: Kind) -> Collection[str]:
        """Return the protocol's names of this kind."""
        return self._names[kind]

    def faults(self) -> Collection[str]:
        """Return the names of the session's live faults, which are imported only when needed."""
        from harness.play.scenario_faults import live_names

        return live_names()

    def mistakes_in(self, method: str, side: Side, value: Any, *, complete: bool) -> list[Mistake]:
        """Return the mistakes in the params or result of a message; [] without a schema."""
        reference = self._book.reference(method, side)
        if reference is None:
            return []
        mistakes = self._find_mistakes(reference, value, complete=complete)
        for path in self._book.paths_of("AgentErrorInfo", method, side):
            name = _value_at(value, path)
            near = nearest(name, _INFOS, cutoff=MIN_SIMILARITY) if isinstance(name, str) else ""
            if near and name not in _INFOS:
                mistakes.append(Mistake(path, f"found {name!r}; did you mean {near!r}?", name))
        return mistakes

    def members(self, method: str, side: Side) -> Collection[str]:
        """Return the listed members of a message's params or result; none without a schema."""
        reference = self._book.reference(method, side)
        if reference is None:
            return ()
        return [member.name for member in shape_of(self._book.schemas, reference).members]

    def mistakes_in_item(self, members: dict[str, Any]) -> list[Mistake]:
        """Return the mistakes in some members of an item; [] for an unknown type."""
        is_known = members["type"] in self._names["item type"]
        return self._find_mistakes(ITEM, members, complete=False) if is_known else []

    def _find_mistakes(self, reference: str, value: Any, *, complete: bool) -> list[Mistake]:
        schemas = self._book.schemas
        keys = [*filter(None, map(_misspelt_member, unlisted_members(schemas, reference, value)))]
        keys += _near_misses_of_open_values(value)
        if schemas.is_valid(reference, value):
            return keys
        # A misspelt key is also a missing one: the misspelling is the mistake.
        misspelt = {wrong.path[:-1] for wrong in keys}
        values = _value_mistakes(schemas.errors(reference, value), value, complete=complete)
        return keys + [
            wrong
            for wrong in values
            if wrong.value is not MISSING or wrong.path[:-1] not in misspelt
        ]


# Members with a known set of values that the specification leaves open to others.
_OPEN_VALUES: dict[str, tuple[str, ...]] = {
    "phase": get_args(MessagePhase),
    "activeFlags": get_args(ActiveFlag),
}
_INFOS: tuple[str, ...] = get_args(get_args(AgentErrorInfo)[0]) or get_args(AgentErrorInfo)


@cache
def protocol_lexicon() -> BookLexicon:
    """Return the lexicon of the installed book; cached for the process."""
    return BookLexicon(load_book())


def _misspelt_member(member: Unlisted) -> Mistake | None:
    name = str(member.path[-1])
    near = nearest(name, member.listed_names, cutoff=MIN_SIMILARITY)
    if not near:
        return None
    return Mistake(member.path, f"unknown member {name!r}; did you mean {near!r}?", name, key=True)


def _near_misses_of_open_values(value: Any, path: Loc = ()) -> Iterator[Mistake]:
    """Yield a mistake for each value that is similar to a known one, or a prefix of it."""
    if isinstance(value, dict | list):
        members = cast("dict[str, Any] | list[Any]", value)
        for step, member in members.items() if isinstance(members, dict) else enumerate(members):
            yield from _near_misses_of_open_values(member, (*path, step))
    name = next((step for step in reversed(path) if isinstance(step, str)), "")
    known = _OPEN_VALUES.get(name, ())
    if isinstance(value, str) and known and value not in known:
        begun = [word for word in known if len(value) >= MIN_BEGIN and word.startswith(value)]
        near = begun[0] if begun else nearest(value, known, cutoff=MIN_SIMILARITY_OF_VALUES)
        if near:
            yield Mistake(path, f"found {value!r}; did you mean {near!r}?", value)


def _value_mistakes(errors: list[SchemaError], value: Any, *, complete: bool) -> Iterator[Mistake]:
    for error in errors:
        member = _value_at(value, error.path)
        if member is not MISSING:
            yield Mistake(error.path, _describe_error(error, member), member)
        elif complete:
            yield Mistake(error.path, f"the member {error.path[-1]!r} is missing", MISSING)


def _describe_error(error: SchemaError, value: Any) -> str:
    if not isinstance(value, str):
        return f"found {show_value(value)}; expected {error.expected}"
    near = did_you_mean(value, error.expected.removeprefix("one of ").split(", "))
    if "a boolean" in error.expected:
        near = yaml11_hint(value)
    return f"found {value[:80]!r}; expected {error.expected}{near}"


def _value_at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value
