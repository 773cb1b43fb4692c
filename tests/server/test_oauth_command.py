"""`agent mcp login` as a program: the keyring of the system, Ctrl-C, the browser that it opens."""

import os
import pty
import signal
import sys
from pathlib import Path

import anyio
import pytest
from oauth_side import BOUND, Home, agent, consent, logging_in, only_credentials

from fixtures.oauth.pair import Pair, pair
from tests.agent_process import open_agent

pytestmark = [pytest.mark.slow, pytest.mark.socket]

KEYRINGS = Path(__file__).parents[2] / "fixtures" / "oauth" / "keyrings"


@pytest.fixture
def home(tmp_path) -> Home:
    return Home(tmp_path / "home")


def with_keyring(home: Home, name: str) -> Path:
    shelf = home.path.with_name("shelf.json")
    home.environment |= {
        "PYTHON_KEYRING_BACKEND": name,
        "PYTHONPATH": str(KEYRINGS),
        "SHELF": str(shelf),
    }
    return shelf


async def log_in(home: Home, servers: Pair, store: str) -> str:
    """Log in; gives what was said on standard error."""
    home.configure(servers.url, store=store)
    async with logging_in(home) as login:
        await consent(login.address)
        done = await login.ended()
    assert done.status == 0, done.err
    return done.err


@pytest.mark.parametrize("store", ["auto", "keyring"])
async def test_a_keyring_has_the_credentials_and_logout_finds_them(home, store) -> None:
    shelf = with_keyring(home, "shelf.Shelf")
    async with pair() as servers:
        assert await log_in(home, servers, store) == ""
        tokens = servers.authority.tokens
        assert [one for one in tokens if one in shelf.read_text()]
        assert not [one for one in tokens if one in home.credentials.read_text()]
        home.configure(servers.url, store="file")
        done = await agent(home, "mcp", "logout", "docs")
    assert (done.status, done.out) == (0, "Removed OAuth credentials for 'docs'.\n")
    assert shelf.read_text() == "{}"
    assert not home.credentials.exists()


async def test_without_a_keyring_the_file_has_them_and_logout_works(home) -> None:
    home.environment["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    async with pair() as servers:
        assert await log_in(home, servers, "auto") == ""
        assert only_credentials(home)["access_token"] in servers.authority.tokens
    done = await agent(home, "mcp", "logout", "docs")
    assert (done.status, done.out, done.err) == (
        0,
        "Removed OAuth credentials for 'docs'.\n",
        "",
    )


async def test_a_keyring_that_hangs_is_left_for_the_file_and_that_is_said(home) -> None:
    with_keyring(home, "shelf.Hanging")
    async with pair() as servers:
        said = await log_in(home, servers, "auto")
        assert only_credentials(home)["access_token"] in servers.authority.tokens
    assert said == (
        "agent mcp login: the keyring cannot be used (it does not answer within 5 seconds); the "
        "credentials are in a file of the home\n"
    )


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)]
)
async def test_a_login_that_is_interrupted_leaves_nothing(home, number, status) -> None:
    async with pair() as servers:
        home.configure(servers.url)
        async with logging_in(home) as login:
            login.process.send_signal(number)
            done = await login.ended()
    assert done.status == status
    assert "Traceback" not in done.err
    assert not home.credentials.exists()


@pytest.mark.parametrize(
    ("environment", "words", "opens"),
    [
        ({"DISPLAY": ":9"}, [], True),
        ({"DISPLAY": ":9"}, ["--no-browser"], False),
        ({"DISPLAY": ":9", "SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}, [], False),
        ({}, [], False),
    ],
    ids=["desktop", "unwanted", "ssh", "console"],
)
async def test_a_browser_is_opened_where_somebody_sees_it(
    home, tmp_path, environment, words, opens
) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new\nmv {opened}.new {opened}\n')
    browser.chmod(0o755)
    home.environment |= {**environment, "BROWSER": str(browser)}
    async with pair() as servers:
        home.configure(servers.url)
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "reference_server", "mcp", "login", "docs", *words]
        process = await open_agent(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=home.variables
        )
        os.close(theirs)
        try:
            with anyio.fail_after(BOUND):
                text = ""
                while "\n\r\n" not in text:
                    text += (await anyio.to_thread.run_sync(os.read, ours, 4096)).decode()
                address = text.splitlines()[1]
                while opens and not opened.exists():
                    await anyio.lowlevel.checkpoint()
                await consent(address)
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
            os.close(ours)
    assert opened.exists() == opens
    if opens:
        assert opened.read_text().strip() == address
