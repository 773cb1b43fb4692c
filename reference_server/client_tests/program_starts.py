"""Starts of the stage's program: each is a connection whose first line has its settings."""

import anyio

from reference_server.client_tests.stage import Stage
from reference_server.program_start import parse_first_line
from reference_server.transport.base import Incoming, Transport


class ProgramStarts:
    """Host of the connections that `cli.relay` makes; each plays the stage's next scenario."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    @property
    def stop_requested(self) -> anyio.Event:
        """Set when the stage takes no more connections."""
        return self._stage.stop_requested

    async def host(self, transport: Transport, path: str) -> bool:
        """Serve one start until its client leaves; return whether it was dropped as too slow."""
        messages = await self._stage.first_messages(transport)
        if not messages:
            return False
        first, *others = messages
        assert isinstance(first, bytes), "the program's first line is short"
        settings, command = parse_first_line(first)
        if command:
            self._stage.note_command()
            return False
        return await self._stage.host(_Remaining(transport, others), path, overrides=settings)


class _Remaining:
    """A transport without its first message; `messages` came with that one."""

    def __init__(self, transport: Transport, messages: list[Incoming]) -> None:
        self._transport = transport
        self._messages = messages

    @property
    def amount_read(self) -> int:
        """Return how much the client has read so far."""
        return self._transport.amount_read

    async def receive(self) -> list[Incoming]:
        """Return the next messages; an empty list at the end."""
        messages, self._messages = self._messages, []
        return messages or await self._transport.receive()

    async def wait_for_end(self) -> None:
        """Wait until the client has closed its side."""
        await self._transport.wait_for_end()

    async def send(self, messages: list[bytes]) -> None:
        """Write all messages."""
        await self._transport.send(messages)
