"""Protocol names and payload checks that the loader takes as an argument.

Callers that play scenarios make one from the specification; this package makes none.
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
    """A mistake within a value: at `path`, in its key if `key`, else in its value."""

    path: Loc
    message: str
    value: Any
    key: bool = False


class Lexicon(Protocol):
    """Names and payload checks of one protocol."""

    @property
    def placeholders(self) -> Collection[str]:
        """Return the names of the placeholders that client steps may use."""
        ...

    def names(self, kind: Kind) -> Collection[str]:
        """Return the protocol's names of this kind."""
        ...

    def faults(self) -> Collection[str]:
        """Return the names of faults that can be put between a client and a server."""
        ...

    def mistakes_in(self, method: str, side: Side, value: Any, *, complete: bool) -> list[Mistake]:
        """Return the mistakes in the params or result of a message, in the value's order.

        With `complete` missing members are mistakes too. Unknown methods have no mistakes.
        """
        ...

    def members(self, method: str, side: Side) -> Collection[str]:
        """Return the known members of a message's params or result; none without a schema."""
        ...

    def mistakes_in_item(self, members: dict[str, Any]) -> list[Mistake]:
        """Return the mistakes in an item of which some members are given, `type` among them."""
        ...
