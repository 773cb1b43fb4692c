"""Addresses of `--listen`: kinds and syntax.

`cli.listening` decides which addresses need a token; `listener` opens the socket.
"""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

KINDS = "ws://127.0.0.1:PORT, unix:PATH (a message is a line) or ws+unix:PATH (a WebSocket)"


class BadAddress(ValueError):
    """Not an address to listen at; str() is one line that says why."""


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A WebSocket on an address of this machine; port 0 stands for any free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine reaches it."""
        return ipaddress.ip_address(self.host).is_loopback

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"ws://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A socket in the file system; a message is a line, or with `websocket` a text frame."""

    path: str
    websocket: bool = False

    def __str__(self) -> str:
        return f"{'ws+' if self.websocket else ''}unix:{self.path}"


Address = TcpAddress | UnixAddress


def parse_address(text: str) -> Address:
    """Parse `ws://HOST:PORT`, `unix:PATH`, `unix://PATH`, `ws+unix:PATH`, else raise BadAddress."""
    kind, _, rest = text.partition(":")
    match kind:
        case "ws":
            return _parse_tcp_address(text)
        case "unix" | "ws+unix":
            path = rest.removeprefix("//")
            if not path:
                raise BadAddress(f"{text}: the path of the socket is missing")
            if "\0" in path:
                raise BadAddress("the path of the socket holds a null character")
            return UnixAddress(path, websocket=kind != "unix")
        case "wss":
            raise BadAddress(f"{text}: this server has no TLS; put one that has before it")
        case _:
            raise BadAddress(f"{text}: unknown kind of address; use {KINDS}")


def _parse_tcp_address(text: str) -> TcpAddress:
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError as error:
        raise BadAddress(f"{text}: {error}") from None
    try:
        port = parts.port
    except ValueError:
        raise BadAddress(
            f"{text}: a port is a number up to 65535, as in ws://127.0.0.1:4500"
        ) from None
    if host is None or port is None:
        raise BadAddress(f"{text}: give a host and a port, as in ws://127.0.0.1:4500")
    if parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise BadAddress(f"{text}: only a host and a port are allowed")
    try:
        ip = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        # A name may lead elsewhere tomorrow, and one machine may have several addresses.
        raise BadAddress(f"{text}: give the host as an IP address, as in 127.0.0.1") from None
    return TcpAddress(str(ip), port)
