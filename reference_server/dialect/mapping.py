"""Compiles a dialect's rows into a function for each message, by the types of its members.

The types are those of the wire models, walked once for each method: a message in which no row has
anything to say is not looked into.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from harness.protocol.dialects.table import Dialect, MemberRow
from harness.protocol.wire.base import WireModel, to_camel
from harness.protocol.wire.turn import Turn
from reference_server.dialect.ids import from_uuid, to_uuid
from reference_server.dialect.mappers import (
    FORMS,
    Mapper,
    Step,
    add_by_row,
    add_members,
    drop_member,
    drop_unstored,
    for_elements,
    for_object,
    for_tags,
    for_words,
    rename_member,
)
from reference_server.dialect.memory import Memory
from reference_server.dialect.placeholders import Constant, Fill, filler

_Made = TypeVar("_Made")


class Compiler:
    """Compiler of one direction; `outgoing` is from the text to the release.

    `facts` are the values of placeholders; they can change after this call.
    """

    def __init__(self, dialect: Dialect, facts: Mapping[str, Any], *, outgoing: bool) -> None:
        self._dialect = dialect
        self._facts = facts
        self._outgoing = outgoing
        self._models: dict[tuple[str, type[WireModel]], Mapper | None] = {}
        self._made: dict[Any, Any] = {}
        self._steps: dict[int, Step] = {}
        self._fills: dict[int, Fill] = {}
        """Steps and fillers of rows, by the identity of the row."""

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
        ids: list[str] = []
        inner: dict[str, Mapper] = {}
        for name, field in model.model_fields.items():
            alias = field.alias or to_camel(name)
            if self._is_id(model, alias):
                ids.append(alias)
            elif (mapper := self._member_mapper(model, name, alias, method)) is not None:
                inner[alias] = mapper
        # A renamed member has its text's name while its value is mapped.
        renames = self._renames(model)
        members = tuple(inner.items())
        if not self._outgoing:
            return self._made_once(for_object, tuple(ids), from_uuid, members, renames, ())
        added = self._additions(model.__name__, method)
        after = (*self._drops(model), *added, *renames)
        return self._made_once(for_object, tuple(ids), to_uuid, members, (), after)

    def _made_once(self, make: Callable[..., _Made], *arguments: Any) -> _Made:
        """Return `make(*arguments)`, made once: methods that share it find it in the CPU's cache.

        Between two messages the server does so much else that this costs more than the mapping.
        """
        key = (make, arguments)
        if key not in self._made:
            self._made[key] = make(*arguments)
        return self._made[key]

    def _is_id(self, model: type[WireModel], alias: str) -> bool:
        """Return whether a member is the id of a thread or turn, or a list of them."""
        places = {f"{model.__name__}.{alias}", f"*.{alias}"}
        return not places.isdisjoint(self._dialect.thread_ids | self._dialect.turn_ids)

    def _member_mapper(
        self, model: type[WireModel], name: str, alias: str, method: str
    ) -> Mapper | None:
        place = f"{model.__name__}.{alias}"
        for shape in self._dialect.shapes:
            if shape.at == place:
                return FORMS[shape.form][0 if self._outgoing else 1]
        words = [
            (row.text, filler(row.wire, self._facts)({}))
            for row in self._dialect.words
            if row.at == place and not (self._outgoing and row.is_of_clients)
        ]
        if words:
            return for_words(words if self._outgoing else [(wire, text) for text, wire in words])
        return self._of_annotation(model.model_fields[name].annotation, method)

    def _of_annotation(self, annotation: Any, method: str) -> Mapper | None:
        origin = get_origin(annotation)
        if origin is Annotated:
            return self._of_annotation(get_args(annotation)[0], method)
        if isinstance(annotation, type) and issubclass(annotation, WireModel):
            return self.of_model(annotation, method)
        if origin is list:
            element = self._of_annotation(get_args(annotation)[0], method)
            return None if element is None else for_elements(element)
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
            return for_tags(by_tag)
        return others[0] if others else None

    def _drops(self, model: type[WireModel]) -> Iterator[Step]:
        for row in self._dialect.drops:
            if row.type == model.__name__:
                yield self._made_once(drop_member, row.name, row.only_null)
        memory = self._facts.get("memory")
        if model is Turn and isinstance(memory, Memory):
            yield self._made_once(drop_unstored, memory)

    def _additions(self, type_name: str, method: str) -> Iterator[Step]:
        plain: list[tuple[str, Fill]] = []
        added: set[str] = set()
        for row in self._dialect.members:
            if type_name not in row.types or (row.methods and method not in row.methods):
                continue
            if row.name in added and not row.replaces:
                # An earlier row has added it in any case.
                continue
            if row.replaces or row.where or row.needs or row.unless:
                # The order of rows is kept: a value can be made from a member of an earlier row.
                yield from self._add_all(plain)
                plain = []
                yield self._step_of_row(row)
            else:
                added.add(row.name)
                plain.append((row.name, self._fill_of_row(row)))
        yield from self._add_all(plain)

    def _step_of_row(self, row: MemberRow) -> Step:
        if id(row) not in self._steps:
            self._steps[id(row)] = add_by_row(row, self._facts)
        return self._steps[id(row)]

    def _fill_of_row(self, row: MemberRow) -> Fill:
        if id(row) not in self._fills:
            self._fills[id(row)] = filler(row.value, self._facts)
        return self._fills[id(row)]

    def _add_all(self, rows: Sequence[tuple[str, Fill]]) -> Iterator[Step]:
        """Yield the steps that add members in this order; neighbours with constants make one."""
        for _, group in groupby(rows, lambda row: isinstance(row[1], Constant)):
            yield self._made_once(add_members, tuple(group))

    def _renames(self, model: type[WireModel]) -> tuple[Step, ...]:
        names = [
            (row.name, row.wire) if self._outgoing else (row.wire, row.name)
            for row in self._dialect.renames
            if row.type == model.__name__
        ]
        return tuple(self._made_once(rename_member, *pair) for pair in names)


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
