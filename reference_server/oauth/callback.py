"""Redirect address of a login, on this machine.

A small HTTP server on 127.0.0.1 passes the authorization server's response to `login`, and shows
the result of the login in the browser. Any program on this machine, and any page in the browser,
can send it requests: only one with the `state` of the login counts.
"""

import html
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import anyio
import h11
from anyio.abc import SocketAttribute, SocketStream

from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.web import one_line

PATH = "/callback"
REQUEST_SECONDS = 10.0
"""Seconds that a browser has to send its request."""
MAX_CONNECTIONS = 20
"""Maximum connections that are served at the same time."""
MAX_REQUEST_BYTES = 32_768
"""Maximum bytes of a request line and headers."""
FAREWELL_SECONDS = 2.0
"""Seconds that the browser has to receive the page with the result."""
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><h1>{title}</h1><p>{words}</p><p>You may close this window.</p></body></html>
"""


@dataclass(frozen=True, slots=True)
class Code:
    """The authorization server's response; `issuer` is its name, None if absent (RFC 9207)."""

    code: str = field(repr=False)
    issuer: str | None


class Callback:
    """Server of one login's redirect address, `redirect_uri`."""

    def __init__(self, state: str, port: int) -> None:
        self.redirect_uri = f"http://127.0.0.1:{port}{PATH}"
        self._state = state
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self._answered = anyio.Event()
        self._ended = anyio.Event()
        self._page_sent = anyio.Event()
        self._code: Code | None = None
        self._failure = ""
        self.strays = 0
        """Number of responses that belong to another login."""
        self._limit = anyio.Semaphore(MAX_CONNECTIONS)

    async def code(self) -> Code:
        """Wait for the browser's request and return its code. Raises OAuthFailure for an error."""
        await self._answered.wait()
        if self._code is None:
            raise OAuthFailure(self._failure)
        return self._code

    async def end(self, failure: str = "") -> None:
        """Let the waiting browser, if any, show that the login succeeded, or `failure`."""
        self._failure = failure
        self._ended.set()
        if self._answered.is_set():
            with anyio.move_on_after(FAREWELL_SECONDS, shield=True):
                await self._page_sent.wait()

    async def serve(self, stream: SocketStream) -> None:
        """Answer one connection; errors of the connection are ignored."""
        async with stream, self._limit:
            try:
                request = None
                with anyio.move_on_after(REQUEST_SECONDS):
                    request = await _request(stream)
                if request is not None:
                    await self._answer(stream, request)
            except (OSError, anyio.BrokenResourceError, anyio.EndOfStream, h11.ProtocolError):
                pass  # The browser has left, or it is another program.

    async def _answer(self, stream: SocketStream, request: h11.Request) -> None:
        target = urlsplit(request.target.decode("ascii", "replace"))
        host = next(
            (value.decode("latin-1") for name, value in request.headers if name == b"host"), ""
        )
        if host not in self._hosts or target.path != PATH or request.method != b"GET":
            return await _page(stream, 404, "Not found", "Nothing is here.")
        query = parse_qs(target.query, keep_blank_values=True)
        if "code" not in query and "error" not in query:
            return await _page(stream, 400, "Not a login", "This is no answer to a login.")
        if not self._is_ours(query):
            # Not a failure of the login: any program that finds the port could send this.
            self.strays += 1
            words = "This answer belongs to another login (wrong state)."
            return await _page(stream, 400, "Not a login", words)
        if self._answered.is_set():
            return await _page(stream, 400, "Not a login", "The login has had its answer.")
        self._take(query)
        self._answered.set()
        # The page shows the result of the login, which the exchange of the code decides.
        await self._ended.wait()
        try:
            if self._failure:
                await _page(stream, 400, "The login failed", self._failure)
            else:
                await _page(stream, 200, "You are logged in", "The agent has what it needs.")
        finally:
            self._page_sent.set()

    def _is_ours(self, query: dict[str, list[str]]) -> bool:
        states = query.get("state", [])
        state = states[0].encode("utf-8", "surrogateescape") if states else b""
        return len(states) == 1 and secrets.compare_digest(state, self._state.encode())

    def _take(self, query: dict[str, list[str]]) -> None:
        if "error" in query:
            words = one_line(query.get("error_description", [""])[0])
            error = one_line(query["error"][0])
            denied = error == "access_denied"
            problem = "the login was refused" if denied else "the authorization server failed"
            self._failure = f"{problem}: `{error}`" + (f", {words}" if words else "")
        elif len(query["code"]) != 1 or len(query.get("iss", [])) > 1 or not query["code"][0]:
            self._failure = "the answer in the browser is not one code"
        else:
            self._code = Code(query["code"][0], query.get("iss", [None])[0])


@asynccontextmanager
async def login_callback(port: int) -> AsyncGenerator[tuple[str, Callback]]:
    """Listen on 127.0.0.1 for the block and yield a login's `state` parameter and its callback.

    Raises OAuthFailure if the port is in use.
    """
    state = secrets.token_urlsafe(32)
    try:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port)
    except OSError as error:
        raise OAuthFailure(
            f"port {port} of 127.0.0.1 cannot be listened on: {error.strerror or error}"
        ) from None
    actual_port: int = listener.extra(SocketAttribute.local_port)
    callback = Callback(state, actual_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, callback.serve)
        try:
            yield state, callback
        finally:
            tasks.cancel_scope.cancel()


async def _request(stream: SocketStream) -> h11.Request | None:
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_REQUEST_BYTES)
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await stream.receive())
        else:
            return event if isinstance(event, h11.Request) else None


async def _page(stream: SocketStream, status: int, title: str, words: str) -> None:
    text = PAGE.format(title=html.escape(title), words=html.escape(words))
    body = text.encode("utf-8", "replace")
    headers = [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        ("Content-Security-Policy", "default-src 'none'"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Content-Type-Options", "nosniff"),
        ("Connection", "close"),
    ]
    connection = h11.Connection(h11.SERVER)
    response = h11.Response(status_code=status, headers=headers)
    parts = [response, h11.Data(data=body), h11.EndOfMessage()]
    await stream.send(b"".join(connection.send(part) or b"" for part in parts))
