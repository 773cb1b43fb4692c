"""The column Auth of `agent mcp list`: only a server with an OAuth login is `not logged in`."""

import json
import time
from pathlib import Path

import anyio
import pytest
from agent_mcp import Home
from mcp_http_side import Remote, answered, hanging, remote_server, serving

from fixtures.oauth.pair import pair
from reference_server.oauth import status

pytestmark = [pytest.mark.slow, pytest.mark.socket]
NOBODY = "http://127.0.0.1:9/mcp"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    # The first question imports the MCP SDK, which takes long on a busy machine.
    monkeypatch.setattr(status, "ASKING_SECONDS", 30.0)
    return Home(tmp_path)


async def statuses(home: Home, **urls: str) -> dict[str, str]:
    """Return the words of `list` and `get` on these addresses; a name with `off` is disabled."""
    off = {True: "enabled = false\n", False: ""}
    home.write(
        "".join(
            f'[mcp_servers.{name}]\nurl = "{url}"\n{off["off" in name]}'
            for name, url in urls.items()
        )
    )
    said = await anyio.to_thread.run_sync(home.call, "list", "--json")
    assert (said.status, said.err) == (0, "")
    listed = {one["name"]: one["auth_status"] for one in json.loads(said.out)}
    for name, word in listed.items():
        shown = await anyio.to_thread.run_sync(home.call, "get", name)
        assert f"  auth: {word.replace('_', ' ')}\n" in shown.out
    return listed


async def test_a_server_with_a_login_is_not_logged_in_and_one_without_unsupported(home) -> None:
    async with (
        pair() as servers,
        remote_server() as open_to_all,
        serving(Remote(answered(401))) as locked,
    ):
        assert await statuses(
            home, login=servers.url, open=open_to_all.url, locked=f"{locked}/mcp"
        ) == {"login": "not_logged_in", "open": "unsupported", "locked": "unsupported"}


async def test_a_server_that_did_not_answer_is_unknown(home, monkeypatch) -> None:
    monkeypatch.setattr(status, "ASKING_SECONDS", 2.0)
    async with serving(Remote(hanging)) as silent, serving(Remote(answered(500))) as broken:
        before = time.monotonic()
        assert await statuses(
            home, nobody=NOBODY, silent=f"{silent}/mcp", broken=f"{broken}/mcp"
        ) == {"nobody": "unknown", "silent": "unknown", "broken": "unknown"}
        assert time.monotonic() - before < 10.0


async def test_a_disabled_server_is_not_asked(home) -> None:
    async with pair() as servers:
        assert await statuses(home, off=servers.url) == {"off": "unknown"}
        assert servers.server.paths == []


@pytest.mark.parametrize("command", ["get", "remove", "login", "logout"])
def test_an_unknown_name_is_status_1_for_every_command(home, command) -> None:
    home.write('[mcp_servers.docs]\ncommand = "true"\n')
    said = home.call(command, "dcos")
    assert said.status == 1
    assert "'dcos'" in said.out + said.err
    before = home.config.read_bytes()
    assert home.call(command, "docs").status == (1 if command == "login" else 0)
    assert (home.config.read_bytes() == before) == (command != "remove")
