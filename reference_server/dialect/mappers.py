"""Functions that change a JSON value: those of objects and lists by their members, and the steps.

They are made once for each type and method; what a row cannot concern is not looked at.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

from harness.protocol.dialects.table import MemberRow
from reference_server.dialect.memory import Memory
from reference_server.dialect.placeholders import Conditions, Constant, Fill, filler, split_words

Mapper = Callable[[Any], Any]
"""Returns a JSON value in the other dialect; objects are changed in place."""

_Value = dict[str, Any] | list[Any] | str | float | None
"""Any JSON value."""

Step = Callable[[dict[str, Any]], None]
"""Changes an object."""


def join_words(words: Any) -> Any:
    """Return a command line of words; any other value unchanged."""
    if not isinstance(words, list):
        return words
    texts = cast("list[Any]", words)
    return shlex.join(texts) if all(isinstance(text, str) for text in texts) else texts


FORMS: Mapping[str, tuple[Mapper, Mapper]] = {"command-line": (join_words, split_words)}
"""The forms of `[[shape]]` rows: from the text's value, and back to it."""


def for_object(
    ids: tuple[str, ...],
    change_id: Callable[[str], str],
    inner: tuple[tuple[str, Mapper], ...],
    before: tuple[Step, ...],
    after: tuple[Step, ...],
) -> Mapper | None:
    """Return a mapper that changes the members `ids` and maps `inner`; None if it does nothing.

    It takes the steps `before` first, and then the steps `after`.
    """
    if not ids and not before and not inner and not after:
        return None
    change_ids = _for_texts(change_id)

    def map_object(members: _Value) -> Any:
        if not isinstance(members, dict):
            return members
        for step in before:
            step(members)
        for name in ids:
            if name in members:
                text = members[name]
                members[name] = change_id(text) if isinstance(text, str) else change_ids(text)
        for name, mapper in inner:
            if name in members:
                members[name] = mapper(members[name])
        for step in after:
            step(members)
        return members

    return map_object


def _for_texts(change: Callable[[str], str]) -> Mapper:
    """Return a mapper of texts, and of lists of them."""

    def map_text(value: Any) -> Any:
        if isinstance(value, str):
            return change(value)
        if isinstance(value, list):
            return [map_text(element) for element in cast("list[Any]", value)]
        return value

    return map_text


def for_words(words: Sequence[tuple[Any, Any]]) -> Mapper:
    """Return a mapper of each word to the other of its pair; a word can be an object."""

    def map_word(value: Any) -> Any:
        for word, other in words:
            if value == word or (_key(word) is not None and _key(word) == _key(value)):
                return other
        return value

    return map_word


def _key(value: Any) -> str | None:
    """Return the key of an object of one member, which stands for a word; else None."""
    if isinstance(value, dict) and len(cast("dict[str, Any]", value)) == 1:
        return next(iter(cast("dict[str, Any]", value)))
    return None


def for_elements(mapper: Mapper) -> Mapper:
    """Return a mapper of lists whose elements are mapped."""

    def map_elements(elements: _Value) -> Any:
        if not isinstance(elements, list):
            return elements
        return [mapper(element) for element in elements]

    return map_elements


def for_tags(by_tag: Mapping[str, Mapper]) -> Mapper:
    """Return a mapper of objects by their `type`."""

    def map_tagged(members: _Value) -> Any:
        if not isinstance(members, dict):
            return members
        tag = members.get("type")
        mapper = by_tag.get(tag) if isinstance(tag, str) else None
        return members if mapper is None else mapper(members)

    return map_tagged


def drop_member(name: str, only_null: bool) -> Step:
    """Return a step that removes a member."""

    def drop(members: dict[str, Any]) -> None:
        if not only_null or members.get(name) is None:
            members.pop(name, None)

    return drop


def drop_unstored(memory: Memory) -> Step:
    """Return a step that removes the items of a turn that the release does not store."""

    def drop(turn: dict[str, Any]) -> None:
        items = turn.get("items")
        if isinstance(items, list) and items:
            kept = [item for item in cast("list[Any]", items) if not memory.is_unstored(item)]
            turn["items"] = kept

    return drop


def rename_member(name: str, other: str) -> Step:
    """Return a step that gives a member another name."""

    def rename(members: dict[str, Any]) -> None:
        if name in members:
            members[other] = members.pop(name)

    return rename


def add_members(rows: Sequence[tuple[str, Fill]]) -> Step:
    """Return a step that adds the members that an object lacks."""
    if all(isinstance(fill, Constant) for _, fill in rows):
        return _add_constants({name: fill({}) for name, fill in rows})

    if len(rows) == 1:
        return _add_one(*rows[0])

    def add(members: dict[str, Any]) -> None:
        for name, fill in rows:
            if name not in members:
                members[name] = fill(members)

    return add


def _add_one(name: str, fill: Fill) -> Step:
    def add(members: dict[str, Any]) -> None:
        if name not in members:
            members[name] = fill(members)

    return add


def _add_constants(constants: Mapping[str, Any]) -> Step:
    are_missing_in = constants.keys().isdisjoint

    def add(members: dict[str, Any]) -> None:
        if are_missing_in(members):
            members.update(constants)
            return
        for name, value in constants.items():
            members.setdefault(name, value)

    return add


def add_by_row(row: MemberRow, facts: Mapping[str, Any]) -> Step:
    """Return a step that adds or replaces a member where the conditions of its row hold."""
    name, replaces, fill = row.name, row.replaces, filler(row.value, facts)
    has_values = tester(row.where)
    conditions = Conditions.of_row(row.needs, row.unless, facts)

    def add(members: dict[str, Any]) -> None:
        if not replaces and name in members:
            return
        if has_values(members) and conditions.hold_for(members):
            members[name] = fill(members)

    return add


def tester(where: Mapping[str, Any]) -> Callable[[Any], bool]:
    """Return the test whether an object has the values of `where`, by paths of members."""
    tests = [(path.split("."), _test_of(value)) for path, value in where.items()]
    if not tests:
        return lambda members: True
    return lambda members: all(is_met(_member(members, path)) for path, is_met in tests)


def _test_of(pattern: Any) -> Callable[[Any], bool]:
    """Return the test of a value of `where`; a text with `*` is a pattern, with `!` excluded."""
    if isinstance(pattern, str) and pattern.startswith("!"):
        is_other = _test_of(pattern[1:])
        return lambda value: not is_other(value)
    if isinstance(pattern, str) and "*" in pattern:
        return lambda value: isinstance(value, str) and fnmatchcase(value, pattern)
    return lambda value: value == pattern


def _member(members: Any, path: Sequence[str]) -> Any:
    for name in path:
        members = cast("dict[str, Any]", members).get(name) if isinstance(members, dict) else None
    return members
