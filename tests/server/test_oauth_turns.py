"""Turns that call a protected MCP server: the token, its renewal, its end, where it may be seen."""

import json
import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_http_side import answered, hanging, remote_server
from mcp_side import settled
from model_side import calls, says
from oauth_attempts import file_store, log_in
from session_peer import Peer, config, session

from fixtures.oauth.authority import Switches
from fixtures.oauth.pair import Pair, pair
from reference_server.config.mcp import McpServer
from reference_server.config.model import Config
from reference_server.oauth import web
from reference_server.oauth.bearer import Bearer
from reference_server.oauth.credentials import Credentials
from reference_server.oauth.failure import OAuthFailure

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.usefixtures("mcp_sdk")]

ADD = calls("mcp__docs__add", a=2, b=3)
AGAIN = calls("mcp__docs__add", "call_2", a=3, b=3)
BOUND = 10.0


def settings(servers: Pair, **more: Any) -> Config:
    server = McpServer("docs", url=servers.url, **more)
    return replace(config(), mcp_servers={"docs": server}, mcp_oauth_credentials_store="file")


def expired(home: Path, credentials: Credentials) -> Credentials:
    """Store credentials as if their time were over."""
    old = replace(credentials, expires_at=time.time() - 1)
    assert file_store(home).replace(credentials, old)
    return old


async def one_turn(home: Path, servers: Pair, *replies: Any, **more: Any) -> Peer:
    async with session(home, [*replies, says("ok")], settings=settings(servers, **more)) as peer:
        assert (await peer.run_turn(await peer.start_thread()))["status"] == "completed"
    return peer


def failures(peer: Peer) -> list[str]:
    return [told["error"]["message"] for told in peer.params_of("error")]


async def test_a_turn_calls_a_tool_with_the_token(tmp_path) -> None:
    async with pair() as servers:
        kept = await log_in(file_store(tmp_path), servers)
        servers.server.tokens.clear()
        peer = await one_turn(tmp_path, servers, ADD)
    assert peer.told_model() == "the sum is 5"
    assert failures(peer) == []
    assert set(servers.server.tokens) == {f"Bearer {kept.access_token}"}


async def test_a_token_that_has_expired_is_renewed_once_and_kept(tmp_path) -> None:
    async with pair() as servers:
        old = expired(tmp_path, await log_in(file_store(tmp_path), servers))
        servers.server.tokens.clear()
        peer = await one_turn(tmp_path, servers, ADD, AGAIN)
        new = file_store(tmp_path).load("docs", servers.url)
    assert peer.told_model() == "the sum is 6"
    assert servers.authority.renewals == 1
    assert new is not None
    assert new.access_token != old.access_token
    assert new.refresh_token not in (None, old.refresh_token)
    assert set(servers.server.tokens) == {f"Bearer {new.access_token}"}
    assert servers.front.forms[-1]["resource"] == servers.url


async def test_a_token_that_the_server_refuses_is_renewed_and_the_call_made(tmp_path) -> None:
    async with pair() as servers:
        await log_in(file_store(tmp_path), servers)
        async with session(
            tmp_path, [ADD, says("ok"), AGAIN, says("ok")], settings=settings(servers)
        ) as peer:
            thread = await peer.start_thread()
            await peer.run_turn(thread)
            servers.authority.end_access()
            await peer.run_turn(thread)
    assert [item["status"] for item in peer.completed_items("mcpToolCall")] == ["completed"] * 2
    assert servers.authority.renewals == 1


async def test_taking_tokens_out_of_a_long_answer_holds_nobody_up(tmp_path) -> None:
    async with pair() as servers, anyio.create_task_group() as tasks:
        kept = await log_in(file_store(tmp_path), servers)
        token = bearer(tasks, tmp_path, servers)
        await token.load()
        assert token.redact(f"sent: {kept.access_token}!") == "sent: [key]!"
        long = "\\%25" * 4_000_000
        began = time.monotonic()
        assert token.redact(f"{long}{kept.access_token}!") == f"{long}[key]!"
        assert time.monotonic() - began < 1


async def test_a_login_during_the_session_is_noticed(tmp_path) -> None:
    async with pair(Switches(refreshes=False)) as servers:
        store = file_store(tmp_path)
        replies = [says("ok"), says("ok"), ADD, says("ok"), AGAIN, says("ok")]
        async with session(tmp_path, replies, settings=settings(servers)) as peer:
            thread = await peer.start_thread()
            await peer.run_turn(thread)
            assert failures(peer) == [
                "The MCP server docs is not there: it answered with HTTP status 401: log in with "
                "`agent mcp login docs`; the turn goes on without its tools"
            ]
            await log_in(store, servers)
            # A turn does not wait a second time for a server that was not there.
            await peer.run_turn(thread)
            await settled(peer, "docs")
            await peer.run_turn(thread)
            assert peer.told_model() == "the sum is 5"
            servers.authority.end_access()
            await log_in(store, servers)
            await peer.run_turn(thread)
            assert peer.told_model() == "the sum is 6"


