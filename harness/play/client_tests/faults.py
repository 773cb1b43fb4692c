"""A scenario's faults, applied between a server and its client in one process."""

import contextlib
from collections.abc import Callable
from typing import Protocol

import anyio

from harness.errors import TargetGone
from harness.faults.live.chain import FaultChain
from harness.faults.live.fault import FaultActed, FaultGaveUp
from harness.faults.live.pieces import Piece
from harness.faults.live.relay import Relay
from harness.play.scenario_faults import live_faults
from harness.scenario.loader import Loaded
from harness.trace.frame import Frame

# Seconds of silence after which messages that a fault holds back are passed on.
QUIET_SECONDS = 5.0
Say = Callable[[str], None]


class Endpoint(Protocol):
    """Either end of a connection, the client's or the server's."""

    async def receive(self) -> list[bytes]:
        """Return the next messages, [] at the end."""
        ...

    async def send(self, messages: list[bytes]) -> None:
        """Send messages. Raises `TargetGone` if the receiver is gone."""
        ...

    async def close(self) -> None:
        """Close this end for sending."""
        ...


class _Side:
    """Adapter from an endpoint to the interface of the relay."""

    def __init__(self, end: Endpoint) -> None:
        self._end = end

    async def receive(self) -> list[Piece]:
        return [Piece(raw) for raw in await self._end.receive()]

    async def send(self, frames: list[Frame]) -> None:
        await self._end.send([frame.raw for frame in frames])

    async def close(self) -> None:
        await self._end.close()


class FaultRelay:
    """Relay that applies a scenario's faults to one connection; `say` takes its messages."""

    def __init__(self, loaded: Loaded, say: Say) -> None:
        self._say = say
        self._chain = FaultChain(live_faults(loaded.scenario.faults, self._tell))

    async def relay(self, client: Endpoint, server: Endpoint) -> None:
        """Pass on the messages of both sides until the server has ended."""
        relay = Relay(_Side(client), _Side(server), self._chain, quiet_seconds=QUIET_SECONDS)
        async with anyio.create_task_group() as tasks:

            async def from_client() -> None:
                with contextlib.suppress(TargetGone):
                    await relay.from_client()

            tasks.start_soon(from_client)
            tasks.start_soon(relay.watch_silence)
            with contextlib.suppress(TargetGone):
                await relay.from_server()
            tasks.cancel_scope.cancel()

    def idle_faults(self) -> list[tuple[int, str]]:
        """Return the faults that never acted: index and what each waited for. Ends all faults."""
        idle: list[tuple[int, str]] = []
        for number, fault in enumerate(self._chain.faults):
            fault.end()
            if not fault.places_acted:
                idle.append((number, fault.missing))
        return idle

    def _tell(self, event: FaultActed | FaultGaveUp) -> None:
        if isinstance(event, FaultActed):
            for words in event.words:
                self._say(f"fault {event.fault.id}: {words}")
        elif event.missing:
            self._say(
                f"fault {event.fault.id}: {event.missing}, and {event.reason}: "
                "held messages are passed on"
            )
