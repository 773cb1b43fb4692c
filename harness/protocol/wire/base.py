"""The base of every wire model, which tells a missing member from null.

No message of the protocol is defined here.

**Missing and null.** A field whose default is None may be absent: it is written only when it was
given a value, and giving it None writes null. Every other field (no default, or a default that is
not None, like a `type` tag) is always written. Reading: `model_fields_set` has a field exactly
when the peer sent it, so null and missing stay apart on that side too.

**Composing and reading.** A message of a peer is validated (`parse`). A message that our own code
composes is not, since pyright has checked its types: building the validators and serializers of
messages that are only written would take a tenth of the CPU of a short session.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, get_args

from pydantic import BaseModel, ConfigDict, model_validator

Json = Any
"""A JSON value whose shape the protocol leaves open."""

OpenObject = dict[str, Any]
"""A JSON object whose members the protocol leaves open.

If this project defines members for such an object, the field takes its model or else any object
(`McpToolResult | OpenObject`), so that the objects of other peers are read too.
"""

Number = int | float
"""A JSON number; a whole one stays whole."""


def to_camel(name: str) -> str:
    """Return the wire name of a field, ten times as fast as the function of pydantic."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


class WireModel(BaseModel):
    """One JSON object on the wire: strict types, camelCase names, unknown fields ignored.

    The validators are built when a value is first read, since a process reads few of all the
    models. No model may contain itself.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        strict=True,
        extra="ignore",
        defer_build=True,
    )

    always_written: ClassVar[frozenset[str]] = frozenset()
    """Names of the fields that have a default and are nevertheless written."""
    _defaults: ClassVar[dict[str, Any]] = {}
    """All fields in order; the default of a required one is meaningless."""
    _factories: ClassVar[dict[str, Callable[..., Any]]] = {}
    _aliases: ClassVar[dict[str, str]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Collect the fields' defaults and names once per class."""
        fields = cls.model_fields
        cls._defaults = {name: field.default for name, field in fields.items()}
        cls._factories = {
            name: field.default_factory
            for name, field in fields.items()
            if field.default_factory is not None
        }
        cls._aliases = {name: field.alias or name for name, field in fields.items()}
        cls.always_written = frozenset(
            name
            for name, default in cls._defaults.items()
            if name in cls._factories or (default is not None and not fields[name].is_required())
        )

    if not TYPE_CHECKING:
        # A declared signature would hide the one of the fields from pyright.

        def __init__(self, /, **fields: Any) -> None:
            """Compose a message from fields by Python name, without validation."""
            cls = type(self)
            values = {**cls._defaults, **fields}
            for name, value in fields.items():
                kind = type(value)
                if kind is list or kind is dict:
                    # The caller may change its own list or dict afterwards.
                    values[name] = value.copy()
            if cls._factories:
                for name, factory in cls._factories.items():
                    if name not in fields:
                        values[name] = factory()
            _put(self, "__dict__", values)
            _put(self, "__pydantic_fields_set__", {*fields, *cls.always_written})
            _put(self, "__pydantic_extra__", None)
            _put(self, "__pydantic_private__", None)

        # So pydantic, when it validates, skips this `__init__` as it skips its own.
        __init__.__pydantic_base_init__ = True

    def model_post_init(self, context: Any, /) -> None:
        """Mark the constant fields as set, so that leaving out unset fields keeps them."""
        self.__pydantic_fields_set__.update(self.always_written)

    @classmethod
    def model_rebuild(
        cls,
        *,
        force: bool = False,
        raise_errors: bool = True,
        _parent_namespace_depth: int = 2,
        _types_namespace: Mapping[str, Any] | None = None,
    ) -> bool | None:
        """Build the validators, those of the models inside first.

        pydantic calls this on first use. It would work out the inner models anew for every message
        around them; as ten messages hold the union of all items, reusing them makes the first turn
        of a process 30 ms faster (of 58).
        """
        if not cls.__pydantic_complete__:
            for field in cls.model_fields.values():
                for model in _models_in(field.annotation):
                    if not model.__pydantic_complete__:
                        model.model_rebuild()
        return super().model_rebuild(
            force=force,
            raise_errors=raise_errors,
            _parent_namespace_depth=_parent_namespace_depth + 1,
            _types_namespace=_types_namespace,
        )

    @classmethod
    def parse(cls, value: Json) -> Self:
        """Return the message in a JSON value, by wire names only (`threadId`, not `thread_id`).

        Raises pydantic.ValidationError if the value does not fit.
        """
        return cls.model_validate(value, by_alias=True, by_name=False)

    def plain(self) -> dict[str, Any]:
        """Return the message as plain JSON data under wire names."""
        aliases, written = self._aliases, self.__pydantic_fields_set__
        return {
            aliases[name]: value if type(value) in _ATOMS else _plain(value)
            for name, value in self.__dict__.items()
            if name in written
        }

    def encode(self) -> bytes:
        """Return the message as one line of UTF-8 JSON, without the newline."""
        try:
            return _encode(self.plain()).encode()
        except ValueError:
            # A number that JSON does not have, or half of a surrogate pair.
            return self.model_dump_json(by_alias=True, exclude_unset=True).encode()


class NullIsMissing(WireModel):
    """An object in which null counts as missing, so that the member has its default."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Json) -> Json:
        if not isinstance(value, dict):
            return value
        members = cast("dict[str, Any]", value)
        return {name: member for name, member in members.items() if member is not None}


_put = object.__setattr__
_ATOMS = frozenset({str, int, float, bool, type(None)})
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def _plain(value: Any) -> Json:
    """Return a value with every model in it as plain data."""
    if type(value) in _ATOMS:
        return value
    if isinstance(value, list):
        return [_plain(element) for element in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {name: _plain(element) for name, element in cast("dict[str, Any]", value).items()}
    return value.plain() if isinstance(value, WireModel) else value


def _models_in(annotation: Any) -> Iterator[type[WireModel]]:
    """Yield the models in a type, at any depth of unions and lists."""
    if isinstance(annotation, type) and issubclass(annotation, WireModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)
