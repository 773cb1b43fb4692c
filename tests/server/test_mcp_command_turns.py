"""Turns after `agent mcp add` and `remove`: an added server is used, a removed one is not."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from agent_mcp import Home
from anyio import to_thread
from mcp_side import PROGRAM, TINY, offered
from model_side import calls, says
from session_peer import config, session

from reference_server.config.load import load_config
from reference_server.config.model import Config

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.socket,
    pytest.mark.usefixtures("mcp_sdk"),
]


def settings(home: Home) -> Config:
    """Return the settings that an agent reads as it starts, with the model of the tests."""
    return replace(config(), mcp_servers=load_config(home.config, {}).mcp_servers)


async def run(home: Home, *words: str) -> None:
    said = await to_thread.run_sync(lambda: home.mcp(*words))
    assert said.status == 0, said.err


async def test_a_server_that_was_added_is_called_with_its_words_and_variables(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    log = tmp_path / "it's all.log"
    program = (sys.executable, "-S", "-E", str(PROGRAM))
    await run(home, "add", "odd", "--env", "MINE=a=b", "--", *program, "--log", str(log))
    replies = [calls("mcp__odd__environment"), says("done")]
    async with session(home.config.parent, replies, settings=settings(home)) as peer:
        turn = await peer.run_turn(await peer.start_thread())
    assert turn["status"] == "completed"
    assert '"MINE": "a=b"' in peer.told_model()
    assert log.exists()


async def test_a_server_that_was_removed_is_offered_no_more(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for name in ("one", "two"):
        await run(home, "add", name, "--", sys.executable, "-S", "-E", str(TINY))
    await run(home, "remove", "one")
    async with session(home.config.parent, [says("done")], settings=settings(home)) as peer:
        await peer.run_turn(await peer.start_thread())
    names = offered(peer.side.bodies[0])
    assert "mcp__two__add" in names
    assert not [name for name in names if name.startswith("mcp__one__")]
