"""A turn that calls the tools of a protected MCP server: the token, its renewal, its end."""

from dataclasses import replace

import pytest
from model_side import calls, says
from oauth_side import Home, logged_in
from session_peer import config, session

from fixtures.oauth.pair import Pair, pair
from reference_server.config.mcp import McpServer
from reference_server.config.model import Config

pytestmark = [pytest.mark.slow, pytest.mark.socket, pytest.mark.usefixtures("mcp_sdk")]

ADD = calls("mcp__docs__add", a=2, b=3)


@pytest.fixture
def home(tmp_path) -> Home:
    return Home(tmp_path / "home")


def settings(servers: Pair, **more) -> Config:
    server = McpServer("docs", url=servers.url, **more)
    return replace(config(), mcp_servers={"docs": server}, mcp_oauth_credentials_store="file")


async def test_a_turn_calls_a_tool_with_the_token(home) -> None:
    async with pair() as servers:
        assert (await logged_in(home, servers)).status == 0
        async with session(home.path, [ADD, says("ok")], settings=settings(servers)) as peer:
            await peer.run_turn(await peer.start_thread())
    assert peer.told_model() == "the sum is 5"
    assert peer.params_of("error") == []
    [token] = {one for one in servers.server.tokens if one is not None}
    assert token.removeprefix("Bearer ") in servers.authority.tokens
