"""Credentials of a login, as a value and as JSON.

Where it is kept is in `store`.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from reference_server.oauth.failure import OAuthFailure

EXPIRY_MARGIN_SECONDS = 30.0
"""Seconds before its end at which a token is taken to have expired: a request takes a while."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The tokens for one server, and what it takes to renew them.

    `server` and `url` say whose they are; `issuer` is the authorization server, at whose
    `token_endpoint` the client `client_id` renews them. `client_auth` is the method of RFC 7591 by
    which the client shows its secret, `resource` the parameter of RFC 8707. `expires_at` is in
    seconds since 1970, None if the authorization server does not say.
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
        """Return whether the access token has ended, or is about to."""
        return self.expires_at is not None and time.time() > self.expires_at - EXPIRY_MARGIN_SECONDS

    @property
    def is_usable(self) -> bool:
        """Return whether a request can be made with them, if need be after a renewal."""
        return not self.is_expired or self.refresh_token is not None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the secrets, which must be shown nowhere."""
        secrets = (self.access_token, self.refresh_token, self.client_secret)
        return tuple(one for one in secrets if one)

    def to_json(self) -> dict[str, Any]:
        """Return the entry of the store."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, entry: object) -> "Credentials":
        """Read an entry. Raises OAuthFailure, which quotes nothing of it."""
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
    """Return the key of a server's entry: another address of the same name is another entry."""
    return f"{server}|{hashlib.sha256(url.encode()).hexdigest()[:32]}"


def parse_json(text: str | bytes) -> Any:
    """Parse JSON. Raises OAuthFailure."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise OAuthFailure("it is not JSON") from None
