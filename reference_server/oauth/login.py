"""A login, from the address of an MCP server to its credentials.

The caller prints and opens a browser.
"""

import base64
import hashlib
import secrets
from collections.abc import Callable, Sequence
from urllib.parse import urlencode, urlsplit

import anyio

from reference_server.config.mcp import McpServer
from reference_server.oauth.callback import Callback, Code, login_callback
from reference_server.oauth.credentials import Credentials
from reference_server.oauth.discovery import AuthorizationServer, discover
from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.tokens import Client, Grant, exchange, register
from reference_server.oauth.web import one_line


async def login(
    server: McpServer,
    scopes: Sequence[str],
    *,
    port: int,
    patience: float,
    show: Callable[[str], None],
    keep: Callable[[Credentials], None],
) -> None:
    """Log in to a server, and pass the credentials to `keep`. Raises OAuthFailure if that fails.

    `show` gets the address to visit. Requested are `scopes`, else those of config.toml, else those
    that the server names. The browser's redirect is awaited for `patience` seconds at `port`, 0 for
    any free one.
    """
    authority = await discover(server.url)
    requested = tuple(scopes) or server.scopes or authority.scopes
    failure: OAuthFailure | None = None
    async with login_callback(port) as (state, callback):
        words = "the login was ended"
        try:
            client = await _client(server, authority, callback, requested)
            verifier = secrets.token_urlsafe(64)
            show(_address(authority, client, callback.redirect_uri, state, verifier, requested))
            code = await _code(callback, patience)
            _check_issuer(authority, code)
            grant = await exchange(authority, client, code.code, verifier, callback.redirect_uri)
            credentials = _credentials(server, authority, client, grant, requested)
            await anyio.to_thread.run_sync(keep, credentials)
            words = ""
        except OAuthFailure as error:
            # Raised below, outside the task group, which would wrap it in an exception group.
            failure, words = error, str(error)
        finally:
            await callback.end(words)
    if failure is not None:
        raise failure


async def _client(
    server: McpServer, authority: AuthorizationServer, callback: Callback, scopes: Sequence[str]
) -> Client:
    if server.client_id is not None:
        return Client(server.client_id)
    return await register(authority, callback.redirect_uri, scopes)


def _credentials(
    server: McpServer,
    authority: AuthorizationServer,
    client: Client,
    grant: Grant,
    scopes: tuple[str, ...],
) -> Credentials:
    return Credentials(
        server=server.name,
        url=server.url,
        issuer=authority.issuer,
        token_endpoint=authority.token_endpoint,
        client_id=client.id,
        access_token=grant.access_token,
        refresh_token=grant.refresh_token,
        client_secret=client.secret,
        client_auth=client.auth,
        resource=authority.resource,
        expires_at=grant.expires_at,
        scopes=scopes if grant.scopes is None else grant.scopes,
    )


async def _code(callback: Callback, patience: float) -> Code:
    try:
        with anyio.fail_after(patience):
            return await callback.code()
    except TimeoutError:
        words = f"the browser did not come back within {patience:g} seconds"
        if callback.strays:
            words += ", but with the answer to another login (wrong state)"
        raise OAuthFailure(words) from None


def _address(
    authority: AuthorizationServer,
    client: Client,
    redirect_uri: str,
    state: str,
    verifier: str,
    scopes: Sequence[str],
) -> str:
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    parameters = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": challenge.decode().rstrip("="),
        "code_challenge_method": "S256",
        "resource": authority.resource,
    }
    if scopes:
        parameters["scope"] = " ".join(scopes)
    if "offline_access" in scopes:
        parameters["prompt"] = "consent"  # OpenID Connect Core, 11
    between = "&" if urlsplit(authority.authorization_endpoint).query else "?"
    return f"{authority.authorization_endpoint}{between}{urlencode(parameters)}"


def _check_issuer(authority: AuthorizationServer, code: Code) -> None:
    """Raise OAuthFailure for a response of another authorization server (RFC 9207, 2.4)."""
    if code.issuer is None and authority.names_issuer:
        raise OAuthFailure("the answer in the browser does not name the authorization server")
    if code.issuer is not None and code.issuer != authority.issuer:
        raise OAuthFailure(
            f"the answer in the browser comes from {one_line(code.issuer)}, not from "
            f"{one_line(authority.issuer)}"
        )
