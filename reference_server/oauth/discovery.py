"""Discovery of the authorization server of an MCP server.

The metadata of the protected resource is requested first (RFC 9728), then that of the authorization
server (RFC 8414, or OpenID Connect Discovery). A server without resource metadata may be its own
authorization server, as in MCP 2025-03-26. Source: MCP "Authorization".
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import anyio
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    issuers_match,
)
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import BaseModel, ValidationError

from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.web import Answer, check_address, one_line, send_request

PATIENCE = 30.0
"""Seconds that the whole discovery may take."""


class NoLogin(OAuthFailure):
    """The server has no OAuth login."""


Document = TypeVar("Document", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """An authorization server that protects an MCP server.

    `resource`: the resource of its tokens (RFC 8707); `methods`: client authentication methods,
    None if unknown; `scopes`: those that the MCP server requires; `names_issuer`: whether its
    responses have `iss`.
    """

    issuer: str
    resource: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str | None
    methods: tuple[str, ...] | None
    scopes: tuple[str, ...]
    names_issuer: bool


async def has_login(url: str) -> bool:
    """Return whether an MCP server has an OAuth login. Raises OAuthFailure if it cannot tell."""
    try:
        await discover(url)
    except NoLogin:
        return False
    return True


async def discover(url: str) -> AuthorizationServer:
    """Return the authorization server of the MCP server at an address.

    Raises NoLogin if the server has no OAuth login, OAuthFailure if that cannot be found out.
    """
    check_address(url, "the MCP server", of=url)
    try:
        with anyio.fail_after(PATIENCE):
            return await _discover(url)
    except TimeoutError:
        raise OAuthFailure(
            f"the authorization server of {one_line(url)} was not found within {PATIENCE:g} seconds"
        ) from None


async def _discover(url: str) -> AuthorizationServer:
    challenge = _challenge(await send_request(url, "the MCP server", head_only=True))
    resource = await _resource(url, challenge.get("resource_metadata"))
    if resource is None:
        issuer, metadata = await _own_metadata(url)
        scopes, target = None, resource_url_from_server_url(url)
    else:
        issuer = str(resource.authorization_servers[0])
        check_address(issuer, "the authorization server", of=url)
        metadata = await _metadata(issuer, url)
        scopes, target = resource.scopes_supported, str(resource.resource)
    words = challenge["scope"].split() if "scope" in challenge else scopes or []
    supported = metadata.scopes_supported or []
    if words and "offline_access" in supported and "offline_access" not in words:
        words = [*words, "offline_access"]
    return _check_metadata(url, issuer, target, metadata, tuple(words))


def _challenge(answer: Answer) -> dict[str, str]:
    """Return the parameters of the challenge in a 401 or 403 response; {} if there is none."""
    if answer.status not in (401, 403):
        return {}
    parameters: dict[str, str] = {}
    for header in answer.headers.get_list("www-authenticate"):
        for name in ("resource_metadata", "scope"):
            pattern = rf'(?:^|[\s,]){name}\s*=\s*(?:"([^"]*)"|([^\s,"]+))'
            if match := re.search(pattern, header):
                parameters.setdefault(name, match[1] or match[2] or "")
    return {name: value for name, value in parameters.items() if value}


async def _resource(url: str, advertised_url: str | None) -> ProtectedResourceMetadata | None:
    description = "the metadata of the MCP server"
    for address in build_protected_resource_metadata_discovery_urls(advertised_url, url):
        check_address(address, f"the address of {description}", of=url)
        metadata = await _document(
            address, description, ProtectedResourceMetadata, must=address == advertised_url
        )
        if metadata is None:
            continue
        expected = resource_url_from_server_url(url)
        if not check_resource_allowed(expected, str(metadata.resource)):
            raise OAuthFailure(
                f"{description} is of another one, {one_line(str(metadata.resource))}"
            )
        return metadata
    return None


async def _metadata(issuer: str, url: str) -> OAuthMetadata:
    description = f"the metadata of the authorization server {one_line(issuer)}"
    for address in build_oauth_authorization_server_metadata_discovery_urls(issuer, url):
        metadata = await _document(address, description, OAuthMetadata)
        if metadata is not None:
            _check_issuer(metadata, issuer)
            return metadata
    raise OAuthFailure(f"{description} is not there")


async def _own_metadata(url: str) -> tuple[str, OAuthMetadata]:
    description = f"the metadata of the authorization server of {one_line(url)}"
    for issuer, address in _own_addresses(url):
        metadata = await _document(address, description, OAuthMetadata)
        if metadata is not None:
            _check_issuer(metadata, issuer)
            return str(metadata.issuer), metadata
    raise NoLogin(
        f"{one_line(url)} names no authorization server, and is none itself: it has no OAuth login"
    )


def _own_addresses(url: str) -> Iterator[tuple[str, str]]:
    """Yield the issuers that an MCP server itself may be, with the addresses of their metadata."""
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    path = parts.path.rstrip("/")
    issuers = [f"{origin}{path}", origin] if path else [origin]
    for issuer in issuers:
        for address in build_oauth_authorization_server_metadata_discovery_urls(issuer, url):
            yield issuer, address


def _check_issuer(metadata: OAuthMetadata, issuer: str) -> None:
    if not issuers_match(str(metadata.issuer), issuer):
        raise OAuthFailure(
            f"the authorization server {one_line(issuer)} calls itself "
            f"{one_line(str(metadata.issuer))}: its metadata may be another server's"
        )


async def _document(
    address: str, description: str, model: type[Document], *, must: bool = False
) -> Document | None:
    """Request and parse a document; None if it is missing, unless it `must` exist.

    Raises OAuthFailure if it cannot be requested or parsed.
    """
    answer = await send_request(address, description)
    if answer.status != 200:
        if must or answer.status == 429 or answer.status >= 500:
            raise OAuthFailure(
                f"{description}: {one_line(address)} answers with HTTP status {answer.status}"
            )
        return None
    try:
        return model.model_validate(answer.json())
    except OAuthFailure as error:
        # Some servers answer with a page at every address.
        if not must and not answer.is_json:
            return None
        raise OAuthFailure(
            f"{description}, from {one_line(address)}, cannot be read: {error}"
        ) from None
    except ValidationError as error:
        raise OAuthFailure(
            f"{description}, from {one_line(address)}, cannot be read: {_first_mistake(error)}"
        ) from None


def _first_mistake(error: ValidationError) -> str:
    first: Any = error.errors(include_url=False, include_context=False, include_input=False)[0]
    path = ".".join(str(step) for step in first["loc"])
    return one_line(f"`{path}`: {first['msg']}" if path else first["msg"])


def _check_metadata(
    url: str, issuer: str, resource: str, metadata: OAuthMetadata, scopes: tuple[str, ...]
) -> AuthorizationServer:
    challenges = metadata.code_challenge_methods_supported
    if challenges is not None and "S256" not in challenges:
        raise OAuthFailure(
            f"the authorization server {one_line(issuer)} does not know PKCE with S256"
        )
    registration = metadata.registration_endpoint
    methods = metadata.token_endpoint_auth_methods_supported
    return AuthorizationServer(
        issuer=str(metadata.issuer),
        resource=resource,
        authorization_endpoint=check_address(
            str(metadata.authorization_endpoint), "the authorization endpoint", of=url
        ),
        token_endpoint=check_address(str(metadata.token_endpoint), "the token endpoint", of=url),
        registration_endpoint=None
        if registration is None
        else check_address(str(registration), "the registration endpoint", of=url),
        methods=None if methods is None else tuple(methods),
        scopes=scopes,
        names_issuer=bool(metadata.authorization_response_iss_parameter_supported),
    )
