"""Run-time type checks of a caller's values."""

import os
from collections.abc import Mapping, Sequence
from typing import TypeGuard

StrPath = str | os.PathLike[str]


def is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    """Return whether `value` is a mapping."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Return whether `value` is a sequence other than a string or bytes."""
    return isinstance(value, Sequence) and not isinstance(
        value, str | bytes | bytearray | memoryview
    )


def is_path(value: object) -> TypeGuard[StrPath]:
    """Return whether `value` is a string or an `os.PathLike`."""
    return isinstance(value, str | os.PathLike)


def brief(value: object) -> str:
    """Return the `repr` of a value for an error message, cut to 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
