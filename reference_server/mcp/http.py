"""MCP over streamable HTTP, as streams for the SDK's session.

The SDK follows no redirect to another origin, so the token goes only to the configured address.
Source: MCP "Transports".
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2
from anyio import to_thread
from mcp.client.streamable_http import streamable_http_client

from reference_server import VERSION
from reference_server.config.mcp import McpServer
from reference_server.mcp.failure import McpFailure
from reference_server.mcp.wire import MESSAGE_LIMIT, TOO_LARGE, Wire
from reference_server.model.pool import describe_route, proxy_for
from reference_server.oauth.bearer import Bearer
from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.web import tls_for

CONNECTING = 10.0
"""Seconds to connect, and to write a request."""
SENTENCES = {
    401: "the server wants other credentials",
    403: "the server refuses these credentials",
    404: "nothing is at this address",
}


@asynccontextmanager
async def over_http(
    server: McpServer, environment: Mapping[str, str], bearer: Bearer | None
) -> AsyncGenerator[Wire]:
    """Connect to a server's address for the length of the block. Raises McpFailure."""
    # In a thread: reading the certificates of the machine may take a while.
    guard = await to_thread.run_sync(_Guard, server, bearer)
    if bearer is not None:
        try:
            await bearer.load()
        except OAuthFailure as error:
            raise McpFailure(str(error)) from None
    headers = {"user-agent": f"agent/{VERSION}", "accept-encoding": "identity"}
    if (variable := server.token_variable) is not None:
        token = environment.get(variable, "")
        if not token:
            raise McpFailure(f"the variable {variable}, for its bearer token, is not set")
        if not token.isascii() or not token.isprintable():
            raise McpFailure(f"the variable {variable} holds what no header can")
        headers["authorization"] = f"Bearer {token}"
    # No timeout for reading here: each call has its own.
    timeout = httpx2.Timeout(CONNECTING, read=None)
    async with (
        httpx2.AsyncClient(
            transport=guard, headers=headers, timeout=timeout, trust_env=False
        ) as client,
        streamable_http_client(
            server.url, http_client=client, max_sse_event_size=MESSAGE_LIMIT
        ) as (incoming, outgoing),
    ):
        hide = str if bearer is None else bearer.redact
        yield Wire(incoming, outgoing, guard.reason, hide, guard.session_unknown)


class _Guard(httpx2.AsyncHTTPTransport):
    """HTTP transport that adds the token, limits responses, and keeps the last one's failure."""

    def __init__(self, server: McpServer, bearer: Bearer | None) -> None:
        proxy = proxy_for(server.url)
        super().__init__(verify=tls_for(server.url, proxy), proxy=proxy)
        self._server = server
        self._bearer = bearer
        self._reason = ""
        self._session_unknown = False

    def session_unknown(self) -> bool:
        """Return whether the last response to a POST said that the session is unknown."""
        return self._session_unknown

    def reason(self) -> str:
        """Return what was wrong with the last response, "" if nothing was."""
        return self._reason

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return the response. Raises TransportError if it is unusable."""
        try:
            response = await self._send_authorized(request)
        except httpx2.TransportError as error:
            words = str(error) or type(error).__name__
            self._reason = f"it cannot be reached: {words} ({describe_route(str(request.url))})"
            raise
        except OAuthFailure as error:
            self._reason = f"{error}; {self._advice()}"
            raise httpx2.ConnectError(self._reason, request=request) from None
        status = response.status_code
        if request.method == "POST":
            self._session_unknown = status == 404 and "mcp-session-id" in request.headers
        if status >= 300 and request.method == "POST":
            sentence = SENTENCES.get(status, "")
            if self._bearer is not None and status in (401, 403):
                sentence = self._scope_advice(response) if status == 403 else self._advice()
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

    async def _send_authorized(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request with the login's token, if any; retry once after 401 with another token.

        Raises OAuthFailure, TransportError.
        """
        if self._bearer is None or not self._is_same_server(request.url):
            return await super().handle_async_request(request)
        token = await self._bearer.token()
        if token is not None:
            request.headers["authorization"] = f"Bearer {token}"
        response = await super().handle_async_request(request)
        if response.status_code == 401 and (other := await self._bearer.other_token(token)):
            await response.aclose()
            request.headers["authorization"] = f"Bearer {other}"
            response = await super().handle_async_request(request)
        return response

    def _is_same_server(self, url: httpx2.URL) -> bool:
        """Return whether an address is on the token's server, or on it with https for http."""
        server_url = httpx2.URL(self._server.url)
        safer = (server_url.scheme, server_url.port) == ("http", None) and (
            url.scheme,
            url.port,
        ) == (
            "https",
            None,
        )
        return url.host == server_url.host and (
            (url.scheme, url.port) == (server_url.scheme, server_url.port) or safer
        )

    def _advice(self, more: str = "") -> str:
        return f"log in with `agent mcp login {self._server.name}{more}`"

    def _scope_advice(self, response: httpx2.Response) -> str:
        """Return advice after 403, with the scopes that the server requires (RFC 6750, 3.1)."""
        header = response.headers.get("www-authenticate", "")
        match = re.search(r'\bscope="([\x21\x23-\x5b\x5d-\x7e ]{1,300})"', header)
        if "insufficient_scope" not in header or match is None:
            return SENTENCES[403]
        return self._advice(f" --scopes {','.join(match[1].split())}")

    def too_large(self) -> None:
        """Set the reason: a response was too large."""
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
