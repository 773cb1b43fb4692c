"""Interface of a turn for compactions and reviews.

`turn` implements it, and `compaction` and `review` are written against it, so that neither side
imports the other.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from harness.protocol.wire.thread import TokenCounts
from reference_server.engine.items import ItemLog
from reference_server.engine.sampling import Sampled, Visibility
from reference_server.engine.tool_provider import TurnCalls
from reference_server.engine.usage import Meter
from reference_server.model.errors import ModelError
from reference_server.session.thread import LoadedThread

Fields = dict[str, Any]


class TurnContext(Protocol):
    """Parts of a turn that a compaction or a review may use."""

    @property
    def id(self) -> str:
        """The turn's id."""
        ...

    @property
    def thread(self) -> LoadedThread:
        """The thread it runs on."""
        ...

    @property
    def log(self) -> ItemLog:
        """Return the log of its items."""
        ...

    @property
    def meter(self) -> Meter:
        """Return the counter of the tokens of its model calls."""
        ...

    def own_calls(self) -> TurnCalls:
        """Return new tool calls for a conversation that is not the thread's, as of a review."""
        ...

    async def ask(
        self, body: Callable[[], Fields], visibility: Visibility = Visibility.ALL
    ) -> Sampled:
        """Call the model, retry where a failure allows it, and return the result.

        `body` is called for each try; `visibility`: the model's items that clients see. Raises
        ModelError.
        """
        ...

    def tell_retry(self, failure: ModelError, how: str) -> None:
        """Send an `error` notification that the turn will retry; `how` reads like `2/5`."""
        ...

    def remember(self, items: list[Fields], tokens: TokenCounts | None = None) -> None:
        """Record `items` and append them to the conversation; `tokens` are those of the call.

        Raises OSError if they cannot be stored.
        """
        ...

    def count(self, answer: Sampled) -> None:
        """Count the tokens of a call for another conversation than the thread's. Raises OSError."""
        ...


Work = Callable[[TurnContext], Awaitable[None]]
"""The work of a turn without user input: a compaction, a review."""