async def test_a_login_is_noticed_by_a_connection_that_had_none(tmp_path) -> None:
    async with remote_server() as remote:

        async def wants_login(scope, receive, send) -> None:
            known = b"authorization" in dict(scope["headers"])
            await (remote.app if known else answered(401))(scope, receive, send)

        remote.answer["tools/call"] = wants_login
        given = replace(
            config(), mcp_servers={"remote": remote.settings()}, mcp_oauth_credentials_store="file"
        )
        ask, again = (calls("mcp__remote__add", name, a=2, b=3) for name in ("call_1", "call_2"))
        replies = [ask, says("ok"), again, says("ok")]
        async with session(tmp_path, replies, settings=given) as peer:
            thread = await peer.start_thread()
            await peer.run_turn(thread)
            assert "log in with `agent mcp login remote`" in peer.told_model()
            file_store(tmp_path).save(
                Credentials(
                    "remote", remote.url, "i", "http://127.0.0.1:1/t", "c", "token-secret-1"
                )
            )
            await peer.run_turn(thread)
    assert peer.told_model() == "the sum is 5"
    assert "Bearer token-secret-1" in remote.authorizations


@pytest.mark.parametrize(
    ("app", "why"),
    [
        (answered(500), "the token was not renewed: HTTP status 500"),
        (answered(200, b"{}"), "its `access_token` is missing or wrong"),
        (hanging, "the token endpoint does not answer within 1 seconds"),
        (answered(307, location="http://127.0.0.1:1/"), "a redirect, which is not followed"),
    ],
    ids=["500", "empty", "hanging", "redirect"],
)
async def test_a_renewal_that_fails_is_told_and_what_is_stored_stays(
    tmp_path, app, why, monkeypatch
) -> None:
    async with pair() as servers:
        old = expired(tmp_path, await log_in(file_store(tmp_path), servers))
        monkeypatch.setattr(web, "PATIENCE", 1.0)
        servers.front.instead["/token"] = app
        peer = await one_turn(tmp_path, servers)
        assert file_store(tmp_path).load("docs", servers.url) == old
    [told] = failures(peer)
    assert why in told
    assert "log in with `agent mcp login docs`" in told
    assert not [secret for secret in old.secrets if secret in told]


async def test_a_refresh_token_that_is_over_is_not_tried_again(tmp_path) -> None:
    async with pair() as servers:
        expired(tmp_path, await log_in(file_store(tmp_path), servers))
        servers.authority.end_refresh()
        first, second = [await one_turn(tmp_path, servers) for _ in range(2)]
        assert not file_store(tmp_path).has_usable("docs", servers.url)
    assert "`invalid_grant`" in failures(first)[0]
    assert "the token has expired" in failures(second)[0]
    assert len(servers.front.forms) == 2


async def test_a_token_without_refresh_that_has_expired_is_told(tmp_path) -> None:
    async with pair(Switches(refreshes=False)) as servers:
        expired(tmp_path, await log_in(file_store(tmp_path), servers))
        peer = await one_turn(tmp_path, servers)
    assert "the token has expired, and there is no other to renew it with" in failures(peer)[0]


async def test_a_token_that_lacks_a_scope_is_told_with_the_login_that_asks_for_it(tmp_path) -> None:
    async with pair() as servers:
        await log_in(file_store(tmp_path), servers)
        challenge = 'Bearer error="insufficient_scope", scope="files mail"'
        servers.server.instead["/mcp"] = answered(403, www_authenticate=challenge)
        peer = await one_turn(tmp_path, servers)
    assert "log in with `agent mcp login docs --scopes files,mail`" in failures(peer)[0]


async def test_unreadable_credentials_are_reported(tmp_path) -> None:
    async with pair() as servers:
        (tmp_path / ".credentials.json").write_text('{"docs": secret-in-the-file')
        peer = await one_turn(tmp_path, servers)
    [told] = failures(peer)
    assert ".credentials.json: it is not JSON; remove it, and log in again" in told
    assert "secret-in-the-file" not in told


# Where a token may go.


