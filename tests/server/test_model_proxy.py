"""Choice of the proxy to the model from the environment."""

from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest
from model_side import ModelSide, over_a_socket, says

from reference_server.config.model import Provider
from reference_server.model.client import ModelClient
from reference_server.model.errors import ModelError
from reference_server.model.events import ModelEvent
from reference_server.model.pool import describe_route, proxy_for

NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("environment", "address", "proxy"),
    [
        ({}, "https://model.invalid/v1", None),
        ({"HTTPS_PROXY": "http://p:1"}, "https://model.invalid/v1", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1"}, "http://model.invalid/v1", None),
        ({"https_proxy": "p:1"}, "https://model.invalid/v1", "http://p:1"),
        ({"ALL_PROXY": "http://p:2"}, "http://model.invalid/v1", "http://p:2"),
        (
            {"HTTP_PROXY": "http://p:1", "NO_PROXY": "127.0.0.1,model.invalid"},
            "http://model.invalid/v1",
            None,
        ),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "*"}, "http://model.invalid/v1", None),
        ({"ALL_PROXY": "http://p:2"}, "no address", None),
        ({"ALL_PROXY": "http://p:2"}, "http://[", None),
    ],
)
def test_the_environment_names_the_proxy(
    environment: dict[str, str], address: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(address) == proxy


@pytest.mark.socket
async def test_a_call_goes_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    side = ModelSide([says("a")])
    events: list[ModelEvent] = []

    async def receive(some: list[ModelEvent]) -> None:
        events.extend(some)

    async with over_a_socket(side) as url, anyio.create_task_group() as tasks:
        monkeypatch.setenv("HTTP_PROXY", url.removesuffix("/v1"))
        client = ModelClient(tasks)
        with anyio.fail_after(5):
            await client.call(Provider("p", base_url="http://model.invalid/v1"), {}, receive)
        await client.close()
    # Of a proxy the whole address is asked.
    assert side.paths == ["http://model.invalid/v1/responses"]
    assert side.headers[0]["host"] == "model.invalid"
    assert events


async def failure(*, retryable: bool = False, **fields: Any) -> ModelError:
    """Return the error of a call that cannot be made, since nothing listens at its address."""
    given: dict[str, Any] = {"base_url": "http://127.0.0.1:1/v1", **fields}
    found: list[ModelError] = []
    async with anyio.create_task_group() as tasks:
        client = ModelClient(tasks)
        try:
            await client.call(Provider("p", **given), {}, _ignore)
        except ModelError as error:
            found.append(error)
        await client.close()
    assert [error.retryable for error in found] == [retryable]
    return found[0]


async def _ignore(_events: list[ModelEvent]) -> None:
    """No event comes."""


@pytest.mark.parametrize(
    "proxy",
    [
        "socks5://127.0.0.1:1",
        "odd://p",
        "http://[",
        "http://p:port",
        "http://a b",
        "http://",
        "http://p\x01:1",
    ],
)
async def test_a_proxy_that_is_none_is_said_so(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    error = await failure(base_url="http://model.invalid/v1")
    assert error.info == "HttpConnectionFailed"
    assert "HTTP_PROXY" in error.details
    assert "http://host:port" in error.details


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "odd://p", "http://127.0.0.1:99999"])
async def test_a_proxy_that_cannot_be_used_is_a_connection_that_failed(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    error = await failure(base_url="http://model.invalid/v1")
    assert (error.info, bool(error.details)) == ("HttpConnectionFailed", True)


async def test_a_port_that_is_none_is_a_connection_that_failed() -> None:
    error = await failure(base_url="http://127.0.0.1:99999/v1")
    assert error.info == "HttpConnectionFailed"
    assert "port" in error.details


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
async def test_certificates_that_are_not_there_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setenv(name, str(tmp_path / "none"))
    error = await failure(base_url="https://127.0.0.1:1/v1")
    assert error.info == "HttpConnectionFailed"
    assert f"{name} ({tmp_path / 'none'})" in error.details
    assert "No such file" in error.details


async def test_a_file_without_certificates_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "empty.pem").touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "empty.pem"))
    error = await failure(base_url="https://127.0.0.1:1/v1")
    assert f"SSL_CERT_FILE ({tmp_path / 'empty.pem'})" in error.details


@pytest.mark.parametrize("key", ["secret\nX-Other: 1", "secr\u00e9t", "\u4e2dsecret"])
async def test_a_key_that_no_header_can_hold_is_said_so_and_not_shown(key: str) -> None:
    error = await failure(api_key=key)
    assert error.info == "Unauthorized"
    assert "PROVIDER_API_KEY" in error.details
    assert "secr" not in str(error)


@pytest.mark.parametrize(
    ("environment", "route"),
    [
        ({}, "http://127.0.0.1:1"),
        ({"no_proxy": "*", "HTTP_PROXY": "http://127.0.0.1:2"}, "http://127.0.0.1:1"),
        (
            {"HTTP_PROXY": "http://me:sec/ret@127.0.0.1:2/x"},
            "http://127.0.0.1:1 through the proxy http://127.0.0.1:2, from HTTP_PROXY",
        ),
        (
            {"http_proxy": "127.0.0.1:2", "HTTP_PROXY": "http://127.0.0.1:3"},
            "http://127.0.0.1:1 through the proxy http://127.0.0.1:2, from http_proxy",
        ),
        (
            {"ALL_PROXY": "http://127.0.0.1:2", "HTTPS_PROXY": "http://127.0.0.1:3"},
            "http://127.0.0.1:1 through the proxy http://127.0.0.1:2, from ALL_PROXY",
        ),
    ],
)
@pytest.mark.socket
async def test_connection_that_failed_names_address_proxy_and_variable(
    environment: dict[str, str], route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = describe_route("http://user:pass@127.0.0.1:1/v1")
    assert found == route
    if "sec/ret" not in str(environment):
        details = (await failure(retryable=True)).details
        assert details.endswith(f"({route})")


@pytest.mark.socket
async def test_proxy_that_never_answers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        found = await failure(retryable=True, stream_idle_timeout_ms=50)
    assert found.details.endswith(f"through the proxy http://127.0.0.1:{port}, from HTTP_PROXY)")
