"""Logins that fail: each ends with one line, the browser is told, and nothing is stored."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx
import pytest
from mcp_http_side import answered, hanging, packed
from oauth_side import BOUND, consent, visit

from fixtures.oauth.authority import Switches
from fixtures.oauth.pair import Pair, pair
from reference_server.config.mcp import McpServer
from reference_server.oauth import discovery, web
from reference_server.oauth.credentials import Credentials
from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.login import login

pytestmark = [pytest.mark.slow, pytest.mark.socket]

PROTECTED = "/.well-known/oauth-protected-resource/mcp"
ISSUER = "/.well-known/oauth-authorization-server"
JSON = {"content_type": "application/json"}


@dataclass
class Attempt:
    """A login in this process, and what came of it."""

    addresses: list[str] = field(default_factory=list[str])
    kept: list[Credentials] = field(default_factory=list[Credentials])
    failure: str = ""
    shown: anyio.Event = field(default_factory=anyio.Event)

    def show(self, address: str) -> None:
        self.addresses.append(address)
        self.shown.set()

    @property
    def address(self) -> str:
        [address] = self.addresses
        return address

    def back(self, **parameters: str) -> httpx.URL:
        """The address to which the browser comes back, with these parameters and the state."""
        asked = httpx.URL(self.address).params
        return httpx.URL(asked["redirect_uri"]).copy_merge_params(
            {"state": asked["state"], **parameters}
        )


@asynccontextmanager
async def attempt(url: str, *, patience: float = BOUND, **more: Any) -> AsyncGenerator[Attempt]:
    """Log in while the block plays the browser; how it ended is known after the block."""
    made = Attempt()

    async def run() -> None:
        try:
            await login(
                McpServer("docs", url=url, **more),
                [],
                port=0,
                patience=patience,
                show=made.show,
                keep=made.kept.append,
            )
        except OAuthFailure as error:
            made.failure = str(error)

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            yield made
    assert made.failure == "" or not made.kept
    assert "\n" not in made.failure


async def failure_of(url: str) -> str:
    """Log in without a browser; gives why it failed."""
    async with attempt(url) as made:
        pass
    assert made.addresses == []
    return made.failure


def document(members: dict[str, Any]):
    return answered(200, json.dumps(members).encode(), **JSON)


def resource_of(servers: Pair, **members: Any):
    return document(
        {"resource": servers.url, "authorization_servers": [servers.front.url], **members}
    )


# What the browser brings back.


@pytest.mark.parametrize(
    ("description", "words"),
    [
        ("the user said no", "the login was refused: `access_denied`, the user said no"),
        ("100%+ sure & \x1b[31mred\n<b>", "the login was refused: `access_denied`, 100%+ sure"),
        (None, "the login was refused: `access_denied`"),
    ],
)
async def test_a_denial_ends_the_login(description, words) -> None:
    async with pair(Switches(description=description)) as servers, attempt(servers.url) as made:
        await made.shown.wait()
        page = await consent(made.address, "deny")
    assert made.failure.startswith(words)
    assert made.failure.isprintable()
    assert (page.status_code, "The login failed" in page.text) == (400, True)
    assert "<b>" not in page.text
    assert servers.front.forms == []


async def test_the_answer_to_another_login_ends_it_and_the_browser_is_told() -> None:
    async with pair() as servers, attempt(servers.url) as made:
        await made.shown.wait()
        page = await visit(made.back(code="stolen", state="another"))
    assert made.failure == "the answer in the browser belongs to another login (wrong state)"
    assert (page.status_code, "wrong state" in page.text) == (400, True)
    assert servers.front.forms == []


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("code=a&code=b&state={state}", "is not one code"),
        ("code=&state={state}", "is not one code"),
        ("code=a&state={state}&iss=a&iss=b", "is not one code"),
        ("code=a", "wrong state"),
        ("code=a&state=", "wrong state"),
        ("code=a&state={state}&state={state}", "wrong state"),
        ("code=a&state={state}x", "wrong state"),
        ("code=a&state=%FF%00", "wrong state"),
        ("error=access_denied", "wrong state"),
        ("error=server_error&state={state}", "the authorization server failed: `server_error`"),
        ("code=a&state={state}&iss=https://evil.example", "comes from https://evil.example"),
        ("code=guessed&state={state}", "gave no token: HTTP status 400, `invalid_grant`"),
    ],
)
async def test_an_odd_answer_in_the_browser_ends_the_login(query, words) -> None:
    async with pair() as servers, attempt(servers.url) as made:
        await made.shown.wait()
        asked = httpx.URL(made.address).params
        page = await visit(f"{asked['redirect_uri']}?{query.format(state=asked['state'])}")
    assert words in made.failure
    assert page.status_code == 400


async def test_an_answer_without_the_promised_issuer_is_refused() -> None:
    promise = {"authorization_response_iss_parameter_supported": True}
    async with pair(Switches(more=promise)) as servers, attempt(servers.url) as made:
        await made.shown.wait()
        await consent(made.address)
    assert made.failure == "the answer in the browser does not name the authorization server"


@pytest.mark.parametrize(
    "send",
    [
        b"GET / HTTP/1.1\r\nhost: {host}\r\n\r\n",
        b"GET /favicon.ico HTTP/1.1\r\nhost: {host}\r\n\r\n",
        b"GET /callback HTTP/1.1\r\nhost: {host}\r\n\r\n",
        b"GET /callback?code=a&state=b HTTP/1.1\r\nhost: evil.example\r\n\r\n",
        b"POST /callback?code=a&state=b HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\n\r\n",
        b"GET /callback?code=" + b"a" * 100_000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"",
    ],
    ids=["root", "icon", "bare", "host", "post", "long", "tls", "nothing"],
)
async def test_what_is_no_answer_is_not_taken_for_one(send) -> None:
    async with pair() as servers, attempt(servers.url) as made:
        await made.shown.wait()
        target = httpx.URL(httpx.URL(made.address).params["redirect_uri"])
        assert target.port is not None
        async with await anyio.connect_tcp("127.0.0.1", target.port) as stream:
            await stream.send(send.replace(b"{host}", target.netloc) or b"\r\n")
            await stream.send_eof()
            said = b""
            with anyio.move_on_after(BOUND):
                try:
                    async for part in stream:
                        said += part
                except anyio.BrokenResourceError:
                    pass
        assert b"200" not in said[:20]
        page = await consent(made.address)
    assert (made.failure, page.status_code) == ("", 200)


async def test_many_who_say_nothing_do_not_keep_the_browser_out() -> None:
    async with pair() as servers, attempt(servers.url) as made:
        await made.shown.wait()
        target = httpx.URL(httpx.URL(made.address).params["redirect_uri"])
        assert target.port is not None
        silent = [await anyio.connect_tcp("127.0.0.1", target.port) for _ in range(15)]
        page = await consent(made.address)
        for stream in silent:
            await stream.aclose()
    assert (made.failure, page.status_code) == ("", 200)


async def test_a_second_answer_is_not_taken() -> None:
    async with pair() as servers:
        release = anyio.Event()
        token = servers.front.app
        assert token is not None

        async def late(scope, receive, send) -> None:
            await release.wait()
            await token(scope, receive, send)

        servers.front.instead["/token"] = late
        async with attempt(servers.url) as made:
            await made.shown.wait()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(consent, made.address)
                with anyio.fail_after(BOUND):
                    while not servers.front.forms:
                        await anyio.lowlevel.checkpoint()
                page = await visit(made.back(code="another"))
                release.set()
    assert (page.status_code, "has had its answer" in page.text) == (400, True)
    assert made.failure == ""


async def test_a_browser_that_does_not_come_back_is_waited_for_within_the_bound() -> None:
    async with pair() as servers, attempt(servers.url, patience=0.2) as made:
        pass
    assert made.failure == "the browser did not come back within 0.2 seconds"


async def test_a_port_that_is_taken_is_named() -> None:
    async with pair() as servers:
        port = int(servers.url.split(":")[2].partition("/")[0])
        with pytest.raises(OAuthFailure, match=f"port {port} of 127.0.0.1 cannot be listened on"):
            await login(
                McpServer("docs", url=servers.url),
                [],
                port=port,
                patience=1,
                show=lambda _: None,
                keep=lambda _: None,
            )


# What the servers say of themselves.


async def test_nobody_at_the_address() -> None:
    assert "the MCP server cannot be reached: " in await failure_of("http://127.0.0.1:1/mcp")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://docs.example/mcp", "tokens would be sent in the open"),
        ("http://127.0.0.1.docs.example/mcp", "tokens would be sent in the open"),
        ("http://[::ffff:10.0.0.1]/mcp", "tokens would be sent in the open"),
        ("https://me:secret@docs.example/mcp", "has a login or a fragment in its address"),
        ("https://docs.example:x/mcp", "is no address"),
        ("https://docs.example/m\u00e9", "characters that an address cannot have"),
    ],
)
async def test_an_address_that_gets_no_token(url, words) -> None:
    failure = await failure_of(url)
    assert words in failure
    assert "secret" not in failure


async def test_a_server_that_wants_no_login() -> None:
    async with pair() as servers:
        servers.server.app = answered(200)
        assert "has no OAuth login" in await failure_of(servers.url)


@pytest.mark.parametrize("path", ["/mcp", PROTECTED])
async def test_a_server_that_hangs_is_waited_for_within_the_bound(path, monkeypatch) -> None:
    monkeypatch.setattr(web, "PATIENCE", 0.3)
    async with pair() as servers:
        servers.server.instead[path] = hanging
        assert "does not answer within 0.3 seconds" in await failure_of(servers.url)


@pytest.mark.parametrize("path", [ISSUER, "/register"])
async def test_an_authorization_server_that_hangs_is_waited_for(path, monkeypatch) -> None:
    monkeypatch.setattr(web, "PATIENCE", 0.3)
    async with pair() as servers:
        servers.front.instead[path] = hanging
        assert "does not answer within 0.3 seconds" in await failure_of(servers.url)


async def test_the_search_as_a_whole_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(discovery, "PATIENCE", 0.3)
    async with pair() as servers:
        servers.server.instead[PROTECTED] = hanging
        assert "was not found within 0.3 seconds" in await failure_of(servers.url)


async def drip(_scope, _receive, send) -> None:
    """Far more than is read."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(100):
        await send({"type": "http.response.body", "body": b" " * 65_536, "more_body": True})


