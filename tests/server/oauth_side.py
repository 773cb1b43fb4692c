"""OAuth logins for tests: `agent mcp login` as a child process, and a simulated browser.

The servers are those of `fixtures/oauth`.
"""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx
from anyio.abc import Process

from fixtures.oauth.pair import Pair
from tests.agent_process import open_agent

BOUND = 30.0


@dataclass
class Home:
    """An agent's home with a config.toml, and environment variables for the agent."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])

    def configure(self, url: str, *, store: str = "file", more: str = "", table: str = "") -> None:
        """Write config.toml: the server `docs`, and `more` before its table."""
        self.path.mkdir(exist_ok=True)
        before = f'mcp_oauth_credentials_store = "{store}"\n{more}\n'
        text = f'{before}[mcp_servers.docs]\nurl = "{url}"\n{table}\n'
        (self.path / "config.toml").write_text(text)

    @property
    def credentials(self) -> Path:
        return self.path / ".credentials.json"

    @property
    def variables(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {**kept, "HOME": str(self.path), "AGENT_HOME": str(self.path), **self.environment}


@dataclass
class Ended:
    """The exit status and output of a command."""

    status: int
    out: str
    err: str


async def agent(home: Home, *words: str) -> Ended:
    """Run `agent WORDS` to its end and return its output."""
    command = [sys.executable, "-m", "reference_server", *words]
    with anyio.fail_after(BOUND):
        async with await open_agent(
            command, env=home.variables, stdin=subprocess.DEVNULL
        ) as process:
            return await _end_of(process)


async def _end_of(process: Process, out: str = "") -> Ended:
    """Return the end of a process that has already said `out`."""
    assert process.stdout is not None
    assert process.stderr is not None
    out += "".join([part.decode() async for part in process.stdout])
    err = "".join([part.decode() async for part in process.stderr])
    return Ended(await process.wait(), out, err)


@dataclass
class Login:
    """A running `agent mcp login` that waits for a browser to visit `address`."""

    process: Process
    address: str
    out: str

    async def ended(self) -> Ended:
        with anyio.fail_after(BOUND):
            return await _end_of(self.process, self.out)

    @property
    def parameters(self) -> dict[str, str]:
        """Return the query parameters of `address`."""
        return {name: one[0] for name, one in parse_qs(urlsplit(self.address).query).items()}

    def back(self, **parameters: str) -> httpx.URL:
        """Return the redirect URL with these parameters."""
        return httpx.URL(self.parameters["redirect_uri"]).copy_merge_params(parameters)


@asynccontextmanager
async def logging_in(home: Home, *words: str, name: str = "docs") -> AsyncGenerator[Login]:
    """Start `agent mcp login`, and yield it when it has printed the address to visit."""
    command = [sys.executable, "-m", "reference_server", "mcp", "login", name, *words]
    async with await open_agent(command, env=home.variables) as process:
        try:
            assert process.stdout is not None
            text = ""
            with anyio.fail_after(BOUND):
                while "\n\n" not in text:
                    text += (await process.stdout.receive()).decode()
            yield Login(process, text.splitlines()[1], text)
        finally:
            if process.returncode is None:
                process.kill()


async def consent(address: str, answer: str = "allow") -> httpx.Response:
    """Visit the address and answer on its consent page; return the final response."""
    async with httpx.AsyncClient(follow_redirects=True, timeout=BOUND) as browser:
        page = await browser.get(address)
        page.raise_for_status()
        request = page.text.partition('name="request" value="')[2].partition('"')[0]
        form = {"request": request, "answer": answer}
        return await browser.post(page.url.join("/consent"), data=form)


async def visit(address: httpx.URL | str) -> httpx.Response:
    """Request an address as a browser does, without following redirects."""
    async with httpx.AsyncClient(timeout=BOUND) as browser:
        return await browser.get(address)


def only_credentials(home: Home) -> dict[str, Any]:
    """Return the only entry of the credentials file."""
    [entry] = json.loads(home.credentials.read_text()).values()
    return entry


async def logged_in(home: Home, pair: Pair, *words: str) -> Ended:
    """Log in to the server of a pair, with consent; return the command's output."""
    home.configure(pair.url)
    async with logging_in(home, *words) as login:
        await consent(login.address)
        return await login.ended()
