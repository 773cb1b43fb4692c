"""Base class of every mapping in a scenario file."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from harness.protocol.values import obj

Alias = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
Times = Annotated[int, Field(ge=1, le=100)] | Literal["until-turn-ends"]


class Strict(BaseModel):
    """A mapping in a scenario file: unknown keys are errors, values are never converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def single_key(value: Any) -> str | None:
    """Return the only key of a mapping, "text" for a text, None for any other value.

    It is the tag of a union's alternative.
    """
    if isinstance(value, str):
        return "text"
    if isinstance(value, BaseModel):
        return next(iter(type(value).model_fields), None)
    mapping = obj(value)
    return next(iter(mapping)) if len(mapping) == 1 else None
