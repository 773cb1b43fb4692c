"""Redaction of secrets in texts: the recognised forms, and texts left unchanged."""

import base64
import html
import json
from urllib.parse import quote

import pytest

from reference_server.config.model import Config, Provider
from reference_server.model.secrets import Secrets

KEY = 'sk-aB3/"x\\y+z%&=q'
PLAIN = "sk-proj-abcDEF_0123456789"


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04X}" for character in text)


def in_percent(text: str) -> str:
    return "".join(f"%{ord(character):02x}" for character in text)


FORMS = {
    "as it is": lambda key: key,
    "JSON": lambda key: json.dumps(key)[1:-1],
    "JSON in JSON": lambda key: json.dumps(json.dumps(key)[1:-1])[1:-1],
    "JSON with escaped slashes": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "JSON, every character": escaped,
    "percent": lambda key: quote(key, safe=""),
    "percent, lower case": in_percent,
    "percent, twice": lambda key: quote(quote(key, safe=""), safe=""),
    "a page": html.escape,
    "Python": lambda key: repr(key)[1:-1],
    "Python's bytes": lambda key: repr(key.encode())[2:-1],
}


@pytest.mark.parametrize("key", [KEY, PLAIN], ids=["odd", "plain"])
@pytest.mark.parametrize("form", FORMS)
def test_a_key_is_found_however_it_is_written(form: str, key: str) -> None:
    written = FORMS[form](key)
    assert Secrets([key]).redact(f"<{written}>") == "<[key]>"


@pytest.mark.parametrize("before", ["", "u", "us", "user:", "a longer name:"])
@pytest.mark.parametrize("after", ["", "x", ":x", "\r\nHost: a"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("key", [KEY, PLAIN])
def test_a_key_within_base64_is_found_wherever_it_stands(key, encode, before, after) -> None:
    written = encode((before + key + after).encode()).decode()
    clean = Secrets([key]).redact(f"Basic {written}!")
    head, mark, tail = clean.partition("[key]")
    assert mark
    assert head.startswith("Basic ")
    assert tail.endswith("!")
    # What is left of it is of the other text alone: six bits a character.
    assert 6 * len(head.removeprefix("Basic ")) <= 8 * len(before)
    assert 6 * len(tail.rstrip("=!")) <= 8 * len(after) + 4


@pytest.mark.parametrize("form", FORMS)
def test_of_a_text_that_was_cut_no_beginning_of_a_key_is_left(form: str) -> None:
    written = FORMS[form](KEY)
    secrets = Secrets([KEY])
    for length in range(1, len(written)):
        left = secrets.redact(f"words {written[:length]}", cut=True)
        assert left.removeprefix("words ") in ("", "[key]"), length


def test_a_text_without_the_key_stays_as_it_is() -> None:
    text = "sk-aB3 is not the key; 100 % of \\u0073 and a\\\\b are not either: sk-"
    assert Secrets([KEY]).redact(text) == text


@pytest.mark.parametrize("key", ["x", "none", "EMPTY"])
def test_a_placeholder_is_only_taken_out_where_it_is_a_credential(key: str) -> None:
    secrets = Secrets([key])
    assert secrets.redact(f"{key} of next {key}es") == f"{key} of next {key}es"
    assert secrets.redact(f"Authorization: Bearer {key}\r\n") == "Authorization: Bearer [key]\r\n"


def test_the_password_of_any_address_is_taken_out() -> None:
    text = "GET http://me:pw@proxy:80/ and https://a.invalid/x:y@z"
    clean = "GET http://me:[key]@proxy:80/ and https://a.invalid/x:y@z"
    assert Secrets([]).redact(text) == clean


def test_the_password_of_a_providers_address_is_taken_out_wherever_it_stands() -> None:
    secrets = Secrets.of(Provider("p", base_url="http://me:hush%2Fhush@h.invalid/v1"))
    assert secrets.redact("hush/hush or hush%2Fhush") == "[key] or [key]"


def test_the_password_of_a_proxy_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://me:hushhush@proxy.invalid:1")
    assert Secrets.of(Provider("p")).redact("it is hushhush") == "it is [key]"


def test_a_configuration_knows_the_secrets_of_all_its_providers() -> None:
    config = Config(
        providers={
            "a": Provider("a", env_key="A_KEY"),
            "b": Provider("b", base_url="https://me:second-key@b.invalid"),
        },
        environment={"A_KEY": "first-key", "PROVIDER_API_KEY": "third-key", "OTHER": "other-word"},
    )
    clean = Secrets.of_config(config).redact("first-key second-key third-key other-word")
    assert clean == "[key] [key] [key] other-word"


@pytest.mark.parametrize("heap", ["\\", "%25", "QUJD", "://a:", "sk-aB3/", "s"])
def test_a_heap_takes_no_longer_for_what_it_is_made_of(heap: str) -> None:
    # A pattern that goes back over what it has read would not come to an end here.
    text = heap * ((1 << 18) // len(heap))
    assert Secrets([KEY]).redact(text, cut=True).startswith(text[: 1 << 17])
