"""MCP servers over streamable HTTP: tokens, redirects, invalid answers, servers that hang."""

from typing import Any

import anyio
import pytest
from mcp_http_side import (
    TOKEN,
    Remote,
    answered,
    breaking,
    hanging,
    packed,
    remote_server,
    serving,
)
from mcp_side import offered, with_servers
from model_side import calls, says
from session_peer import Peer, session

from reference_server.config.mcp import McpServer

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.usefixtures("mcp_sdk")]

ADD = calls("mcp__remote__add", a=2, b=3)
AGAIN = calls("mcp__remote__add", "call_2", a=3, b=3)


async def failures(home, server: McpServer, **environment: str) -> tuple[list[str], Peer]:
    """Run a turn that makes no call; gives what the client is told."""
    settings = with_servers(server, **environment)
    async with session(home, [says("ok")], settings=settings) as peer:
        assert (await peer.run_turn(await peer.start_thread()))["status"] == "completed"
    return [told["error"]["message"] for told in peer.params_of("error")], peer


async def called_twice(home, remote: Remote, **more: Any) -> list[dict[str, Any]]:
    """Call the tool in two model calls of one turn; gives the items."""
    settings = with_servers(remote.settings(**more))
    async with session(home, [ADD, AGAIN, says("ok")], settings=settings) as peer:
        assert (await peer.run_turn(await peer.start_thread()))["status"] == "completed"
    return peer.completed_items("mcpToolCall")


@pytest.mark.parametrize(
    "options", [{}, {"json_response": True}, {"stateless_http": True}], ids=str
)
async def test_a_tool_is_called(tmp_path, options) -> None:
    async with remote_server(TOKEN, **options) as remote:
        settings = with_servers(remote.settings(token_variable="THE_TOKEN"), THE_TOKEN=TOKEN)
        async with session(tmp_path, [ADD, says("ok")], settings=settings) as peer:
            await peer.run_turn(await peer.start_thread())
    assert offered(peer.side.bodies[0]) == ["mcp__remote__add", "mcp__remote__fail"]
    assert peer.told_model() == "the sum is 5"
    [item] = peer.completed_items("mcpToolCall")
    assert item["result"]["structuredContent"] == {"result": "the sum is 5"}
    told = [one["message"] for one in peer.params_of("item/mcpToolCall/progress")]
    assert told == ([] if "json_response" in options else ["half"])
    assert set(remote.authorizations) == {f"Bearer {TOKEN}"}


async def test_without_a_variable_there_is_no_token(tmp_path) -> None:
    async with remote_server() as remote:
        told, _ = await failures(tmp_path, remote.settings(), PROVIDER_API_KEY="provider-secret-1")
    assert told == []
    assert set(remote.authorizations) == {None}


async def test_a_variable_that_is_not_set_is_named_and_nothing_is_sent(tmp_path) -> None:
    async with remote_server() as remote:
        told, _ = await failures(tmp_path, remote.settings(token_variable="THE_TOKEN"))
    assert told == [
        "The MCP server remote is not there: the variable THE_TOKEN, for its bearer token, is "
        "not set; the turn goes on without its tools"
    ]
    assert remote.authorizations == []


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (401, "it answered with HTTP status 401: log in with `agent mcp login remote`"),
        (404, "it answered with HTTP status 404: nothing is at this address"),
        (500, "it answered with HTTP status 500"),
    ],
)
async def test_an_answer_that_is_no_success_is_told_with_its_status(tmp_path, status, why) -> None:
    async with serving(Remote(answered(status))) as address:
        told, _ = await failures(tmp_path, McpServer("remote", url=f"{address}/mcp"))
    assert told == [
        f"The MCP server remote is not there: {why}; the turn goes on without its tools"
    ]


async def test_a_wrong_token_is_shown_nowhere(tmp_path) -> None:
    async with remote_server(TOKEN) as remote:
        server = remote.settings(token_variable="THE_TOKEN")
        told, peer = await failures(tmp_path, server, THE_TOKEN="wrong-secret-9")
    assert "HTTP status 401" in told[0]
    assert set(remote.authorizations) == {"Bearer wrong-secret-9"}
    assert "wrong-secret-9" not in str(peer.seen) + str(peer.side.bodies)


