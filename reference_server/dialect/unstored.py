"""Items that the release tells and does not store, by id: they are missing when a turn is read.

The engine stores them, so a file of the home, `unstored-items`, keeps their ids for the next start:
one a line, the newest last. A home that cannot be written has them until the process ends.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any, Final

MAX_ITEMS: Final = 1000
"""Items that are remembered at once; the oldest are forgotten first."""
FILE: Final = "unstored-items"


class UnstoredItems:
    """Ids of items, in a file of the folder `home`; without one in memory only."""

    def __init__(self, home: Path | None = None) -> None:
        self._path = home and home / FILE
        self._ids: dict[Any, None] | None = None
        """None before the file was read."""

    def __contains__(self, item_id: Any) -> bool:
        return item_id in self._loaded_ids()

    def add(self, item_id: Any) -> None:
        """Remember an item, in the file too."""
        known = self._loaded_ids()
        if item_id in known:
            return
        known[item_id] = None
        while len(known) > MAX_ITEMS:
            del known[next(iter(known))]
        if self._path is not None:
            with suppress(OSError), self._path.open("a", encoding="utf-8") as file:
                file.write(f"{item_id}\n")

    def _loaded_ids(self) -> dict[Any, None]:
        if self._ids is None:
            self._ids = dict.fromkeys(self._read())
        return self._ids

    def _read(self) -> list[str]:
        """Return the ids of the file, and shorten it if it has more than are remembered."""
        if self._path is None:
            return []
        try:
            ids = self._path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return []
        if len(ids) > MAX_ITEMS:
            ids = ids[-MAX_ITEMS:]
            with suppress(OSError):
                self._path.write_text("".join(f"{item_id}\n" for item_id in ids), "utf-8")
        return ids