@pytest.mark.parametrize(
    ("app", "words"),
    [
        (answered(500), "HTTP status 500"),
        (answered(429), "HTTP status 429"),
        (answered(200, b"{", **JSON), "cannot be read: it is not JSON"),
        (answered(200, b"[" * 500_000, **JSON), "cannot be read: it is not JSON"),
        (answered(200, b"\xff", **JSON), "cannot be read: it is not JSON"),
        (document({}), "cannot be read: `"),
        (answered(200, b"[]", **JSON), "cannot be read: "),
        (packed(5_000_000), "sent a compressed answer"),
        (drip, "sent more than 1 MiB"),
    ],
    ids=["500", "429", "broken", "deep", "bytes", "empty", "array", "packed", "endless"],
)
@pytest.mark.parametrize("whose", ["server", "front"])
async def test_metadata_that_cannot_be_used(whose, app, words) -> None:
    async with pair() as servers:
        where = servers.server if whose == "server" else servers.front
        where.instead[PROTECTED if whose == "server" else ISSUER] = app
        failure = await failure_of(servers.url)
    assert words in failure
    assert "the metadata of the" in failure


async def test_a_page_at_every_address_is_no_metadata() -> None:
    async with pair(Switches(own=True)) as servers:
        page = answered(200, b"<html>hello</html>", content_type="text/html")
        servers.server.instead[PROTECTED] = page
        async with attempt(servers.url) as made:
            await made.shown.wait()
            await consent(made.address)
    assert made.failure == ""


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"resource": "http://127.0.0.1:9/mcp"}, "is of another one, http://127.0.0.1:9/mcp"),
        ({"resource": "https://docs.example/mcp"}, "is of another one"),
        ({"authorization_servers": []}, "`authorization_servers`"),
        ({"authorization_servers": ["file:///etc/passwd"]}, "cannot be read"),
        ({"authorization_servers": ["http://docs.example"]}, "sent in the open"),
        ({"authorization_servers": ["http://127.0.0.1:1"]}, "cannot be reached"),
    ],
)
async def test_metadata_of_the_server_that_points_elsewhere(members, words) -> None:
    async with pair() as servers:
        servers.server.instead[PROTECTED] = resource_of(servers, **members)
        assert words in await failure_of(servers.url)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"issuer": "https://evil.example"}, "calls itself https://evil.example"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "cannot be read"),
        ({"authorization_endpoint": "file:///etc/passwd"}, "cannot be read"),
        ({"authorization_endpoint": "http://evil.example/a"}, "sent in the open"),
        ({"authorization_endpoint": "https://a:b@evil.example/a"}, "has a login or a fragment"),
        ({"token_endpoint": "http://evil.example/t"}, "sent in the open"),
        ({"token_endpoint": None}, "`token_endpoint`: Field required"),
        ({"registration_endpoint": "http://evil.example/r"}, "sent in the open"),
        ({"registration_endpoint": None}, "does not let clients register themselves"),
        ({"code_challenge_methods_supported": ["plain"]}, "does not know PKCE with S256"),
    ],
)
async def test_metadata_of_an_authorization_server_that_is_refused(members, words) -> None:
    async with pair(Switches(more=members)) as servers:
        assert words in await failure_of(servers.url)


