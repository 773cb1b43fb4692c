"""The faults of a scenario, between a server and its client in one process."""

import contextlib
from collections.abc import Callable
from typing import Protocol

import anyio

from harness.errors import TargetGone
from harness.faults.live.chain import FaultChain
from harness.faults.live.fault import Acted, LetGo
from harness.faults.live.pieces import Piece
from harness.faults.live.relay import Relay
from harness.play.written_faults import live_faults
from harness.scenario.loader import Loaded
from harness.trace.frame import Frame

# Seconds of silence after which lines that are held for a fault go on.
QUIET = 5.0
Say = Callable[[str], None]


class End(Protocol):
    """One end: of a client, or of the server."""

    async def receive(self) -> list[bytes]:
        """Some messages, none at the end."""
        ...

    async def send(self, messages: list[bytes]) -> None:
        """Pass messages on. Raises `TargetGone` where nobody takes them."""
        ...

    async def close(self) -> None:
        """Nothing more comes."""
        ...


class _Side:
    """An end as the relay takes it."""

    def __init__(self, end: End) -> None:
        self._end = end

    async def receive(self) -> list[Piece]:
        return [Piece(raw) for raw in await self._end.receive()]

    async def send(self, frames: list[Frame]) -> None:
        await self._end.send([frame.raw for frame in frames])

    async def close(self) -> None:
        await self._end.close()


class FaultsBetween:
    """The faults of a scenario at work on one connection; `say` is told what they did."""

    def __init__(self, loaded: Loaded, say: Say) -> None:
        self._say = say
        self._chain = FaultChain(live_faults(loaded.scenario.faults, self._tell))

    async def pass_on(self, client: End, server: End) -> None:
        """Pass on what both say, until the server has ended."""
        relay = Relay(_Side(client), _Side(server), self._chain, quiet=QUIET)
        async with anyio.create_task_group() as tasks:

            async def from_client() -> None:
                with contextlib.suppress(TargetGone):
                    await relay.from_client()

            tasks.start_soon(from_client)
            tasks.start_soon(relay.mind_silence)
            with contextlib.suppress(TargetGone):
                await relay.from_server()
            tasks.cancel_scope.cancel()

    def idle(self) -> list[tuple[int, str]]:
        """After the end: the faults that never acted, by their number, with what they awaited."""
        found: list[tuple[int, str]] = []
        for number, one in enumerate(self._chain.faults):
            one.end()
            if not one.acted:
                found.append((number, one.missing))
        return found

    def _tell(self, one: Acted | LetGo) -> None:
        if isinstance(one, Acted):
            for words in one.words:
                self._say(f"fault {one.fault.id}: {words}")
        elif one.missing:
            self._say(f"fault {one.fault.id}: {one.missing}, and {one.why}: what was held goes on")
