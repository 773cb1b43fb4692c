"""Queries of a list to the index.

Source: session-protocol "thread/list".
"""

from dataclasses import dataclass
from typing import Any, Literal

Sort = Literal["created", "updated"]


@dataclass(frozen=True, slots=True)
class Query:
    """Filters and order of a thread list, newest first by the time that `sort` names.

    None and an empty tuple switch a filter off. `cwd` must match exactly; `term` is a
    case-sensitive substring of the name or the preview.
    """

    sort: Sort = "created"
    limit: int = 25
    archived: bool = False
    providers: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    cwd: str | None = None
    term: str | None = None

    def filters(self) -> tuple[Any, ...]:
        """Return the filters in a normal form, with lists sorted and without duplicates."""
        providers, sources = sorted(set(self.providers)), sorted(set(self.sources))
        return self.archived, providers, sources, self.cwd, self.term or None