@pytest.mark.parametrize(
    "to", ["file:///etc/passwd", "http://127.0.0.1:1/", "https://evil.example"]
)
@pytest.mark.parametrize("path", [PROTECTED, ISSUER, "/register"])
async def test_no_redirect_is_followed(path, to) -> None:
    async with pair() as servers:
        servers.server.instead[path] = servers.front.instead[path] = answered(307, location=to)
        failure = await failure_of(servers.url)
    assert failure
    assert "passwd" not in failure


async def test_a_challenge_that_names_a_place_is_believed_only_where_tokens_may_go() -> None:
    async with pair() as servers:
        for place in ("file:///etc/passwd", "http://evil.example/x"):
            header = f'Bearer resource_metadata="{place}"'
            servers.server.instead["/mcp"] = answered(401, www_authenticate=header)
            failure = await failure_of(servers.url)
            assert "the address of the metadata of the MCP server is" in failure


# What the authorization server gives.


@pytest.mark.parametrize(
    ("app", "words"),
    [
        (
            answered(400, b'{"error": "invalid_client_metadata"}', **JSON),
            "`invalid_client_metadata`",
        ),
        (answered(500, b"secret"), "could not be registered: HTTP status 500"),
        (answered(201, b"{}", **JSON), "names no client"),
        (answered(201, b"no"), "it is not JSON"),
        (
            document({"client_id": "x", "token_endpoint_auth_method": "private_key_jwt"}),
            "unsupported",
        ),
        (drip, "sent more than 1 MiB"),
    ],
    ids=["refused", "500", "empty", "text", "method", "endless"],
)
async def test_a_registration_that_fails(app, words) -> None:
    async with pair() as servers:
        servers.front.instead["/register"] = app
        assert words in await failure_of(servers.url)


