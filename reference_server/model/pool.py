"""Connections to the models, kept alive between calls.

Here lives which connection a call uses. Each is a client of its own with one connection: a shared
pool of httpx looks at every connection for every call, which with 20 turns at once costs more than
the turns. The one used last is used first, so that idle ones expire.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import anyio

if TYPE_CHECKING:
    import ssl

    import httpx

IDLE_AT_MOST = 64
"""Idle connections kept for each address."""
KEEP_ALIVE = 30.0
"""Seconds an idle connection is kept."""


class ConnectionPool:
    """Clients by address; with a `transport` of the caller's, one client for everything."""

    def __init__(self, transport: "Callable[[], httpx.AsyncBaseTransport] | None") -> None:
        self._transport = transport
        self._only: httpx.AsyncClient | None = None
        self._idle: dict[str, list[httpx.AsyncClient]] = {}
        self._tls: ssl.SSLContext | None = None
        self._closed = False

    def take(self, address: str) -> "httpx.AsyncClient":
        """Give a client that no other call uses."""
        if self._transport is not None:
            self._only = self._only or self._new(transport=self._transport())
            return self._only
        idle = self._idle.setdefault(address, [])
        if idle:
            return idle.pop()
        secure = address.lower().startswith("https:")
        return self._new(verify=self._secure() if secure else False)

    async def give_back(self, address: str, client: "httpx.AsyncClient") -> None:
        """Take a client back when its call is over."""
        if client is self._only:
            return
        idle = self._idle.setdefault(address, [])
        if len(idle) < IDLE_AT_MOST and not self._closed:
            idle.append(client)
            return
        with anyio.CancelScope(shield=True):
            await client.aclose()

    def idle(self, address: str) -> int:
        """Count the idle clients of an address."""
        return len(self._idle.get(address, []))

    async def close(self) -> None:
        """Close what is idle, and from now on what is given back."""
        self._closed = True
        if self._only is not None:
            await self._only.aclose()
        for clients in self._idle.values():
            while clients:
                await clients.pop().aclose()

    def _new(self, **options: Any) -> "httpx.AsyncClient":
        import_httpx()
        import httpx

        return httpx.AsyncClient(
            timeout=None,  # time limits are `client`'s own
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=1, keepalive_expiry=KEEP_ALIVE
            ),
            **options,
        )

    def _secure(self) -> "ssl.SSLContext":
        """Make the TLS settings once; reading the certificates takes 20 ms."""
        if self._tls is None:
            import httpx

            self._tls = httpx.create_ssl_context()
        return self._tls


def import_httpx() -> None:
    """Import httpx as a library only; takes a few hundredths of a second the first time.

    Where the packages for its command line are installed, it would import that too: half of the
    time, and 5 MiB. httpcore tries to import `sniffio` for every lock, and a module that is not
    there is searched for on the whole path each time: a fifth of a short turn.
    """
    absent = cast("dict[str, Any]", sys.modules)
    if "httpx" not in absent:
        absent["httpx._main"] = None
    if "sniffio" not in absent and importlib.util.find_spec("sniffio") is None:
        absent["sniffio"] = None
    importlib.import_module("httpx")
