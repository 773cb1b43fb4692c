"""Values that the server gave and the client said again: names for them in a scenario.

A name is given only where it is used.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from harness.protocol.values import arr, obj

# Members whose texts a client says again, as it got them.
_IDS: Final = ("id", "threadId", "turnId", "itemId", "reviewThreadId", "nextCursor", "path")
# Numbers and shorter texts are no ids that one could know again.
_MIN_ID_CHARACTERS: Final = 3
_MAX_PATH_DEPTH: Final = 6


class References:
    """The values that came back so far, and where each of them stands."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Callable[[], str], str]] = {}

    def learn(self, alias: Callable[[], str], value: Any) -> None:
        """Note the ids of what came back; `alias` gives its name, once that is needed."""
        for path, found in _ids(value, ()):
            self._known.setdefault(found, (alias, ".".join(path)))

    def knows(self, value: str) -> bool:
        """Return whether a text is a value that came back."""
        return value in self._known

    def named(self, value: Any) -> Any:
        """A value with names in the place of what came back."""
        if isinstance(value, str):
            found = self._known.get(value)
            if found is not None:
                return f"${found[0]()}.{found[1]}"
            return f"${value}" if value.startswith("$") else value
        if isinstance(value, list):
            return [self.named(one) for one in arr(value)]  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, dict):
            return {key: self.named(one) for key, one in obj(value).items()}  # pyright: ignore[reportUnknownArgumentType]
        return value


def _ids(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if len(path) > _MAX_PATH_DEPTH:
        return
    if isinstance(value, list):
        for number, one in enumerate(arr(value)):  # pyright: ignore[reportUnknownArgumentType]
            yield from _ids(one, (*path, str(number)))
    elif isinstance(value, dict):
        for key, one in obj(value).items():  # pyright: ignore[reportUnknownArgumentType]
            if isinstance(one, str) and key in _IDS and len(one) >= _MIN_ID_CHARACTERS:
                yield (*path, key), one
            elif "." not in key and not key.startswith("$"):
                yield from _ids(one, (*path, key))
