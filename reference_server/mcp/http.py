"""MCP over streamable HTTP, as the SDK's sessions want it.

Here live the HTTP client and its bounds. The SDK keeps a redirect to another origin from being
followed, so that the token goes to the configured address alone. Source: MCP "Transports".
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2
from anyio import to_thread
from mcp.client.streamable_http import streamable_http_client

from reference_server import VERSION
from reference_server.config.mcp import McpServer
from reference_server.mcp.failure import McpFailure
from reference_server.mcp.wire import MESSAGE_LIMIT, TOO_LARGE, Wire
from reference_server.model.pool import proxy_for

CONNECTING = 10.0
"""Seconds to connect, and to write a request."""
SENTENCES = {
    401: "the server wants other credentials",
    403: "the server refuses these credentials",
    404: "nothing is at this address",
}


@asynccontextmanager
async def over_http(server: McpServer, environment: Mapping[str, str]) -> AsyncGenerator[Wire]:
    """Connect to a server's address. Raises McpFailure."""
    # Reading the certificates of the machine takes a while.
    guard = await to_thread.run_sync(_Guard, server)
    headers = {"user-agent": f"agent/{VERSION}", "accept-encoding": "identity"}
    if (variable := server.token_variable) is not None:
        token = environment.get(variable, "")
        if not token:
            raise McpFailure(f"the variable {variable}, for its bearer token, is not set")
        if not token.isascii() or not token.isprintable():
            raise McpFailure(f"the variable {variable} holds what no header can")
        headers["authorization"] = f"Bearer {token}"
    # Its own bounds: how long an answer may take is bounded by call.
    timeout = httpx2.Timeout(CONNECTING, read=None)
    async with (
        httpx2.AsyncClient(
            transport=guard, headers=headers, timeout=timeout, trust_env=False
        ) as client,
        streamable_http_client(
            server.url, http_client=client, max_sse_event_size=MESSAGE_LIMIT
        ) as (incoming, outgoing),
    ):
        yield Wire(incoming, outgoing, guard.reason)


class _Guard(httpx2.AsyncHTTPTransport):
    """Bounds answers, and keeps why the last one was no success."""

    def __init__(self, server: McpServer) -> None:
        super().__init__(proxy=proxy_for(server.url))
        self._reason = ""

    def reason(self) -> str:
        """Say what was wrong with the last answer; empty if nothing was."""
        return self._reason

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        try:
            response = await super().handle_async_request(request)
        except httpx2.TransportError as error:
            self._reason = f"it cannot be reached: {error or type(error).__name__}"
            raise
        status = response.status_code
        if status >= 300 and request.method == "POST":
            sentence = SENTENCES.get(status, "")
            self._reason = f"it answered with HTTP status {status}" + (
                f": {sentence}" if sentence else ""
            )
        elif request.method == "POST":
            self._reason = ""
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            self._reason = "it sent a compressed answer, which was not asked for"
            raise httpx2.ReadError(self._reason, request=request)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Bounded(response.stream, self)
        return response

    def too_large(self) -> None:
        """Take note that an answer was given up."""
        self._reason = TOO_LARGE


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, guard: _Guard) -> None:
        self._stream = stream
        self._guard = guard

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > MESSAGE_LIMIT:
                self._guard.too_large()
                raise httpx2.ReadError(TOO_LARGE)
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
