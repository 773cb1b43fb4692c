"""The TLS settings of logins and of MCP servers: certificates are read where they are used."""

import ssl

import certifi
import pytest

from reference_server.oauth.web import tls_for

HTTP, HTTPS = "http://127.0.0.1:1/mcp", "https://mcp.example/mcp"


@pytest.fixture(autouse=True)
def certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", certifi.where())
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)


def trusted(settings: ssl.SSLContext) -> int:
    return settings.cert_store_stats()["x509_ca"]


def test_plain_http_reads_no_certificates_and_trusts_nobody() -> None:
    settings = tls_for(HTTP, None)
    assert trusted(settings) == 0
    assert (settings.verify_mode, settings.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.parametrize(
    ("url", "proxy"), [(HTTPS, None), (HTTPS, "http://proxy:1"), (HTTP, "https://proxy:1")]
)
def test_tls_to_the_server_or_a_proxy_checks_certificates(url: str, proxy: str | None) -> None:
    settings = tls_for(url, proxy)
    assert trusted(settings) > 0
    assert (settings.verify_mode, settings.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_certificates_are_read_once_and_again_when_the_environment_names_others(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tls_for(HTTPS, None)
    assert tls_for(HTTPS, None) is first
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    with pytest.raises(FileNotFoundError):
        tls_for(HTTPS, None)