async def test_a_token_is_nowhere_but_at_its_server(tmp_path, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    echo = calls("mcp__docs__echo")
    async with pair() as servers:
        await log_in(file_store(tmp_path), servers)
        peer = await one_turn(tmp_path, servers, echo)
    [item] = peer.completed_items("mcpToolCall")
    assert item["status"] == "completed"
    assert "I was sent" in json.dumps(item["result"])
    assert "Bearer [key]" in peer.told_model()
    rollouts = "".join(one.read_text() for one in (tmp_path / "sessions").rglob("*.jsonl"))
    # What the server of the test writes of its own answers is not the agent's.
    logged = "".join(
        one.getMessage() for one in caplog.records if not one.name.startswith("sse_starlette")
    )
    said = json.dumps(peer.seen) + json.dumps(peer.side.bodies) + rollouts + logged
    assert not [token for token in servers.authority.tokens if token in said]


@pytest.mark.parametrize("status", [307, 302])
async def test_a_redirect_gives_nobody_else_the_token(tmp_path, status) -> None:
    async with pair() as servers, pair() as others:
        await log_in(file_store(tmp_path), servers)
        for to in (others.url, f"http://localhost:{others.url.split(':')[2]}"):
            servers.server.instead["/mcp"] = answered(status, location=to)
            peer = await one_turn(tmp_path, servers)
            assert f"HTTP status {status}" in failures(peer)[0]
    assert others.server.tokens == []


async def test_another_address_of_the_same_name_does_not_get_the_token(tmp_path) -> None:
    async with pair() as servers, pair() as others:
        await log_in(file_store(tmp_path), servers)
        await one_turn(tmp_path, others)
    assert set(others.server.tokens) == {None}


async def test_a_token_in_a_variable_counts_before_a_login(tmp_path) -> None:
    async with pair() as servers:
        await log_in(file_store(tmp_path), servers)
        servers.server.tokens.clear()
        given = replace(
            settings(servers, token_variable="DOCS_TOKEN"), environment={"DOCS_TOKEN": "by-hand-1"}
        )
        async with session(tmp_path, [says("ok")], settings=given) as peer:
            await peer.run_turn(await peer.start_thread())
    assert set(servers.server.tokens) == {"Bearer by-hand-1"}


# Renewals: one for all, and what happens meanwhile.


def bearer(tasks: anyio.abc.TaskGroup, home: Path, servers: Pair) -> Bearer:
    return Bearer(tasks, McpServer("docs", url=servers.url), file_store(home))


async def test_one_renewal_serves_all_who_wait_here_and_in_other_processes(tmp_path) -> None:
    found: list[str | None] = []
    async with pair() as servers, anyio.create_task_group() as tasks:
        expired(tmp_path, await log_in(file_store(tmp_path), servers))
        # Each has read the credentials by itself, as processes do.
        all_of_them = [bearer(tasks, tmp_path, servers) for _ in range(4)]
        for one in all_of_them:
            await one.load()

        async def ask(one: Bearer) -> None:
            found.append(await one.token())

        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as waiting:
                for one in all_of_them * 5:
                    waiting.start_soon(ask, one)
    assert len(found) == 20
    assert len(set(found)) == 1
    assert servers.authority.renewals == 1


async def test_a_renewal_outlives_the_turn_that_asked_for_it(tmp_path) -> None:
    async with pair() as servers, anyio.create_task_group() as tasks:
        old = expired(tmp_path, await log_in(file_store(tmp_path), servers))
        asked, release = anyio.Event(), anyio.Event()
        app = servers.front.app
        assert app is not None

        async def late(scope, receive, send) -> None:
            asked.set()
            await release.wait()
            await app(scope, receive, send)

        servers.front.instead["/token"] = late
        token = bearer(tasks, tmp_path, servers)
        await token.load()
        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as turn:
                turn.start_soon(token.token)
                await asked.wait()
                turn.cancel_scope.cancel()
            release.set()
            assert await token.token() not in (None, old.access_token)
    assert servers.authority.renewals == 1


async def test_a_logout_during_a_renewal_stays_one(tmp_path) -> None:
    async with pair() as servers, anyio.create_task_group() as tasks:
        store = file_store(tmp_path)
        expired(tmp_path, await log_in(store, servers))
        app = servers.front.app
        assert app is not None

        async def late(scope, receive, send) -> None:
            store.remove("docs")
            await app(scope, receive, send)

        servers.front.instead["/token"] = late
        token = bearer(tasks, tmp_path, servers)
        await token.load()
        with pytest.raises(OAuthFailure, match="its login has ended"):
            await token.token()
        assert store.load("docs", servers.url) is None
    assert servers.authority.renewals == 1


async def test_the_end_of_the_agent_does_not_wait_for_an_authorization_server(tmp_path) -> None:
    async with pair() as servers:
        expired(tmp_path, await log_in(file_store(tmp_path), servers))
        asked = anyio.Event()

        async def hang(scope, receive, send) -> None:
            asked.set()
            await hanging(scope, receive, send)

        servers.front.instead["/token"] = hang
        with anyio.fail_after(BOUND):
            async with session(tmp_path, [says("ok")], settings=settings(servers)) as peer:
                await peer.start_turn(await peer.start_thread())
                await asked.wait()
                began = anyio.current_time()
            # Its own bound is 10 seconds.
            assert anyio.current_time() - began < 6
