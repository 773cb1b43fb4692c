"""The only subscriber of the thread, in place of an app server's connection.

There is no user, so every approval request is declined.
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
"""Beginnings of delta notifications, which are ignored: items are reported when complete."""


class Follower:
    """A transport (`transport.base`) that passes each notification to `take`.

    `take` gets method and params; while it waits, so does the turn. `answer` gets the id of a
    server request and the answer to it.
    """

    def __init__(self, take: Take, answer: Answer) -> None:
        self._take = take
        self._answer = answer
        self.amount_read = 0

    async def receive(self) -> list[Incoming]:
        """Return no messages: the run calls the engine directly."""
        return []

    async def wait_for_end(self) -> None:
        """Wait for ever: this subscriber does not leave."""
        await anyio.sleep_forever()

    async def send(self, messages: list[bytes]) -> None:
        """Handle messages in order, deltas excepted."""
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
