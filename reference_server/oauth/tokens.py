"""Requests for tokens: client registration, exchange of a code, renewal.

Errors quote the authorization server's messages, without secrets that it was sent. Sources:
RFC 6749, RFC 7591.
"""

import base64
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from mcp.client.auth import OAuthRegistrationError
from mcp.client.auth.oauth2 import check_registration_usable
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
    TokenEndpointAuthMethod,
)
from pydantic import AnyUrl, ValidationError

from reference_server.oauth.credentials import Credentials
from reference_server.oauth.discovery import AuthorizationServer
from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.web import Answer, one_line, refusal, send_request

MAX_LIFETIME_SECONDS = 10 * 365 * 86_400
"""Maximum lifetime of a token, in seconds; a longer one counts as this."""
MAX_TOKEN_CHARACTERS = 100_000
"""Maximum characters of a token, for a header."""
HIDDEN = "[key]"


class NotRenewed(OAuthFailure):
    """The authorization server refused to renew a token; `is_final`: a retry is useless."""

    def __init__(self, words: str, *, is_final: bool) -> None:
        super().__init__(words)
        self.is_final = is_final


@dataclass(frozen=True, slots=True)
class Client:
    """A client of an authorization server; `auth` is its authentication method (RFC 7591)."""

    id: str
    secret: str | None = field(default=None, repr=False)
    auth: str = "none"


@dataclass(frozen=True, slots=True)
class Grant:
    """Tokens of an authorization server; `expires_at` in seconds since 1970, None if unknown."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_at: float | None
    scopes: tuple[str, ...] | None


async def register(
    authority: AuthorizationServer, redirect_uri: str, scopes: Iterable[str]
) -> Client:
    """Register a client for one login and return it. Raises OAuthFailure if that fails."""
    if authority.registration_endpoint is None:
        raise OAuthFailure(
            f"the authorization server {one_line(authority.issuer)} does not let clients register "
            "themselves; register one by hand, and set `oauth_client_id` of the server"
        )
    metadata = OAuthClientMetadata(
        client_name="agent",
        redirect_uris=[AnyUrl(redirect_uri)],
        token_endpoint_auth_method=_method(authority),
        scope=" ".join(scopes) or None,
    )
    message = metadata.model_dump(by_alias=True, mode="json", exclude_none=True)
    answer = await send_request(
        authority.registration_endpoint, "the registration endpoint", message=message
    )
    if answer.status not in (200, 201):
        raise OAuthFailure(f"the client could not be registered: {refusal(answer)}")
    try:
        client = OAuthClientInformationFull.model_validate(answer.json())
        check_registration_usable(client)
    except ValidationError:
        raise OAuthFailure("the answer to the registration names no client") from None
    except (OAuthFailure, OAuthRegistrationError) as error:
        raise OAuthFailure(
            f"the answer to the registration cannot be used: {one_line(str(error))}"
        ) from None
    return Client(
        client.client_id, client.client_secret, client.token_endpoint_auth_method or "none"
    )


def _method(authority: AuthorizationServer) -> TokenEndpointAuthMethod:
    """Return the client's authentication method, if possible "none": it cannot keep a secret."""
    methods = authority.methods
    if methods is None or "none" in methods:
        return "none"
    return "client_secret_basic" if "client_secret_basic" in methods else "client_secret_post"


async def exchange(
    authority: AuthorizationServer, client: Client, code: str, verifier: str, redirect_uri: str
) -> Grant:
    """Exchange the code of a login for tokens. Raises OAuthFailure if the server gives none."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": verifier,
        "resource": authority.resource,
    }
    answer = await _post(authority.token_endpoint, form, client)
    if answer.status not in (200, 201):
        words = _redact(refusal(answer), (code, verifier, client.secret))
        raise OAuthFailure(f"the authorization server gave no token: {words}")
    return _read_grant(answer)


async def renew(old: Credentials) -> Credentials:
    """Return new credentials, requested with the refresh token. Raises OAuthFailure, NotRenewed."""
    if old.refresh_token is None:
        raise OAuthFailure("the token has expired, and there is no other to renew it with")
    form = {"grant_type": "refresh_token", "refresh_token": old.refresh_token}
    if old.resource is not None:
        form["resource"] = old.resource
    client = Client(old.client_id, old.client_secret, old.client_auth)
    answer = await _post(old.token_endpoint, form, client)
    if answer.status not in (200, 201):
        words = _redact(refusal(answer), old.secrets)
        # RFC 6749, 5.2: the refresh token has expired, or is not this client's.
        is_final = answer.status in (400, 401) and "`invalid_grant`" in words
        raise NotRenewed(f"the token was not renewed: {words}", is_final=is_final)
    new = _read_grant(answer)
    return replace(
        old,
        access_token=new.access_token,
        refresh_token=new.refresh_token or old.refresh_token,
        expires_at=new.expires_at,
        scopes=old.scopes if new.scopes is None else new.scopes,
    )


async def _post(endpoint: str, form: Mapping[str, str], client: Client) -> Answer:
    headers: dict[str, str] = {}
    fields = {**form, "client_id": client.id}
    if client.secret is not None and client.auth == "client_secret_basic":
        pair = f"{quote(client.id, safe='')}:{quote(client.secret, safe='')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    elif client.secret is not None and client.auth == "client_secret_post":
        fields["client_secret"] = client.secret
    return await send_request(endpoint, "the token endpoint", form=fields, headers=headers)


def _read_grant(answer: Answer) -> Grant:
    try:
        token = OAuthToken.model_validate(answer.json())
    except OAuthFailure as error:
        raise OAuthFailure(f"the answer of the token endpoint cannot be used: {error}") from None
    except ValidationError as error:
        # The value of a wrong member may be a token.
        names = sorted({str(problem["loc"][0]) for problem in error.errors() if problem["loc"]})
        problem = f"its `{names[0]}` is missing or wrong" if names else "it is no JSON object"
        raise OAuthFailure(f"the answer of the token endpoint cannot be used: {problem}") from None
    for secret in (token.access_token, token.refresh_token):
        if secret is not None and not (
            0 < len(secret) <= MAX_TOKEN_CHARACTERS and secret.isascii() and secret.isprintable()
        ):
            raise OAuthFailure("the authorization server gave a token that no header can hold")
    lifetime = token.expires_in
    return Grant(
        access_token=token.access_token,
        refresh_token=token.refresh_token,
        expires_at=None
        if lifetime is None
        else time.time() + min(max(lifetime, 0), MAX_LIFETIME_SECONDS),
        scopes=None if token.scope is None else tuple(token.scope.split()),
    )


def _redact(words: str, secrets: Iterable[str | None]) -> str:
    for secret in secrets:
        if secret:
            words = words.replace(secret, HIDDEN)
    return words
