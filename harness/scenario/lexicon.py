"""The words of the protocol, as the loader needs them.

A caller that loads scenarios to play them makes a lexicon from the judge's book (suite); the
loader itself has none.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from harness.scenario.yaml12 import Loc

Kind = Literal[
    "request",
    "notification",
    "request of the server",
    "notification of the server",
    "item type",
]
Side = Literal["params", "result"]


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake within a value: at `path`, in its `key` or in its `value`."""

    path: Loc
    message: str
    value: Any
    key: bool = False


class Lexicon(Protocol):
    """The words of one protocol."""

    @property
    def placeholders(self) -> Collection[str]:
        """Return the names of placeholders in client steps."""
        ...

    def names(self, kind: Kind) -> Collection[str]:
        """Return the names of that kind."""
        ...

    def faults(self) -> Collection[str]:
        """Return the names of faults that can be put between a client and a server."""
        ...

    def mistakes_in(self, method: str, side: Side, value: Any, *, complete: bool) -> list[Mistake]:
        """Return the mistakes in the params or the result of a message, in its own order.

        With `complete` missing members are mistakes too. Unknown methods have no mistakes.
        """
        ...

    def members(self, method: str, side: Side) -> Collection[str]:
        """Return the members that the params or the result of a message list; none if not shown."""
        ...

    def mistakes_in_item(self, members: dict[str, Any]) -> list[Mistake]:
        """Return the mistakes in some members of an item, its `type` among them."""
        ...
