"""The only subscriber of the thread, in place of an app server's connection.

There is no user to ask, so every approval is declined.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

import anyio

from reference_server.transport.base import Incoming

Fields = dict[str, Any]
Take = Callable[[str, Fields], Awaitable[None]]
Answer = Callable[[int, Fields], None]

_APPROVALS = frozenset({"item/commandExecution/requestApproval", "item/fileChange/requestApproval"})
_IGNORED_PREFIXES = tuple(
    f'{{"method":"item/{name}"'.encode()
    for name in (
        "agentMessage/delta",
        "plan/delta",
        "reasoning/summaryTextDelta",
        "reasoning/textDelta",
        "commandExecution/outputDelta",
        "fileChange/outputDelta",
    )
)
"""Beginnings of deltas, which are ignored: items are reported when they are complete."""


class Follower:
    """A transport (`transport.base`) that hands each notification to `take`.

    `take` is given the method and the params; while it waits, the turn goes at its pace. `answer`
    is given the id of a request and the answer to it.
    """

    def __init__(self, take: Take, answer: Answer) -> None:
        self._take = take
        self._answer = answer
        self.amount_read = 0

    async def receive(self) -> list[Incoming]:
        """Return nothing: the run sends its requests to the engine itself."""
        return []

    async def wait_for_end(self) -> None:
        """Never leave."""
        await anyio.sleep_forever()

    async def send(self, messages: list[bytes]) -> None:
        """Take messages in their order."""
        for message in messages:
            if not message.startswith(_IGNORED_PREFIXES):
                await self._read(cast("Fields", json.loads(message)))
            self.amount_read += 1

    async def _read(self, message: Fields) -> None:
        method = message["method"]
        if "id" in message:
            self._answer(message["id"], _refusal(method))
        else:
            await self._take(method, message["params"])


def _refusal(method: str) -> Fields:
    if method in _APPROVALS:
        return {"result": {"decision": "decline"}}
    return {"error": {"code": -32601, "message": "agent exec has no client that can do this"}}
