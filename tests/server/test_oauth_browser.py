"""Requests of the browser during a login: only the login's own answer counts.

Each login that fails ends with one line and a page in the browser, and stores nothing.
"""

import anyio
import httpx
import pytest
from oauth_attempts import attempt
from oauth_side import BOUND, consent, visit

from fixtures.oauth.authority import Switches
from fixtures.oauth.pair import pair
from reference_server.config.mcp import McpServer
from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.login import login
from tests.sampling import one_in

pytestmark = [pytest.mark.slow, pytest.mark.socket]


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


STRAYS = [
    "code=stolen&state=another",
    "code=a",
    "code=a&state=",
    "code=a&state={state}&state={state}",
    "code=a&state={state}x",
    "code=a&state=%FF%00",
    "error=access_denied",
    "error=access_denied&state=another",
]


@pytest.mark.parametrize("query", one_in(4, STRAYS, pytest.mark.attacks))
async def test_the_answer_to_another_login_is_refused_and_does_not_end_this_one(query) -> None:
    """Any page and any user of the machine can send one."""
    async with pair() as servers, attempt(servers.url) as made:
        await made.shown.wait()
        asked = httpx.URL(made.address).params
        page = await visit(f"{asked['redirect_uri']}?{query.format(state=asked['state'])}")
        assert (page.status_code, "wrong state" in page.text) == (400, True)
        assert servers.front.forms == []
        page = await consent(made.address)
    assert (made.failure, page.status_code) == ("", 200)


async def test_who_waits_in_vain_is_told_of_answers_to_another_login() -> None:
    async with pair() as servers, attempt(servers.url, patience=1.5) as made:
        await made.shown.wait()
        await visit(made.back(code="stolen", state="another"))
    assert made.failure.endswith(
        "within 1.5 seconds, but with the answer to another login (wrong state)"
    )
    assert servers.front.forms == []


@pytest.mark.parametrize(
    ("query", "words"),
    one_in(
        4,
        [
            ("code=a&code=b&state={state}", "is not one code"),
            ("code=&state={state}", "is not one code"),
            ("code=a&state={state}&iss=a&iss=b", "is not one code"),
            ("error=server_error&state={state}", "the authorization server failed: `server_error`"),
            ("code=a&state={state}&iss=https://evil.example", "comes from https://evil.example"),
            ("code=guessed&state={state}", "gave no token: HTTP status 400, `invalid_grant`"),
        ],
        pytest.mark.attacks,
    ),
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
    one_in(
        4,
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
        pytest.mark.attacks,
    ),
    ids=["root", "icon", "bare", "host", "post", "long", "tls", "nothing"],
)
async def test_a_request_that_is_not_the_answer_is_not_taken_for_it(send) -> None:
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
        page = None
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
    assert made.failure == ""
    assert page is not None
    assert (page.status_code, "has had its answer" in page.text) == (400, True)


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
