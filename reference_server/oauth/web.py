"""Requests of a login: limited in time and size, to safe addresses, without redirects.

`discovery` and `tokens` interpret the answers.
"""

import ipaddress
import json
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2

from reference_server import VERSION
from reference_server.brief import brief
from reference_server.model.pool import describe_route, is_secure, proxy_for
from reference_server.oauth.credentials import parse_json
from reference_server.oauth.failure import OAuthFailure

PATIENCE = 10.0
"""Seconds that one request may take."""
MAX_ANSWER_BYTES = 2**20
"""Maximum bytes of an answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request."""

    status: int
    headers: httpx2.Headers
    body: bytes = field(repr=False)

    @property
    def is_json(self) -> bool:
        """Return whether its content type is JSON."""
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return kind == "application/json" or kind.endswith("+json")

    def json(self) -> Any:
        """Return the parsed body. Raises OAuthFailure if it is not JSON."""
        return parse_json(self.body)


def one_line(text: str) -> str:
    """Return a server's text as one short line without control characters."""
    return brief("".join(one if one.isprintable() else " " for one in text).strip(), 300)


def is_loopback(url: str) -> bool:
    """Return whether the host of a URL is localhost or a loopback address."""
    host = (urlsplit(url).hostname or "").lower()
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_this_machine(url: str) -> bool:
    """Return whether the host of a URL is this machine, in any notation that a system accepts.

    Examples: `127.1`, `0.0.0.0`, `::ffff:127.0.0.1`. Names are not resolved: a server here with
    another name would need a certificate for it.
    """
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    try:
        # As the C library parses it: parts may be missing, octal or hexadecimal.
        address = ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, UnicodeEncodeError):
        try:
            ipv6 = ipaddress.IPv6Address(host)
        except ValueError:
            return False
        address = ipv6.ipv4_mapped or ipv6
    return address.is_loopback or address.is_unspecified


def check_address(url: str, name: str, *, of: str) -> str:
    """Return the address if requests with secrets may go there; else raise OAuthFailure.

    It must be https, or http on loopback. If the MCP server, at `of`, is elsewhere, it must not be
    on this machine, whose programs trust local requests. `name` describes it in messages.
    """
    subject = f"{name} is {one_line(url)}, which"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise OAuthFailure(f"{subject} is no address") from None
    if not parts.hostname or parts.scheme not in ("http", "https"):
        raise OAuthFailure(f"{subject} is not an https address")
    if is_this_machine(url) and not is_this_machine(of):
        raise OAuthFailure(f"{subject} is inside this machine, and the MCP server is not")
    if parts.scheme == "http" and not is_loopback(url):
        raise OAuthFailure(f"{subject} is not an https address: tokens would be sent in the open")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise OAuthFailure(f"{name} has a login or a fragment in its address")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise OAuthFailure(f"{subject} has characters that an address cannot have")
    return url


async def send_request(
    url: str,
    name: str,
    *,
    form: Mapping[str, str] | None = None,
    message: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    head_only: bool = False,
) -> Answer:
    """Send one request, GET, or POST of a form or a JSON message, and return the answer.

    Redirects are not followed. With `head_only` the body, which may never end, is not read.
    Raises OAuthFailure if there is no answer within PATIENCE or it is too large.
    """
    all_headers = {
        "user-agent": f"agent/{VERSION}",
        "accept": "application/json",
        "accept-encoding": "identity",
        **(headers or {}),
    }
    try:
        with anyio.fail_after(PATIENCE):
            # In a thread: reading the certificates of the machine may take a while.
            transport = await anyio.to_thread.run_sync(_transport, url)
            async with httpx2.AsyncClient(
                transport=transport, headers=all_headers, trust_env=False, timeout=None
            ) as client:
                method = "GET" if form is None and message is None else "POST"
                async with client.stream(method, url, data=form, json=message) as response:
                    body = b"" if head_only else await _read_body(response, name)
                    return Answer(response.status_code, response.headers, body)
    except TimeoutError:
        raise OAuthFailure(
            f"{name} does not answer within {PATIENCE:g} seconds ({describe_route(url)})"
        ) from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        words = one_line(str(error)) or type(error).__name__
        raise OAuthFailure(f"{name} cannot be reached: {words} ({describe_route(url)})") from None


def _transport(url: str) -> httpx2.AsyncHTTPTransport:
    proxy = proxy_for(url)
    return httpx2.AsyncHTTPTransport(verify=tls_for(url, proxy), proxy=proxy)


def tls_for(url: str, proxy: str | None) -> ssl.SSLContext:
    """Return the TLS settings for requests to `url`; without TLS they trust no certificate.

    The machine's certificates are read once, if needed: it takes 20 ms. Raises OSError if those
    that the environment names cannot be read.
    """
    if is_secure(url) or is_secure(proxy or ""):
        return _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@lru_cache(maxsize=1)
def _certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    del file, folder  # httpx2 reads both from the environment.
    return httpx2.create_ssl_context()


async def _read_body(response: httpx2.Response, name: str) -> bytes:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise OAuthFailure(f"{name} sent a compressed answer, which was not asked for")
    body = b""
    async for part in response.aiter_raw():
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise OAuthFailure(f"{name} sent more than {MAX_ANSWER_BYTES // 2**20} MiB")
    return body


def refusal(answer: Answer) -> str:
    """Return the status of an OAuth error response, with its error and description if it has them.

    Source: RFC 6749, 5.2.
    """
    status = f"HTTP status {answer.status}"
    if 300 <= answer.status < 400:
        return f"{status}: a redirect, which is not followed"
    try:
        members = json.loads(answer.body)
        error, description = members.get("error"), members.get("error_description")
    except (ValueError, RecursionError, AttributeError):
        return status
    if not isinstance(error, str):
        return status
    words = f": {one_line(description)}" if isinstance(description, str) and description else ""
    return f"{status}, `{one_line(error)}`{words}"
