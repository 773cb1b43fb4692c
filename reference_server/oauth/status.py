"""The credentials of an MCP server, without asking it.

Source: mcp-cli-and-sdk "MCP server configuration" has `authenticated` and `unsupported`; the others
are ours.
"""

from typing import Literal

from reference_server.config.mcp import McpServer
from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.store import Store

AuthStatus = Literal["authenticated", "not logged in", "bearer token", "unsupported"]


def auth_status(server: McpServer, store: Store) -> AuthStatus:
    """Tell how requests to a server are authenticated; reads a file alone.

    `bearer token`: config.toml names a variable for it, which takes the place of a login.
    `unsupported`: a stdio server. Credentials that have expired and cannot be renewed, or cannot be
    read, do not count.
    """
    if not server.url:
        return "unsupported"
    if server.token_variable is not None:
        return "bearer token"
    try:
        return "authenticated" if store.has_usable(server.name, server.url) else "not logged in"
    except OAuthFailure:
        return "not logged in"
