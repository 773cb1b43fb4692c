"""Credentials of a login, and their JSON; `store` stores them."""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from reference_server.oauth.failure import OAuthFailure

EXPIRY_MARGIN_SECONDS = 30.0
"""Seconds before its end from which a token counts as expired, for the time of a request."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Tokens for the MCP server `server` at `url`, and the data for their renewal.

    `issuer` is the authorization server, at whose `token_endpoint` the client `client_id` renews
    them. `client_auth` is the client's authentication method of RFC 7591, `resource` the parameter
    of RFC 8707. `expires_at` is in seconds since 1970, None if unknown.
    """

    server: str
    url: str
    issuer: str
    token_endpoint: str
    client_id: str
    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    client_secret: str | None = field(default=None, repr=False)
    client_auth: str = "none"
    resource: str | None = None
    expires_at: float | None = None
    scopes: tuple[str, ...] = ()

    @property
    def is_expired(self) -> bool:
        """Return whether the access token has expired, or is about to."""
        return self.expires_at is not None and time.time() > self.expires_at - EXPIRY_MARGIN_SECONDS

    @property
    def is_usable(self) -> bool:
        """Return whether the token is valid or can be renewed."""
        return not self.is_expired or self.refresh_token is not None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the secrets, which no message may show."""
        secrets = (self.access_token, self.refresh_token, self.client_secret)
        return tuple(one for one in secrets if one)

    def to_json(self) -> dict[str, Any]:
        """Return the entry of the store."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, entry: object) -> "Credentials":
        """Parse an entry of the store. Raises OAuthFailure, which quotes none of its values."""
        if not isinstance(entry, dict):
            raise OAuthFailure("it is no table of credentials")
        members = cast("Mapping[str, Any]", entry)
        for name in ("server", "url", "issuer", "token_endpoint", "client_id", "access_token"):
            if not isinstance(members.get(name), str):
                raise OAuthFailure(f"its `{name}` is not a string")
        fields = {name: members[name] for name in cls.__dataclass_fields__ if name in members}
        for name in ("refresh_token", "client_secret", "resource"):
            if not isinstance(fields.get(name), str | None):
                raise OAuthFailure(f"its `{name}` is not a string")
        if not isinstance(fields.get("expires_at"), int | float | None):
            raise OAuthFailure("its `expires_at` is not a number")
        scopes = fields.get("scopes", ())
        if not isinstance(scopes, list | tuple):
            raise OAuthFailure("its `scopes` is not an array")
        fields["scopes"] = tuple(str(one) for one in cast("list[object]", scopes))
        fields["client_auth"] = str(fields.get("client_auth", "none"))
        return cls(**fields)


def key_of(server: str, url: str) -> str:
    """Return the key of a server's entry, which depends on name and address."""
    return f"{server}|{hashlib.sha256(url.encode()).hexdigest()[:32]}"


def parse_json(text: str | bytes) -> Any:
    """Parse JSON. Raises OAuthFailure if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise OAuthFailure("it is not JSON") from None
