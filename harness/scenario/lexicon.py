"""The words of the protocol, as the loader is given them.

Who loads a scenario to play it makes one from the judge's book (suite); the loader alone knows
none.
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
class Wrong:
    """A mistake within a value: at `path`, with its `key` or its value, which is `found`."""

    path: Loc
    message: str
    found: Any
    key: bool = False


class Lexicon(Protocol):
    """The words of one protocol."""

    @property
    def placeholders(self) -> Collection[str]:
        """Return the names that may stand in braces in client steps."""
        ...

    def names(self, kind: Kind) -> Collection[str]:
        """The names of that kind."""
        ...

    def faults(self) -> Collection[str]:
        """The names of faults that can be put between a client and a server."""
        ...

    def wrongs(self, method: str, side: Side, value: Any, *, whole: bool) -> list[Wrong]:
        """Return the mistakes in the params or the result of a message, in its own order.

        With `whole` all must be there that has to be. Nothing is wrong with what is not known.
        """
        ...

    def wrongs_of_item(self, members: dict[str, Any]) -> list[Wrong]:
        """Return the mistakes in some members of an item, its `type` among them."""
        ...
