"""Opening handshake of a WebSocket, with the checks of who may connect.

A page in a browser can send requests to any address of this machine; the browser adds the page's
origin (Origin) and the name by which it reached this server (Host).
"""

import hmac
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import anyio
from websockets.datastructures import Headers, MultipleValuesError
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from reference_server.transport.base import PeerGone
from reference_server.transport.descriptors import Descriptors
from reference_server.transport.websocket import HARD_LIMIT, WebSocketTransport

HANDSHAKE_TIME = 5.0
"""Seconds that a client has for the whole handshake."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Conditions of connecting. `checks_host`: the Host must be a loopback address or localhost.

    `missing_reason` returns the reason why a request's path is unknown, None for a known one.
    `max_connections` are admitted at once, None for the usual number.
    """

    token: str | None = None
    origins: frozenset[str] = frozenset()
    checks_host: bool = True
    missing_reason: Callable[[str], str | None] = lambda _path: None
    max_connections: int | None = None

    def refusal(self, headers: Headers) -> tuple[HTTPStatus, str] | None:
        """Return the status and the reason of a request's refusal; None if it is admitted."""
        try:
            origin, host = headers.get("Origin"), headers.get("Host", "")
            authorization = headers.get("Authorization", "")
        except MultipleValuesError as error:
            return HTTPStatus.BAD_REQUEST, f"more than one {error.args[0]} header"
        if self.token is not None and not _has_token(authorization, self.token):
            return HTTPStatus.UNAUTHORIZED, "a token is needed: Authorization: Bearer TOKEN"
        if origin is not None and origin not in self.origins:
            return HTTPStatus.FORBIDDEN, "this Origin is not allowed; see --allow-origin"
        if self.checks_host and not _is_own_host(host):
            return HTTPStatus.FORBIDDEN, "this Host is not an address of this machine"
        return None


def _has_token(authorization: str, token: str) -> bool:
    scheme, _, sent_token = authorization.partition(" ")
    right = hmac.compare_digest(sent_token.strip().encode(), token.encode())
    return right and scheme.lower() == "bearer"


def _is_own_host(host: str) -> bool:
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    name = name.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


async def admit(
    stream: Descriptors, admission: Admission, overload: str | None = None
) -> WebSocketTransport | None:
    """Complete the handshake; return None if the client is refused, gone or too slow.

    `overload`, if given, is the reason with which every client is refused.
    """
    protocol = ServerProtocol(max_size=HARD_LIMIT)
    path = "/"
    with anyio.move_on_after(HANDSHAKE_TIME):
        try:
            while protocol.state is State.CONNECTING and not protocol.close_expected():
                data = await stream.read()
                if not data:
                    return None
                protocol.receive_data(data)
                events = protocol.events_received()
                if len(events) > 1 or protocol.parser_exc is not None:
                    # RFC 6455, 4.1: the client waits for the answer before it sends anything more.
                    return None
                for event in events:
                    if isinstance(event, Request):
                        path = event.path
                        _answer(protocol, event, admission, overload)
                await stream.write(b"".join(protocol.data_to_send()))
            if protocol.state is State.OPEN:
                return WebSocketTransport(stream, protocol, path)
        except PeerGone:
            return None
    return None


def _answer(
    protocol: ServerProtocol, request: Request, admission: Admission, overload: str | None
) -> None:
    refusal = admission.refusal(request.headers)
    missing = admission.missing_reason(request.path) if refusal is None else None
    if missing is not None:
        refusal = HTTPStatus.NOT_FOUND, missing
    if refusal is None and overload is not None:
        refusal = HTTPStatus.SERVICE_UNAVAILABLE, overload
    if refusal is None:
        response = protocol.accept(request)
    else:
        status, words = refusal
        response = protocol.reject(status, f"{words}\n")
        if status is HTTPStatus.UNAUTHORIZED:
            response.headers["WWW-Authenticate"] = "Bearer"
    protocol.send_response(response)
