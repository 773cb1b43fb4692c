"""Refusal of every request that is not from the user's own page.

Loopback is reachable by each page in the user's browser and each program of the machine. A request
must name this server's own address as its Host (else another name was bound to 127.0.0.1: DNS
rebinding), come from this origin, and have the token of this start.
"""

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
TOKEN_HEADER: Final = "x-harness-token"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'; object-src 'none'; base-uri 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Guard:
    """ASGI app in front of another one. `origin` is set once the port is known.

    The token comes as `?token=` in the printed URL, whose answer sets a cookie, or in a header.
    """

    def __init__(self, app: ASGIApp, token: str = "") -> None:
        self.token = token or secrets.token_urlsafe(24)
        self.origin = ""
        self._app = app

    @property
    def url(self) -> str:
        """Return the URL to open."""
        return f"{self.origin}/?token={self.token}"

    @property
    def _host(self) -> str:
        return self.origin.removeprefix("http://")

    @property
    def _cookie(self) -> str:
        # Cookies do not tell ports apart, so that two pages need two names.
        return f"harness-{self._host.rpartition(':')[2]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with 403, 405 or 413, or pass it on; WebSockets are closed."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        problem = self._problem(scope, headers)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    answer[name] = value
                if not problem and self._is_token(self._in_query(scope)):
                    cookie = f"{self._cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
                    answer.append("Set-Cookie", cookie)
            await send(message)

        app: Any = PlainTextResponse(problem[1], problem[0]) if problem else self._app
        await app(scope, receive, send_guarded)

    def _problem(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """Return the status and text of a refusal, None for a request of the user's."""
        if not self.origin or headers.getlist("host") != [self._host]:
            return 403, "this address is not served here; open the URL that the command printed\n"
        is_other_origin = any(one != self.origin for one in headers.getlist("origin"))
        site = headers.get("sec-fetch-site", "none")
        if is_other_origin or site not in ("same-origin", "none"):
            # A link to the page itself may be followed from elsewhere: it still needs the token.
            is_visit = headers.get("sec-fetch-mode") == "navigate" and scope["method"] == "GET"
            if is_other_origin or not is_visit:
                return 403, "requests from other origins are refused\n"
        given = (self._in_query(scope), headers.get(TOKEN_HEADER, ""), self._in_cookie(headers))
        if not any(map(self._is_token, given)):
            return 403, "the token is missing or wrong; open the URL that the command printed\n"
        if scope["method"] not in ("GET", "POST"):
            return 405, "GET or POST\n"
        length = headers.get("content-length", "0" if scope["method"] == "GET" else "")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            return 413, f"at most {MAX_BODY_BYTES} bytes, of a stated length\n"
        return None

    def _is_token(self, word: str) -> bool:
        return hmac.compare_digest(word.encode(), self.token.encode())

    def _in_query(self, scope: Scope) -> str:
        query = parse_qs(scope["query_string"].decode("latin-1"))
        return query.get("token", [""])[0]

    def _in_cookie(self, headers: Headers) -> str:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        return cookie.value if cookie is not None else ""