async def test_a_redirect_to_another_address_is_not_followed(tmp_path) -> None:
    async with remote_server() as elsewhere:
        redirect = answered(307, location=elsewhere.url)
        async with serving(Remote(redirect)) as address:
            server = McpServer("remote", url=f"{address}/mcp", token_variable="THE_TOKEN")
            told, _ = await failures(tmp_path, server, THE_TOKEN=TOKEN)
    assert elsewhere.authorizations == []
    assert "it answered with HTTP status 307" in told[0]


async def test_nobody_at_the_address_is_told(tmp_path) -> None:
    told, _ = await failures(tmp_path, McpServer("remote", url="http://127.0.0.1:1/mcp"))
    assert "is not there: it cannot be reached: " in told[0]


async def test_a_server_that_hangs_at_its_start_is_waited_for_within_its_bound(tmp_path) -> None:
    async with serving(Remote(hanging)) as address:
        server = McpServer("remote", url=f"{address}/mcp", startup_timeout=0.3)
        told, _ = await failures(tmp_path, server)
    assert "it did not start within 0.3 seconds" in told[0]


async def test_a_call_that_hangs_ends_in_time_and_the_next_one_is_made(tmp_path) -> None:
    async with remote_server() as remote:
        remote.answer["tools/call"] = hanging

        async def once(scope, receive, send) -> None:
            del remote.answer["tools/call"]
            await hanging(scope, receive, send)

        remote.answer["tools/call"] = once
        first, second = await called_twice(tmp_path, remote, call_timeout=0.3)
    assert first["error"] == {"message": "it gave no answer within 0.3 seconds"}
    assert second["status"] == "completed"


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        (answered(500), "it answered with HTTP status 500"),
        (breaking, "it closed the connection"),
        (packed(10), "it sent a compressed answer, which was not asked for"),
        (
            answered(200, b" " * (33 * 2**20), content_type="application/json"),
            "it sent a message of more than 32 MiB",
        ),
        (answered(200, b"{}", content_type="application/json"), ""),
        (answered(200, b"hello", content_type="text/plain"), "Unexpected content type: text/plain"),
        (answered(202), "server answered a request with 202 Accepted"),
    ],
    ids=["500", "broken", "packed", "large", "none", "text", "202"],
)
async def test_an_odd_answer_to_a_call_fails_it_alone(tmp_path, odd, why) -> None:
    async with remote_server() as remote:

        async def once(scope, receive, send) -> None:
            del remote.answer["tools/call"]
            await odd(scope, receive, send)

        remote.answer["tools/call"] = once
        first, second = await called_twice(tmp_path, remote)
    assert first["status"] == "failed"
    assert why in first["error"]["message"]
    assert second["status"] == "completed"


@pytest.mark.parametrize(
    "answer",
    [
        answered(404),
        answered(
            404,
            b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no session"}}',
            content_type="application/json",
        ),
    ],
    ids=["bare", "words"],
)
async def test_a_server_that_forgot_its_session_is_greeted_again(tmp_path, answer) -> None:
    async with remote_server() as remote:

        async def once(scope, receive, send) -> None:
            del remote.answer["tools/call"]
            await answer(scope, receive, send)

        remote.answer["tools/call"] = once
        first, second = await called_twice(tmp_path, remote)
    assert (first["status"], second["status"]) == ("completed", "completed")
    assert remote.methods.count("initialize") == 2
    assert remote.methods.count("tools/call") == 3


async def test_a_server_that_does_not_take_the_end_of_its_session_is_left(tmp_path) -> None:
    async with remote_server() as remote:
        remote.answer["DELETE"] = hanging
        settings = with_servers(remote.settings())
        async with session(tmp_path, [ADD, says("ok")], settings=settings) as peer:
            await peer.run_turn(await peer.start_thread())
        assert remote.methods[-1] == "DELETE"
    [item] = peer.completed_items("mcpToolCall")
    assert item["status"] == "completed"


async def test_an_interrupt_does_not_wait_for_the_server(tmp_path) -> None:
    async with remote_server() as remote:
        taken = anyio.Event()

        async def hang(scope, receive, send) -> None:
            taken.set()
            await hanging(scope, receive, send)

        remote.answer["tools/call"] = hang
        settings = with_servers(remote.settings())
        async with session(tmp_path, [ADD], settings=settings) as peer:
            thread = await peer.start_thread()
            turn = await peer.start_turn(thread)
            await peer.until(lambda m: m.get("method") == "item/started" and "remote" in str(m))
            with anyio.fail_after(5):
                await taken.wait()
            await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
            assert (await peer.turn_end(turn))["status"] == "interrupted"