TOKEN = {"access_token": "token-secret-1", "token_type": "Bearer"}


@pytest.mark.parametrize(
    ("app", "words"),
    [
        (answered(500, b"token-secret-1"), "gave no token: HTTP status 500"),
        (document({}), "its `access_token` is missing or wrong"),
        (document({**TOKEN, "access_token": None}), "its `access_token` is missing or wrong"),
        (document({**TOKEN, "access_token": ""}), "a token that no header can hold"),
        (document({**TOKEN, "access_token": "a\r\nx: y"}), "a token that no header can hold"),
        (document({**TOKEN, "refresh_token": "\u00e9"}), "a token that no header can hold"),
        (document({**TOKEN, "token_type": "DPoP"}), "its `token_type` is missing or wrong"),
        (document({**TOKEN, "expires_in": "soon"}), "its `expires_in` is missing or wrong"),
        (answered(200, b'"token-secret-1"', **JSON), "it is no JSON object"),
        (answered(200, b"access_token=token-secret-1"), "it is not JSON"),
        (answered(307, location="http://127.0.0.1:1/"), "a redirect, which is not followed"),
        (drip, "sent more than 1 MiB"),
    ],
)
async def test_tokens_that_cannot_be_used(app, words) -> None:
    async with pair() as servers:
        servers.front.instead["/token"] = app
        async with attempt(servers.url) as made:
            await made.shown.wait()
            page = await consent(made.address)
    assert words in made.failure
    assert "token-secret-1" not in made.failure + page.text
    assert page.status_code == 400


async def test_words_of_the_authorization_server_that_repeat_what_it_was_sent() -> None:
    async with pair() as servers:

        async def parrot(scope, receive, send) -> None:
            members = {"error": "invalid_grant", "error_description": str(servers.front.forms)}
            await answered(400, json.dumps(members).encode(), **JSON)(scope, receive, send)

        servers.front.instead["/token"] = parrot
        async with attempt(servers.url) as made:
            await made.shown.wait()
            page = await consent(made.address)
        [form] = servers.front.forms
    assert form["code"] not in made.failure + page.text
    assert form["code_verifier"] not in made.failure + page.text


async def test_what_cannot_be_kept_is_told_in_the_browser_too() -> None:
    async with pair() as servers:

        def keep(_credentials: Credentials) -> None:
            raise OAuthFailure("the disk is full")

        shown = anyio.Event()
        addresses: list[str] = []

        def show(address: str) -> None:
            addresses.append(address)
            shown.set()

        async def browse() -> None:
            await shown.wait()
            page = await consent(addresses[0])
            assert "the disk is full" in page.text

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(browse)
            with pytest.raises(OAuthFailure, match="the disk is full"):
                await login(
                    McpServer("docs", url=servers.url),
                    [],
                    port=0,
                    patience=BOUND,
                    show=show,
                    keep=keep,
                )
