"""An authorization server and the MCP server that it protects, for `agent mcp login`.

They answer at one loopback address: `/mcp` requires a bearer token and says where to get one (RFC
9728), the rest is OAuth 2.1 with metadata (RFC 8414), registration (RFC 7591) and a proof key (RFC
7636). A callback records each request and answer. State is kept in memory only; the tokens are
valid only here.
"""

import base64
import hashlib
import json
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import anyio
import httpx

from harness.model.server import Receive, Scope, Send, read_body, send_response, serve_on_loopback
from harness.protocol.values import obj

WELL_KNOWN: Final = "/.well-known/"
CALLBACK_HOSTS: Final = ("127.0.0.1", "localhost", "::1", "[::1]")
# Seconds that the program may take to answer at its callback.
CALLBACK_SECONDS: Final = 5.0

# Called with a message, and whether it is a request of the program or the answer to one.
RecordMessage = Callable[[dict[str, Any], bool], None]


@dataclass(slots=True)
class _Grant:
    client: str
    redirect: str
    challenge: str


@dataclass(slots=True)
class OAuthServer:
    """Both servers. `record(message, is_request)` is called with each request and each answer.

    `tokens` maps names to the issued secrets.
    """

    record: RecordMessage
    url: str = ""
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    _clients: set[str] = field(default_factory=set[str])
    _grants: dict[str, _Grant] = field(default_factory=dict[str, _Grant])

    @property
    def mcp_url(self) -> str:
        """Return the address of the protected MCP server."""
        return f"{self.url}/mcp"

    @property
    def authorize_url(self) -> str:
        """Return the address that a user visits, without a query."""
        return f"{self.url}/authorize"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI request."""
        if scope["type"] != "http":
            return
        body = await read_body(receive) or b""
        path = str(scope["path"])
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        request: dict[str, Any] = {
            "method": scope["method"],
            "path": path,
            "query": dict(parse_qsl(scope["query_string"].decode("latin-1"))),
            "form": self._form(headers, body),
        }
        if path == "/authorize":
            await self._authorize(request["query"], send)
            return
        kind, status, answer = self._answer(request, headers, body)
        self.record({"web": kind, **request}, True)
        self.record({"answers": kind, "status": status, "body": answer}, False)
        response_headers = {"content-type": "application/json"}
        if status == 401:
            metadata_url = f"{self.url}{WELL_KNOWN}oauth-protected-resource/mcp"
            response_headers["www-authenticate"] = f'Bearer resource_metadata="{metadata_url}"'
        await send_response(send, status, json.dumps(answer).encode(), response_headers)

    def _form(self, headers: dict[str, str], body: bytes) -> dict[str, Any]:
        if headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            return dict(parse_qsl(body.decode("utf-8", "replace")))
        try:
            return obj(json.loads(body) if body else {})
        except ValueError:
            return {}

    def _answer(
        self, request: dict[str, Any], headers: dict[str, str], body: bytes
    ) -> tuple[str, int, Any]:
        path: str = request["path"]
        if path.startswith(f"{WELL_KNOWN}oauth-protected-resource"):
            resource = {"resource": self.mcp_url, "authorization_servers": [self.url]}
            return "metadata", 200, resource
        if path.startswith(f"{WELL_KNOWN}oauth-authorization-server"):
            return "metadata", 200, self._metadata()
        if path == "/register":
            return "register", 201, self._register(request["form"])
        if path == "/token":
            return "token", *self._token(request["form"])
        if path == "/mcp":
            is_authorized = (
                headers.get("authorization", "") == f"Bearer {self.tokens.get('access_token')}"
            )
            status = 400 if is_authorized and "access_token" in self.tokens else 401
            return (
                "mcp",
                status,
                {"error": "no MCP is spoken here" if is_authorized else "unauthorized"},
            )
        return "other", 404, {"error": "not_found"}

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": self.authorize_url,
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
        }

    def _register(self, form: dict[str, Any]) -> dict[str, Any]:
        client = f"client-{secrets.token_hex(6)}"
        self._clients.add(client)
        registration = {"redirect_uris": [], "grant_types": ["authorization_code"], **form}
        return {**registration, "client_id": client, "token_endpoint_auth_method": "none"}

    def _token(self, form: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if form.get("grant_type") == "refresh_token":
            is_known = form.get("refresh_token") == self.tokens.get("refresh_token", "none")
            return (200, self._issue_tokens()) if is_known else (400, {"error": "invalid_grant"})
        grant = self._grants.pop(str(form.get("code")), None)
        if grant is None or form.get("redirect_uri", grant.redirect) != grant.redirect:
            return 400, {"error": "invalid_grant"}
        digest = hashlib.sha256(str(form.get("code_verifier", "")).encode()).digest()
        proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if grant.challenge and proof != grant.challenge:
            return 400, {"error": "invalid_grant", "error_description": "code_verifier"}
        return 200, self._issue_tokens()

    def _issue_tokens(self) -> dict[str, Any]:
        self.tokens = {name: secrets.token_hex(24) for name in ("access_token", "refresh_token")}
        return {**self.tokens, "token_type": "Bearer", "expires_in": 3600}

    async def _authorize(self, query: dict[str, str], send: Send) -> None:
        """Redirect to the callback with a code, as after consent; denials never come here."""
        redirect, client = query.get("redirect_uri", ""), query.get("client_id", "")
        if client not in self._clients or urlsplit(redirect).hostname not in CALLBACK_HOSTS:
            await send_response(send, 400, b'{"error":"invalid_request"}')
            return
        code = secrets.token_hex(12)
        self._grants[code] = _Grant(client, redirect, query.get("code_challenge", ""))
        parameters = {"code": code, **({"state": query["state"]} if "state" in query else {})}
        await send_response(send, 302, b"", {"location": _with_query(redirect, parameters)})

    async def visit(self, address: str, *, consents: bool) -> int:
        """Visit the printed address as a user's browser would; return the last HTTP status.

        0 if the callback does not answer, 400 if it is not on loopback.
        """
        query = dict(parse_qsl(urlsplit(address).query))
        async with httpx.AsyncClient(timeout=CALLBACK_SECONDS, trust_env=False) as browser:
            try:
                if consents:
                    page = await browser.get(address)
                    callback = page.headers.get("location", "")
                else:
                    refusal = {"error": "access_denied", "state": query.get("state", "")}
                    callback = _with_query(query.get("redirect_uri", ""), refusal)
                if urlsplit(callback).hostname not in CALLBACK_HOSTS:
                    return 400
                return (await browser.get(callback)).status_code
            except httpx.HTTPError:
                return 0


def _with_query(address: str, parameters: dict[str, str]) -> str:
    parts = urlsplit(address)
    query = "&".join(filter(None, (parts.query, urlencode(parameters))))
    return parts._replace(query=query).geturl()


@asynccontextmanager
async def oauth_server(record: RecordMessage) -> AsyncGenerator[OAuthServer]:
    """Run both servers on a free port of the loopback address for the length of the block."""
    app = OAuthServer(record)
    async with anyio.create_task_group() as tasks, serve_on_loopback(app, tasks) as url:
        app.url = url
        yield app
