"""Compiles a dialect's rows into a function for each message, by the types of its members.

The types are those of the wire models, walked once for each method: a message in which no row has
anything to say is not looked into.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from harness.protocol.dialects.table import Dialect, MemberRow
from harness.protocol.wire.base import WireModel, to_camel
from harness.protocol.wire.turn import Turn
from reference_server.dialect.ids import from_uuid, to_uuid
from reference_server.dialect.memory import Memory
from reference_server.dialect.placeholders import Fill, filler, has_value, split_words

Mapper = Callable[[Any], Any]
"""Returns a JSON value in the other dialect; objects are changed in place."""

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


class Compiler:
    """Compiler of one direction; `outgoing` is from the text to the release.

    `facts` are the values of placeholders; they can change after this call.
    """

    def __init__(self, dialect: Dialect, facts: Mapping[str, Any], *, outgoing: bool) -> None:
        self._dialect = dialect
        self._facts = facts
        self._outgoing = outgoing
        self._models: dict[tuple[str, type[WireModel]], Mapper | None] = {}

    def of_model(self, model: type[WireModel], method: str) -> Mapper | None:
        """Return the function for objects of a wire model in messages of a method, or None."""
        key = (method, model)
        if key not in self._models:
            self._models[key] = self._object_mapper(model, method)
        return self._models[key]

    def envelope(self, method: str) -> list[Step]:
        """Return the steps for the message around the params of a notification."""
        return list(self._additions("Notification", method))

    def _object_mapper(self, model: type[WireModel], method: str) -> Mapper | None:
        names = {name: field.alias or to_camel(name) for name, field in model.model_fields.items()}
        inner = {
            alias: mapper
            for name, alias in names.items()
            if (mapper := self._member_mapper(model, name, alias, method)) is not None
        }
        # A renamed member has its text's name while its value is mapped.
        renames = self._renames(model)
        if not self._outgoing:
            return _object(renames, inner, [])
        added = self._additions(model.__name__, method)
        return _object([], inner, [*self._drops(model), *added, *renames])

    def _member_mapper(
        self, model: type[WireModel], name: str, alias: str, method: str
    ) -> Mapper | None:
        places = (f"{model.__name__}.{alias}", f"*.{alias}")
        if any(place in self._dialect.thread_ids for place in places) or any(
            place in self._dialect.turn_ids for place in places
        ):
            return _for_texts(to_uuid if self._outgoing else from_uuid)
        for shape in self._dialect.shapes:
            if shape.at == places[0]:
                return FORMS[shape.form][0 if self._outgoing else 1]
        words = [
            (row.text, filler(row.wire, self._facts)({}))
            for row in self._dialect.words
            if row.at == places[0] and not (self._outgoing and row.is_of_clients)
        ]
        if words:
            return _for_words(words if self._outgoing else [(wire, text) for text, wire in words])
        return self._of_annotation(model.model_fields[name].annotation, method)

    def _of_annotation(self, annotation: Any, method: str) -> Mapper | None:
        origin = get_origin(annotation)
        if origin is Annotated:
            return self._of_annotation(get_args(annotation)[0], method)
        if isinstance(annotation, type) and issubclass(annotation, WireModel):
            return self.of_model(annotation, method)
        if origin is list:
            element = self._of_annotation(get_args(annotation)[0], method)
            return None if element is None else _for_elements(element)
        if origin in (Union, UnionType):
            return self._of_union(get_args(annotation), method)
        return None

    def _of_union(self, members: tuple[Any, ...], method: str) -> Mapper | None:
        by_tag: dict[str, Mapper] = {}
        others: list[Mapper] = []
        for member in members:
            mapper = self._of_annotation(member, method)
            if mapper is None:
                continue
            tag = _tag_of(member)
            if tag is None:
                others.append(mapper)
            else:
                by_tag[tag] = mapper
        if by_tag:
            return _for_tags(by_tag)
        return others[0] if others else None

    def _drops(self, model: type[WireModel]) -> Iterator[Step]:
        for row in self._dialect.drops:
            if row.type == model.__name__:
                yield _drop(row.name, only_null=row.only_null)
        memory = self._facts.get("memory")
        if model is Turn and isinstance(memory, Memory):
            yield _drop_unstored(memory)

    def _additions(self, type_name: str, method: str) -> Iterator[Step]:
        plain: list[tuple[str, Fill]] = []
        for row in self._dialect.members:
            if type_name not in row.types or (row.methods and method not in row.methods):
                continue
            if row.replaces or row.where or row.needs or row.unless:
                # The order of rows is kept: a value can be made from a member of an earlier row.
                yield from [_add_plain(plain)] if plain else []
                plain = []
                yield _add(row, self._facts)
            else:
                plain.append((row.name, filler(row.value, self._facts)))
        yield from [_add_plain(plain)] if plain else []

    def _renames(self, model: type[WireModel]) -> list[Step]:
        rows = [row for row in self._dialect.renames if row.type == model.__name__]
        if self._outgoing:
            return [_rename(row.name, row.wire) for row in rows]
        return [_rename(row.wire, row.name) for row in rows]


def _tag_of(member: Any) -> str | None:
    """Return the `type` of the objects of a union's member, None if it has none."""
    field = (
        member.model_fields.get("type")
        if isinstance(member, type) and issubclass(member, WireModel)
        else None
    )
    if field is None or get_origin(field.annotation) is not Literal:
        return None
    return get_args(field.annotation)[0]


