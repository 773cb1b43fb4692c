"""The words of the protocol for the loader of scenarios: read off the book and the method table."""

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any, get_args

from harness.client.target.overrides import SCENARIO_PLACEHOLDERS
from harness.protocol.spec.book import Book
from harness.protocol.spec.errors import SchemaError, show_value
from harness.protocol.spec.listed import Unlisted, unlisted
from harness.protocol.spec.loading import load_book
from harness.protocol.values import MISSING
from harness.protocol.wire.error import AgentErrorInfo
from harness.scenario.explain import yaml11
from harness.scenario.lexicon import Kind, Side, Wrong
from harness.scenario.words import ITEM, words
from harness.trace.nearest import hint, nearest

# A member that no schema lists is a server's own, unless it is nearly one that is listed.
MIN_SIMILARITY = 0.75


class BookLexicon:
    """The lexicon of the judge's book."""

    placeholders = SCENARIO_PLACEHOLDERS

    def __init__(self, book: Book) -> None:
        self._book = book
        self._names = {kind: frozenset(words(kind, book.schemas)) for kind in get_args(Kind)}

    def names(self, kind: Kind) -> Collection[str]:
        """The names of that kind."""
        return self._names[kind]

    def faults(self) -> Collection[str]:
        """The names of live faults of the session; imported only for a scenario that has any."""
        from harness.play.written_faults import live_names

        return live_names()

    def wrongs(self, method: str, side: Side, value: Any, *, whole: bool) -> list[Wrong]:
        """Return the mistakes in the params or the result of a message."""
        reference = self._book.reference(method, side)
        if reference is None:
            return []
        found = self._of(reference, value, complete=whole)
        for path in self._book.paths_of("AgentErrorInfo", method, side):
            name = _value_at(value, path)
            near = nearest(name, _INFOS, cutoff=MIN_SIMILARITY) if isinstance(name, str) else ""
            if near and name not in _INFOS:
                found.append(Wrong(path, f"found {name!r}; did you mean {near!r}?", name))
        return found

    def wrongs_of_item(self, members: dict[str, Any]) -> list[Wrong]:
        """Return the mistakes in some members of an item."""
        known = members["type"] in self._names["item type"]
        return self._of(ITEM, members, complete=False) if known else []

    def _of(self, reference: str, value: Any, *, complete: bool) -> list[Wrong]:
        schemas = self._book.schemas
        keys = [*filter(None, map(_misspelt_member, unlisted(schemas, reference, value)))]
        if schemas.is_valid(reference, value):
            return keys
        # A misspelt key is also a missing one: the misspelling is the mistake.
        misspelt = {wrong.path[:-1] for wrong in keys}
        values = _values(schemas.errors(reference, value), value, complete=complete)
        return keys + [
            wrong
            for wrong in values
            if wrong.found is not MISSING or wrong.path[:-1] not in misspelt
        ]


_INFOS: tuple[str, ...] = get_args(get_args(AgentErrorInfo)[0]) or get_args(AgentErrorInfo)


@cache
def protocol_lexicon() -> BookLexicon:
    """The lexicon of this package's book; made once in a process."""
    return BookLexicon(load_book())


def _misspelt_member(member: Unlisted) -> Wrong | None:
    name = str(member.path[-1])
    near = nearest(name, member.listed, cutoff=MIN_SIMILARITY)
    if not near:
        return None
    return Wrong(member.path, f"unknown member {name!r}; did you mean {near!r}?", name, key=True)


def _values(errors: list[SchemaError], value: Any, *, complete: bool) -> Iterator[Wrong]:
    for error in errors:
        found = _value_at(value, error.path)
        if found is not MISSING:
            yield Wrong(error.path, _sentence(error, found), found)
        elif complete:
            yield Wrong(error.path, f"the member {error.path[-1]!r} is missing", MISSING)


def _sentence(error: SchemaError, value: Any) -> str:
    if not isinstance(value, str):
        return f"found {show_value(value)}; expected {error.expected}"
    near = hint(value, error.expected.removeprefix("one of ").split(", "))
    if "a boolean" in error.expected:
        near = yaml11(value)
    return f"found {value[:80]!r}; expected {error.expected}{near}"


def _value_at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value
