"""Pool of connections to the models, kept alive between calls.

Plain HTTP uses `direct`; TLS and proxies use httpx, which is imported only for them. The connection
used last is used first, so that idle ones expire.
"""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from reference_server.brief import brief
from reference_server.model.answer import ModelConnection
from reference_server.model.direct import KEEP_ALIVE_SECONDS, DirectConnection, is_direct

if TYPE_CHECKING:
    import ssl

    import httpx

    MakeTransport = Callable[[], ModelConnection | httpx.AsyncBaseTransport]

MAX_IDLE = 64
"""Maximum idle connections kept for each address."""


class BadSetting(Exception):
    """A variable of the environment has an unusable value; str() names it and says what to do."""


class ConnectionPool:
    """Connections by address; a `transport`, if given, makes one connection for all calls."""

    def __init__(self, transport: "MakeTransport | None") -> None:
        self._transport = transport
        self._shared: ModelConnection | None = None
        self._idle: dict[str, list[ModelConnection]] = {}
        self._tls: ssl.SSLContext | None = None
        self._closed = False

    def take(self, address: str) -> ModelConnection:
        """Return a connection for one call, an idle or a new one. Raises BadSetting."""
        if self._transport is not None:
            self._shared = self._shared or _connection_of(self._transport())
            return self._shared
        idle = self._idle.setdefault(address, [])
        if idle:
            return idle.pop()
        return self._new(address)

    async def give_back(self, address: str, connection: ModelConnection) -> None:
        """Take a connection back after its call, to reuse or close it."""
        if connection is self._shared:
            return
        idle = self._idle.setdefault(address, [])
        if len(idle) < MAX_IDLE and not self._closed:
            idle.append(connection)
            return
        with anyio.CancelScope(shield=True):
            await connection.aclose()

    def idle(self, address: str) -> int:
        """Return the number of idle connections of an address."""
        return len(self._idle.get(address, []))

    def route(self, address: str) -> str:
        """Return the origin, and the proxy, of connections to an address, for error messages."""
        return origin_of(address) if self._transport is not None else describe_route(address)

    async def close(self) -> None:
        """Close the idle connections, and later each one that is given back."""
        self._closed = True
        if self._shared is not None:
            await self._shared.aclose()
        for connections in self._idle.values():
            while connections:
                await connections.pop().aclose()

    def _new(self, address: str) -> ModelConnection:
        proxy = proxy_for(address)
        if proxy is None and is_direct(address):
            return DirectConnection()
        from reference_server.model.through_httpx import HttpxConnection, httpx

        secure = (proxy or "", address)
        tls = self._tls_settings() if any(map(is_secure, secure)) else False
        limits = httpx.Limits(
            max_connections=None, max_keepalive_connections=1, keepalive_expiry=KEEP_ALIVE_SECONDS
        )
        try:
            if proxy:
                _check_host(proxy)
            return HttpxConnection(httpx.AsyncHTTPTransport(verify=tls, proxy=proxy, limits=limits))
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            # An unknown kind of proxy, one that needs a package, or not a URL. The cause may quote
            # a part of the proxy's password, which could not be redacted.
            reason = f": {error}" if "@" not in (proxy or "") else ""
            raise BadSetting(
                f"the proxy that {proxy_source(address)} names cannot be used{reason}; it should "
                "read like http://host:port"
            ) from error

    def _tls_settings(self) -> "ssl.SSLContext":
        """Return the TLS settings, made once, as that takes 20 ms. Raises BadSetting."""
        if self._tls is None:
            import httpx

            folder = os.environ.get("SSL_CERT_DIR")
            file = os.environ.get("SSL_CERT_FILE")
            try:
                if folder and not file:
                    os.listdir(folder)  # OpenSSL ignores a missing folder.
                self._tls = httpx.create_ssl_context()
            except OSError as error:
                setting = f"SSL_CERT_FILE ({file})" if file else f"SSL_CERT_DIR ({folder})"
                raise BadSetting(
                    f"the certificates that {setting} names cannot be read: "
                    f"{error.strerror or error}; correct or unset it"
                ) from error
        return self._tls


def _connection_of(transport: "ModelConnection | httpx.AsyncBaseTransport") -> ModelConnection:
    if isinstance(transport, ModelConnection):
        return transport
    from reference_server.model.through_httpx import HttpxConnection

    return HttpxConnection(transport)


def proxy_for(address: str) -> str | None:
    """Return the proxy that the environment (or the system) names for an address, if any."""
    names = {name.lower() for name in os.environ} - {"no_proxy"}
    if sys.platform == "linux" and not any(name.endswith("_proxy") for name in names):
        return None  # Spare the import below, as long as all others of a short turn together.
    from urllib.request import getproxies, proxy_bypass

    try:
        parts = urlsplit(address)
    except ValueError:
        return None  # httpx reports the mistake.
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def proxy_source(address: str) -> str:
    """Return the variable that names the proxy for an address, or "the system's settings"."""
    scheme = address.partition("://")[0].lower()
    for wanted in (f"{scheme}_proxy", "all_proxy"):
        names = [name for name, value in os.environ.items() if name.lower() == wanted and value]
        if names:
            # A lower-case name takes precedence (urllib.request.getproxies).
            return wanted if wanted in names else names[0]
    return "the system's settings"


def describe_route(address: str) -> str:
    """Return the origin of an address, and its proxy, without passwords."""
    proxy = proxy_for(address)
    if proxy is None:
        return origin_of(address)
    source = proxy_source(address)
    return f"{origin_of(address)} through the proxy {origin_of(proxy)}, from {source}"


def origin_of(address: str) -> str:
    """Return the scheme, host and port of an address."""
    scheme, separator, rest = address.partition("://")
    # A password can have any character except `@`.
    host = rest.rpartition("@")[2].split("/", 1)[0]
    return brief(f"{scheme}{separator}{host}")


def _check_host(proxy: str) -> None:
    """Raise ValueError if a proxy's address has no host, which httpx's error would not show."""
    host = urlsplit(proxy).hostname
    if not host or not host.isprintable() or " " in host:
        raise ValueError("it names no host")


def is_secure(address: str) -> bool:
    """Return whether TLS is used for an address."""
    return address.lower().startswith("https:")