def _object(before: list[Step], inner: Mapping[str, Mapper], after: list[Step]) -> Mapper | None:
    if not before and not inner and not after:
        return None

    def map_object(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        members = cast("dict[str, Any]", value)
        for step in before:
            step(members)
        for name, mapper in inner.items():
            if name in members:
                members[name] = mapper(members[name])
        for step in after:
            step(members)
        return members

    return map_object


def _for_texts(change: Callable[[str], str]) -> Mapper:
    def map_text(value: Any) -> Any:
        if isinstance(value, str):
            return change(value)
        if isinstance(value, list):
            return [map_text(element) for element in cast("list[Any]", value)]
        return value

    return map_text


def _for_words(words: list[tuple[Any, Any]]) -> Mapper:
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


def _for_elements(mapper: Mapper) -> Mapper:
    def map_elements(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [mapper(element) for element in cast("list[Any]", value)]

    return map_elements


def _for_tags(by_tag: Mapping[str, Mapper]) -> Mapper:
    def map_tagged(value: Any) -> Any:
        tag = cast("dict[str, Any]", value).get("type") if isinstance(value, dict) else None
        mapper = by_tag.get(tag) if isinstance(tag, str) else None
        return cast("Any", value) if mapper is None else mapper(value)

    return map_tagged


def _drop(name: str, *, only_null: bool) -> Step:
    def drop(members: dict[str, Any]) -> None:
        if not only_null or members.get(name) is None:
            members.pop(name, None)

    return drop


def _drop_unstored(memory: Memory) -> Step:
    """Return a step that removes the items of a turn that the release does not store."""

    def drop(turn: dict[str, Any]) -> None:
        items = turn.get("items")
        if isinstance(items, list) and items:
            kept = [item for item in cast("list[Any]", items) if not memory.is_unstored(item)]
            turn["items"] = kept

    return drop


def _rename(name: str, other: str) -> Step:
    def rename(members: dict[str, Any]) -> None:
        if name in members:
            members[other] = members.pop(name)

    return rename


def _add_plain(rows: list[tuple[str, Fill]]) -> Step:
    """Return a step for rows without conditions: one call for all of them."""

    def add(members: dict[str, Any]) -> None:
        for name, fill in rows:
            if name not in members:
                members[name] = fill(members)

    return add


def _add(row: MemberRow, facts: Mapping[str, Any]) -> Step:
    fill = filler(row.value, facts)
    where = [(name.split("."), value) for name, value in row.where.items()]
    needs = [filler(text, facts) for text in row.needs]
    unless = [filler(text, facts) for text in row.unless]

    def add(members: dict[str, Any]) -> None:
        if not row.replaces and row.name in members:
            return
        if any(_member(members, path) != value for path, value in where):
            return
        if not all(has_value(one(members)) for one in needs):
            return
        if not any(has_value(one(members)) for one in unless):
            members[row.name] = fill(members)

    return add


def _member(members: Any, path: list[str]) -> Any:
    for name in path:
        members = cast("dict[str, Any]", members).get(name) if isinstance(members, dict) else None
    return members
