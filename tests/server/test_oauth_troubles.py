"""Servers that a login cannot use: each ends with one line, and nothing is stored."""

import json

import anyio
import pytest
from mcp_http_side import answered, hanging, packed
from oauth_attempts import (
    ISSUER,
    JSON,
    PROTECTED,
    attempt,
    document,
    failure_of,
    resource_of,
)
from oauth_side import BOUND, consent

from fixtures.oauth.authority import Switches
from fixtures.oauth.pair import pair
from reference_server.config.mcp import McpServer
from reference_server.oauth import discovery, web
from reference_server.oauth.credentials import Credentials
from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.login import login
from tests.sampling import one_in

pytestmark = [pytest.mark.slow, pytest.mark.socket]

# What the servers say of themselves.


async def test_nobody_at_the_address() -> None:
    assert "the MCP server cannot be reached: " in await failure_of("http://127.0.0.1:1/mcp")


@pytest.mark.parametrize(
    ("url", "words"),
    one_in(
        4,
        [
            ("http://docs.example/mcp", "tokens would be sent in the open"),
            ("http://127.0.0.1.docs.example/mcp", "tokens would be sent in the open"),
            ("http://[::ffff:10.0.0.1]/mcp", "tokens would be sent in the open"),
            ("https://me:secret@docs.example/mcp", "has a login or a fragment in its address"),
            ("https://docs.example:x/mcp", "is no address"),
            ("https://docs.example/m\u00e9", "characters that an address cannot have"),
        ],
        pytest.mark.attacks,
    ),
)
async def test_an_address_that_gets_no_token(url, words) -> None:
    failure = await failure_of(url)
    assert words in failure
    assert "secret" not in failure


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "2130706433", "0x7f.0.0.1", "0177.1", "127.255.0.1."),
        *("0.0.0.0", "0", "[::1]:9", "[::]", "[::ffff:127.0.0.1]", "[::ffff:0.0.0.0]"),
        *("LOCALHOST", "localhost.", "a.localhost", "user@127.1", "127.1:80"),
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_elsewhere_names_no_address_inside_this_machine(scheme, host) -> None:
    url = f"{scheme}://{host}/t"
    with pytest.raises(OAuthFailure, match="is inside this machine, and the MCP server is not"):
        web.check_address(url, "the token endpoint", of="https://docs.example/mcp")


async def test_a_server_that_wants_no_login() -> None:
    async with pair() as servers:
        servers.server.app = answered(200)
        assert "has no OAuth login" in await failure_of(servers.url)


@pytest.mark.parametrize("path", ["/mcp", PROTECTED])
async def test_a_server_that_hangs_is_waited_for_within_the_bound(path, monkeypatch) -> None:
    monkeypatch.setattr(web, "PATIENCE", 1.5)
    async with pair() as servers:
        servers.server.instead[path] = hanging
        assert "does not answer within 1.5 seconds" in await failure_of(servers.url)


@pytest.mark.parametrize("path", [ISSUER, "/register"])
async def test_an_authorization_server_that_hangs_is_waited_for(path, monkeypatch) -> None:
    monkeypatch.setattr(web, "PATIENCE", 1.5)
    async with pair() as servers:
        servers.front.instead[path] = hanging
        assert "does not answer within 1.5 seconds" in await failure_of(servers.url)


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
    one_in(
        4,
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
        pytest.mark.attacks,
    ),
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
    one_in(
        4,
        [
            ({"resource": "http://127.0.0.1:9/mcp"}, "is of another one, http://127.0.0.1:9/mcp"),
            ({"resource": "https://docs.example/mcp"}, "is of another one"),
            ({"authorization_servers": []}, "`authorization_servers`"),
            ({"authorization_servers": ["file:///etc/passwd"]}, "cannot be read"),
            ({"authorization_servers": ["http://docs.example"]}, "sent in the open"),
            ({"authorization_servers": ["http://127.0.0.1:1"]}, "cannot be reached"),
        ],
        pytest.mark.attacks,
    ),
)
async def test_metadata_of_the_server_that_points_elsewhere(members, words) -> None:
    async with pair() as servers:
        servers.server.instead[PROTECTED] = resource_of(servers, **members)
        assert words in await failure_of(servers.url)


@pytest.mark.parametrize(
    ("members", "words"),
    one_in(
        4,
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
        pytest.mark.attacks,
    ),
)
async def test_metadata_of_an_authorization_server_that_is_refused(members, words) -> None:
    async with pair(Switches(more=members)) as servers:
        assert words in await failure_of(servers.url)


@pytest.mark.parametrize(
    "to",
    one_in(
        3,
        ["file:///etc/passwd", "http://127.0.0.1:1/", "https://evil.example"],
        pytest.mark.attacks,
    ),
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
    one_in(
        4,
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
        pytest.mark.attacks,
    ),
    ids=["refused", "500", "empty", "text", "method", "endless"],
)
async def test_a_registration_that_fails(app, words) -> None:
    async with pair() as servers:
        servers.front.instead["/register"] = app
        assert words in await failure_of(servers.url)


TOKEN = {"access_token": "token-secret-1", "token_type": "Bearer"}


@pytest.mark.parametrize(
    ("app", "words"),
    one_in(
        4,
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
        pytest.mark.attacks,
    ),
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


async def test_credentials_that_cannot_be_stored_are_reported_in_the_browser_too() -> None:
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
