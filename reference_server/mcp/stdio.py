"""MCP over the streams of a program, as streams for the SDK's session.

The SDK's own transport is not used: it holds a line of any length, lets a program outlive a killed
server, and passes on the server's standard error. Source of the format: MCP "Transports" (stdio).
"""

import logging
import re
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from reference_server.brief import brief
from reference_server.config.mcp import McpServer
from reference_server.mcp.program import Program, running_program
from reference_server.mcp.wire import MESSAGE_LIMIT, TOO_LARGE, Wire
from reference_server.transport.base import Incoming

_log = logging.getLogger(__name__)

MAX_LOGGED_LINES = 200
"""Maximum lines of a program's standard error, and invalid messages, that are logged."""
MAX_LOGGED_CHARACTERS = 1_000
"""Maximum characters of a logged line."""
MAX_QUOTED_CHARACTERS = 300
"""Maximum characters of each of the last such lines in the reason why a program has ended."""
_ANSWER = re.compile(
    rb'\s*\{(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"id"\s*:\s*(\d{1,9})\s*,\s*"result"'
)
"""Usual start of a response; the ids of requests are numbers."""
EXIT_STATUS_SECONDS = 0.5
"""Seconds to wait for the exit status of a program after its output has ended."""


class _Complaints:
    """Output of a program other than messages: logged up to a limit; the last lines are kept."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0
        self._last: deque[str] = deque(maxlen=3)

    def take(self, line: str, prefix: str = "") -> None:
        self._last.append(brief(line, MAX_QUOTED_CHARACTERS))
        self._count += 1
        if self._count <= MAX_LOGGED_LINES:
            _log.warning(
                "MCP server %s: %s%s", self._name, prefix, brief(line, MAX_LOGGED_CHARACTERS)
            )
        elif self._count == MAX_LOGGED_LINES + 1:
            _log.warning("MCP server %s: writes more, which is left out", self._name)

    @property
    def last(self) -> str:
        """The last lines, joined; "" if there are none."""
        return " / ".join(self._last)


class _Connection:
    """Forwarding of messages between a program and the streams of a session."""

    def __init__(self, name: str, program: Program) -> None:
        self._program = program
        self._complaints = _Complaints(name)
        self._fault = ""

    def reason(self) -> str:
        """Return why the connection has ended; "" if it is unknown or has not."""
        last_lines = self._complaints.last
        if self._fault:
            return self._fault
        if (status := self._program.status) is None:
            return ""
        return f"its program ended with status {status}" + (
            f", and wrote: {last_lines}" if last_lines else ""
        )

    async def complain(self) -> None:
        """Log the program's standard error."""
        await self._program.read_errors(self._complaints.take)

    async def forward_output(
        self, incoming: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        """Pass on the program's messages; keep reading even if the session takes no more."""
        is_open = True
        while lines := await self._program.receive():
            for line in lines if is_open and not self._fault else ():
                message = self._message(line)
                try:
                    if message is not None:
                        await incoming.send(message)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    is_open = False
            if self._fault:
                incoming.close()
        await self._program.wait_for_exit(EXIT_STATUS_SECONDS)
        incoming.close()

    def _message(self, line: Incoming) -> SessionMessage | None:
        if not isinstance(line, bytes):
            self._fault = TOO_LARGE
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            # Programs often print other lines; the session continues.
            self._complaints.take(line.decode("utf-8", "replace"), "no message: ")
            return _failed_answer(line)

    async def forward_input(
        self,
        outgoing: MemoryObjectReceiveStream[SessionMessage],
        incoming: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        """Pass on the session's messages; end the session if the program no longer reads."""
        try:
            async for item in outgoing:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await self._program.send(text.encode())
        except (OSError, anyio.ClosedResourceError):
            self._fault = self._fault or self.reason() or "its program reads no more"
            incoming.close()


def _failed_answer(line: bytes) -> SessionMessage | None:
    """Return an error response in place of one that is not JSON, so that its call ends.

    None if the line does not show the id of the request.
    """
    match = _ANSWER.match(line)
    if match is None:
        return None
    error = ErrorData(code=PARSE_ERROR, message="its answer cannot be read as JSON")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(match[1]), error=error))


@asynccontextmanager
async def over_stdio(server: McpServer, environment: Mapping[str, str]) -> AsyncGenerator[Wire]:
    """Run a server's program and connect to it for the length of the block. Raises McpFailure."""
    async with running_program(server, environment, MESSAGE_LIMIT) as program:
        connection = _Connection(server.name, program)
        give_in, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, take_out = anyio.create_memory_object_stream[SessionMessage](0)
        async with give_in, incoming, outgoing, take_out, anyio.create_task_group() as tasks:
            tasks.start_soon(connection.complain)
            tasks.start_soon(connection.forward_output, give_in)
            tasks.start_soon(connection.forward_input, take_out, give_in)
            try:
                yield Wire(incoming, outgoing, connection.reason)
            finally:
                incoming.close()
                with anyio.CancelScope(shield=True):
                    await program.end()
                tasks.cancel_scope.cancel()
