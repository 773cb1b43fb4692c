"""Connections to a model through httpx, for TLS, proxies, and transports of the caller.

Each one is an httpx transport with a single connection: httpx's pool examines every connection for
every call, which with 20 turns at once takes longer than the turns; its client (redirects, cookies,
authentication: not needed) would take a fifth of a short turn.
"""

import importlib
import importlib.util
import sys
from collections.abc import AsyncGenerator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from reference_server.late_imports import fast_imports
from reference_server.model.answer import TransportError
from reference_server.model.errors import describe


def _import_httpx() -> None:
    """Import httpx without its command line; takes a few hundredths of a second the first time.

    If the packages of its command line are installed, httpx imports that too: half of the time, and
    5 MiB. And httpcore tries to import `sniffio` for every lock; if it is not installed, Python
    searches the whole path each time, which takes a fifth of a short turn.
    """
    absent = cast("dict[str, Any]", sys.modules)
    if "httpx" not in absent:
        absent["httpx._main"] = None
    if "sniffio" not in absent and importlib.util.find_spec("sniffio") is None:
        absent["sniffio"] = None
    with fast_imports():
        importlib.import_module("httpx")


if TYPE_CHECKING:
    import httpx
else:
    _import_httpx()
    import httpx

_NETWORK_ERRORS = (httpx.HTTPError, httpx.StreamError, OSError)


class HttpxConnection:
    """Connection through a transport of httpx, for one call at a time."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def post(self, address: str, headers: Mapping[str, str], content: bytes) -> "HttpxAnswer":
        """Send a request; return the answer once its headers are read. Raises TransportError."""
        try:
            request = httpx.Request("POST", _url(address), content=content, headers=headers)
            response = await self._transport.handle_async_request(request)
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise TransportError(describe(error), retryable=False) from error
        except _NETWORK_ERRORS as error:
            raise TransportError(describe(error)) from error
        except ExceptionGroup as group:
            # An invalid port is found only here, when connecting.
            raise TransportError(describe(group.exceptions[0]), retryable=False) from group
        return HttpxAnswer(response)

    async def aclose(self) -> None:
        """Close the transport."""
        await self._transport.aclose()


class HttpxAnswer:
    """Answer to one call."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._chunks: AsyncGenerator[bytes] | None = None

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield the pieces of the body as they arrive. Raises TransportError."""
        self._chunks = cast("AsyncGenerator[bytes]", self._response.aiter_raw())
        try:
            async for chunk in self._chunks:
                yield chunk
        except _NETWORK_ERRORS as error:
            raise TransportError(describe(error)) from error

    async def aclose(self) -> None:
        """Close the stream; the connection stays open if the whole body was read."""
        if self._chunks is not None:
            await self._chunks.aclose()
        await self._response.aclose()


@lru_cache
def _url(address: str) -> httpx.URL:
    """Return the parsed address, cached, since parsing takes long. Raises httpx.InvalidURL."""
    return httpx.URL(address)
