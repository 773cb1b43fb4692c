"""References to values of the server that the client sent back.

A result gets an alias only if one of its values is used.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from harness.protocol.values import arr, obj

# Members whose values a client sends back unchanged.
_IDS: Final = ("id", "threadId", "turnId", "itemId", "reviewThreadId", "nextCursor", "path")
# Numbers and shorter texts are not unique enough to be ids.
_MIN_ID_CHARACTERS: Final = 3
_MAX_PATH_DEPTH: Final = 6


class References:
    """Values received so far, each with the path of a reference to it."""

    def __init__(self) -> None:
        self._sources: dict[str, tuple[Callable[[], str], str]] = {}

    def add_values(self, alias: Callable[[], str], value: Any) -> None:
        """Add the ids in a result; `alias` is called for the result's alias when one is used."""
        for path, identifier in _ids(value, ()):
            self._sources.setdefault(identifier, (alias, ".".join(path)))

    def knows(self, value: str) -> bool:
        """Return whether this text is a value received earlier."""
        return value in self._sources

    def with_names(self, value: Any) -> Any:
        """Return a copy with references for values received earlier; other `$` are escaped."""
        if isinstance(value, str):
            source = self._sources.get(value)
            if source is not None:
                return f"${source[0]()}.{source[1]}"
            return f"${value}" if value.startswith("$") else value
        if isinstance(value, list):
            return [self.with_names(inner) for inner in arr(value)]  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, dict):
            return {key: self.with_names(inner) for key, inner in obj(value).items()}  # pyright: ignore[reportUnknownArgumentType]
        return value


def _ids(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if len(path) > _MAX_PATH_DEPTH:
        return
    if isinstance(value, list):
        for number, inner in enumerate(arr(value)):  # pyright: ignore[reportUnknownArgumentType]
            yield from _ids(inner, (*path, str(number)))
    elif isinstance(value, dict):
        for key, inner in obj(value).items():  # pyright: ignore[reportUnknownArgumentType]
            if isinstance(inner, str) and key in _IDS and len(inner) >= _MIN_ID_CHARACTERS:
                yield (*path, key), inner
            elif "." not in key and not key.startswith("$"):
                yield from _ids(inner, (*path, key))
