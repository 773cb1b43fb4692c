"""OAuth logins in this process, for tests of their failures."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx
from mcp_http_side import App, answered
from oauth_side import BOUND, consent

from fixtures.oauth.pair import Pair
from reference_server.config.home import Home as HomeFolder
from reference_server.config.mcp import McpServer
from reference_server.oauth.credentials import Credentials
from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.login import login
from reference_server.oauth.store import Store

PROTECTED = "/.well-known/oauth-protected-resource/mcp"
ISSUER = "/.well-known/oauth-authorization-server"
JSON = {"content_type": "application/json"}


@dataclass
class Attempt:
    """A login in this process: addresses shown, credentials stored, and the failure if any."""

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
        """Return the redirect URL with these parameters and the state."""
        asked = httpx.URL(self.address).params
        return httpx.URL(asked["redirect_uri"]).copy_merge_params(
            {"state": asked["state"], **parameters}
        )


@asynccontextmanager
async def attempt(url: str, *, patience: float = BOUND, **more: Any) -> AsyncGenerator[Attempt]:
    """Log in while the block acts as the browser; after the block the result is in the attempt."""
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
    """Try a login that fails before it shows an address; return the failure."""
    async with attempt(url) as made:
        pass
    assert made.addresses == []
    return made.failure


def document(members: dict[str, Any]) -> App:
    return answered(200, json.dumps(members).encode(), **JSON)


def resource_of(servers: Pair, **members: Any) -> App:
    return document(
        {"resource": servers.url, "authorization_servers": [servers.front.url], **members}
    )


async def log_in(store: Store, servers: Pair) -> Credentials:
    """Log in to the server of a pair, store the credentials and return them."""
    async with attempt(servers.url) as made:
        await made.shown.wait()
        await consent(made.address)
    [credentials] = made.kept
    store.save(credentials)
    return credentials


def file_store(home: Path) -> Store:
    """Return the credential store of a home, without a keyring."""
    return Store(HomeFolder(home), "file")
