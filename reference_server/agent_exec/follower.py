"""The one subscriber of the thread: it stands where an app server has a connection.

Nobody is there who could be asked, so every approval is declined.
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
_UNREAD = tuple(
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
"""How pieces of items begin: they are told when they are complete, so pieces are not read."""


class Follower:
    """A transport (`transport.base`) that hands each notification to `take`.

    `take` is given the method and the params; while it waits, the turn goes at its pace. `answer`
    is given the id of a request and the answer to it.
    """

    def __init__(self, take: Take, answer: Answer) -> None:
        self._take = take
        self._answer = answer
        self.taken = 0

    async def receive(self) -> list[Incoming]:
        """Say nothing: who plays the turn asks the engine itself."""
        return []

    async def ended(self) -> None:
        """Never leave."""
        await anyio.sleep_forever()

    async def send(self, messages: list[bytes]) -> None:
        """Take messages in their order."""
        for message in messages:
            if not message.startswith(_UNREAD):
                await self._read(cast("Fields", json.loads(message)))
            self.taken += 1

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
