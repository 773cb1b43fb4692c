"""The turn as a compaction or a review sees it.

`turn` implements it, and `compaction` and `review` are written against it, so that neither side
imports the other. The work itself does not live here.
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
    """The turn, as a compaction or a review may use it."""

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
        """Return what carries out tool calls of a conversation that is not the thread's own."""
        ...

    async def ask(
        self, body: Callable[[], Fields], visibility: Visibility = Visibility.ALL
    ) -> Sampled:
        """Call the model, again after failures that allow it. Raises ModelError.

        `body` is called for each try; `visibility`: which of the model's items the client sees.
        """
        ...

    def tell_retry(self, failure: ModelError, how: str) -> None:
        """Tell that the turn goes on after a failure; `how` reads like `2/5`."""
        ...

    def remember(self, items: list[Fields], tokens: TokenCounts | None = None) -> None:
        """Append `items` to the model's conversation; `tokens` counts what the call used.

        Raises OSError if they cannot be stored.
        """
        ...

    def count(self, answer: Sampled) -> None:
        """Count a call that did not hold the thread's own conversation. Raises OSError."""
        ...


Work = Callable[[TurnContext], Awaitable[None]]
"""The work of a turn without user input: a compaction, a review."""
