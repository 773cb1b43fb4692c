"""Checks of a caller's values: types have no say at run time."""

import os
from collections.abc import Mapping, Sequence
from typing import TypeGuard

StrPath = str | os.PathLike[str]


def is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    """Return whether it is a mapping."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Return whether it is a sequence whose elements are meant, and not a text."""
    return isinstance(value, Sequence) and not isinstance(
        value, str | bytes | bytearray | memoryview
    )


def is_path(value: object) -> TypeGuard[StrPath]:
    """Return whether it is a path."""
    return isinstance(value, str | os.PathLike)


def brief(value: object) -> str:
    """Return a value as errors show it."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
