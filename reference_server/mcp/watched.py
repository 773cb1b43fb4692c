"""Wrappers of a session's streams, which watch for their end and for the server's requests.

The SDK's session does not report that a connection has ended, and answers each request of a server
in a new task: a server that requests and does not read would fill the memory. It rejects a list of
tools for one invalid tool, so lists are cleaned here (`tool_lists`).
"""

from types import TracebackType
from typing import Any, Self, cast

import anyio
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from reference_server.mcp.tool_lists import clean_page

MAX_REQUESTS = 100
"""Maximum requests of a server whose answers it has not read."""
Item = SessionMessage | Exception


class Watch:
    """State of both streams.

    `fault`: why this side has ended them, else "". `left_out`: messages about tools removed from
    the last list.
    """

    def __init__(self) -> None:
        self.finished = anyio.Event()
        self.fault = ""
        self.open_requests = 0
        self.left_out: list[str] = []


class Incoming:
    """Stream of a server's messages."""

    def __init__(self, stream: ReadStream[Item], watch: Watch) -> None:
        self._stream = stream
        self._watch = watch

    @property
    def last_context(self) -> Any:
        """The sender's context; None if the stream has none."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Item:
        """Return the next message."""
        return await self._stream.receive()

    async def aclose(self) -> None:
        """End the stream."""
        await self._stream.aclose()

    def __aiter__(self) -> ReadStream[Item]:
        return self

    async def __anext__(self) -> Item:
        try:
            item = await self._stream.__anext__()
        except BaseException:
            self._watch.finished.set()
            raise
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest):
            self._watch.open_requests += 1
            if self._watch.open_requests > MAX_REQUESTS:
                self._watch.fault = "it sends requests and does not take their answers"
                self._watch.finished.set()
                raise StopAsyncIteration
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
            result: Any = item.message.result
            if isinstance(result, dict) and isinstance(cast("Any", result).get("tools"), list):
                self._watch.left_out = clean_page(cast("dict[str, Any]", result))
        return item

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        self._watch.finished.set()
        return await self._stream.__aexit__(exc_type, exc_val, exc_tb)


class Outgoing:
    """Stream of the messages to a server."""

    def __init__(self, stream: WriteStream[SessionMessage], watch: Watch) -> None:
        self._stream = stream
        self._watch = watch

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message; wait while the server does not read."""
        await self._stream.send(item)
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._watch.open_requests -= 1

    async def aclose(self) -> None:
        """End the stream."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._stream.__aexit__(exc_type, exc_val, exc_tb)
