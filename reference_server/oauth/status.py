"""Authentication status of MCP servers, for `agent mcp list` and `get`.

Source: mcp-cli-and-sdk "MCP server configuration" has `authenticated` and `unsupported`; the others
are ours. Only a server with an OAuth login can be `not logged in`, so servers without stored
credentials are probed for one, all at the same time.
"""

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from reference_server.config.mcp import McpServer
from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.store import Store

AuthStatus = Literal["authenticated", "not logged in", "bearer token", "unsupported", "unknown"]
UNKNOWN: AuthStatus = "unknown"
ASKING = "asking MCP servers"
"""Name of the thread that probes servers."""
ASKING_SECONDS = 5.0
"""Seconds that all servers together have to answer."""
GRACE_SECONDS = 1.0
"""Further seconds after which the thread is abandoned: it may wait for a DNS lookup."""


def auth_statuses(servers: Sequence[McpServer], store: Store) -> list[AuthStatus]:
    """Return the status of each server.

    `unsupported`: a program, or a server without an OAuth login. `bearer token`: config.toml names
    the variable of its token, so it needs no login. `not logged in`: it has a login, but no usable
    stored credentials. `unknown`: it gave no answer in time, or is disabled and so not probed.
    """
    known: list[tuple[McpServer, AuthStatus | None]] = [
        (server, _known_status(server, store)) for server in servers
    ]
    urls = {server.url for server, status in known if status is None and server.enabled}
    answers = _ask(urls) if urls else {}
    return [status or answers.get(server.url) or UNKNOWN for server, status in known]


def _known_status(server: McpServer, store: Store) -> AuthStatus | None:
    """Return the status if the settings and the stored file show it, else None."""
    if not server.url:
        return "unsupported"
    if server.token_variable is not None:
        return "bearer token"
    with suppress(OAuthFailure):
        if store.has_usable(server.name, server.url):
            return "authenticated"
    with suppress(OAuthFailure):
        # A stored login shows that the server has one, even if it cannot be used.
        return "not logged in" if store.has_any(server.name, server.url) else None
    return None


def _ask(urls: set[str]) -> dict[str, AuthStatus]:
    """Return the status by url of servers that answer in time whether they have an OAuth login.

    They are probed in a thread, since a DNS lookup cannot be cancelled.
    """
    answers: dict[str, AuthStatus] = {}
    thread = threading.Thread(target=_ask_all, args=(urls, answers), name=ASKING, daemon=True)
    thread.start()
    thread.join(ASKING_SECONDS + GRACE_SECONDS)
    return dict(answers)


def _ask_all(urls: set[str], answers: dict[str, AuthStatus]) -> None:
    import anyio

    from reference_server.oauth.discovery import has_login

    async def ask(url: str) -> None:
        with suppress(OAuthFailure):  # It stays unknown.
            answers[url] = "not logged in" if await has_login(url) else "unsupported"

    async def run() -> None:
        with anyio.move_on_after(ASKING_SECONDS):
            async with anyio.create_task_group() as tasks:
                for url in urls:
                    tasks.start_soon(ask, url)

    anyio.run(run)
