"""A page on loopback answers the user's own page with the token, and nobody else."""

from collections.abc import Mapping

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from harness.cli.web.guard import MAX_BODY_BYTES, Guard

ORIGIN = "http://127.0.0.1:4321"
TOKEN = "t0ken"
KEY = {"x-harness-token": TOKEN}
COOKIE = {"cookie": f"other=1; harness-4321={TOKEN}"}
JSON = {"content-type": "application/json", "content-length": "2"}


async def _ask(
    method: str = "GET",
    path: str = "/",
    headers: Mapping[str, str] | None = None,
    *,
    origin: str = ORIGIN,
) -> httpx.Response:
    async def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"secret {len(await request.body())}")

    guard = Guard(Starlette(routes=[Route("/", answer, methods=["GET", "POST"])]), TOKEN)
    guard.origin = origin
    transport = httpx.ASGITransport(guard)
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
        return await client.request(method, path, headers=headers, content=b"{}")


async def test_the_printed_url_opens_and_sets_a_strict_cookie() -> None:
    answer = await _ask(path=f"/?token={TOKEN}")
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"]
    assert cookie == f"harness-4321={TOKEN}; Path=/; HttpOnly; SameSite=Strict"
    policy = answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("headers", [KEY, COOKIE, {**COOKIE, "origin": ORIGIN}])
async def test_the_token_may_come_as_a_header_or_cookie(headers: Mapping[str, str]) -> None:
    answer = await _ask("POST", headers={**headers, **JSON})
    assert (answer.status_code, answer.text) == (200, "secret 2")
    assert "set-cookie" not in answer.headers


REFUSED = {
    "no token": {},
    "a wrong token": {"x-harness-token": "t0kem"},
    "a cookie of another port": {"cookie": f"harness-4322={TOKEN}"},
    "a damaged cookie": {"cookie": "harness-4321"},
    "a token that is not ASCII": {"cookie": "harness-4321=\u00e9"},
    "another name for this machine": {**KEY, "host": "localhost:4321"},
    "a name that was bound to this machine": {**KEY, "host": "evil.example:4321"},
    "a name without the port": {**KEY, "host": "127.0.0.1"},
    "another origin": {**COOKIE, "origin": "https://evil.example"},
    "another port": {**COOKIE, "origin": "http://127.0.0.1:4322"},
    "no origin, as of a sandboxed frame": {**COOKIE, "origin": "null"},
    "a script of another site": {**COOKIE, "sec-fetch-site": "cross-site"},
    "an image on another port's page": {**COOKIE, "sec-fetch-site": "same-site"},
}


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
@pytest.mark.parametrize("case", REFUSED)
async def test_everybody_else_is_refused(case: str, method: str) -> None:
    headers = {name: value.encode("utf-8") for name, value in REFUSED[case].items()}
    answer = await _ask(method, headers={**JSON, **headers})  # pyright: ignore[reportArgumentType]
    assert answer.status_code == 403
    assert "secret" not in answer.text
    assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_a_link_from_elsewhere_needs_the_token_and_only_reads() -> None:
    visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert (await _ask(path=f"/?token={TOKEN}", headers=visit)).status_code == 200
    assert (await _ask(headers=visit)).status_code == 403
    assert (await _ask("POST", f"/?token={TOKEN}", {**visit, **JSON})).status_code == 403


async def test_nothing_is_served_before_the_port_is_known() -> None:
    assert (await _ask(headers={**KEY, "host": ""}, origin="")).status_code == 403


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("DELETE", {}, 405),
        ("POST", {"content-length": str(MAX_BODY_BYTES + 1)}, 413),
        ("POST", {"content-length": "-1"}, 413),
    ],
)
async def test_only_small_requests_are_read(
    method: str, headers: Mapping[str, str], status: int
) -> None:
    assert (await _ask(method, headers={**KEY, **headers})).status_code == status
