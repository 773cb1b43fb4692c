"""Queries of a list to the index.

Source: session-protocol "thread/list".
"""

from dataclasses import dataclass
from typing import Any, Literal

Sort = Literal["created", "updated"]


@dataclass(frozen=True, slots=True)
class Query:
    """Newest first by `sort`. None, and an empty tuple, filter nothing.

    `cwd` is compared whole; `term` is searched for in name and preview, case counts.
    """

    sort: Sort = "created"
    limit: int = 25
    archived: bool = False
    providers: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    cwd: str | None = None
    term: str | None = None

    def filters(self) -> tuple[Any, ...]:
        """Return the filters in one form: the order of words in a list means nothing."""
        providers, sources = sorted(set(self.providers)), sorted(set(self.sources))
        return self.archived, providers, sources, self.cwd, self.term or None
