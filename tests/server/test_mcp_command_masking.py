"""Masking in `agent mcp list` and `get`: the values that are hidden, and those shown unchanged."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_server.agent_mcp.display import ServerView, as_json
from reference_server.agent_mcp.masking import escape, mask_address, mask_words
from reference_server.config.mcp import McpServer


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--token", "abc"], ["--token", "*****"]),
        (["--api-key=abc", "--apiKey", "abc"], ["--api-key=*****", "--apiKey", "*****"]),
        (["-e", "GITHUB_TOKEN=/+abc=", "-e", "A=b"], ["-e", "GITHUB_TOKEN=*****", "-e", "A=b"]),
        (["--header", "Authorization: Bearer abc"], ["--header", "Authorization: *****"]),
        (["--header", "X-Api-Key: abc"], ["--header", "X-Api-Key: *****"]),
        (["-H", "X: Bearer abc"], ["-H", "X: Bearer *****"]),
        (["http://me:abc@h/p"], ["http://me:*****@h/p"]),
        (["--dsn=postgres://me:abc@h/p"], ["--dsn=postgres://me:*****@h/p"]),
        (["ghp_0123456789abcdef"], ["*****"]),
        (["--dir=/x", "sk-proj-0123456789"], ["--dir=/x", "*****"]),
        (["--password", "--next", "x"], ["--password", "--next", "x"]),
    ],
)
def test_arguments_that_look_like_secrets_are_hidden(words: list[str], shown: list[str]) -> None:
    assert mask_words(words) == shown


@pytest.mark.parametrize(
    "words",
    [
        ["--author", "me"],
        ["--keyboard=de", "--monkey", "x", "--tokenizer", "bpe", "--bypass", "x", "compass=1"],
        ["-y", "@scope/server-filesystem", "/home/me", "a b"],
        ["--env", "X=1", "--url", "http://h/p?page=2&q=a:b@c"],
        ["run", "python", "-c", "print('a = 1')", "C:\\\\x", "user@host:22"],
    ],
)
def test_other_arguments_are_shown_as_they_are(words: list[str]) -> None:
    assert mask_words(words) == words


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://h/mcp", "https://h/mcp"),
        ("https://me@h/mcp", "https://me@h/mcp"),
        ("https://me:a:b@c@h/mcp", "https://me:*****@h/mcp"),
        ("https://:pw@h", "https://:*****@h"),
        ("https://h?access_token=abc&a=b#x", "https://h?access_token=*****&a=b#x"),
        ("https://h/mcp?a=b;apikey=abc", "https://h/mcp?a=b;apikey=*****"),
    ],
)
def test_passwords_and_keys_in_an_address_are_hidden(address: str, shown: str) -> None:
    assert mask_address(address) == shown


@given(st.text())
def test_output_is_one_line_that_moves_no_cursor(text: str) -> None:
    shown = escape(text)
    assert shown.isprintable()
    assert shown == text or not text.isprintable()


@given(st.text(), st.text(min_size=1))
def test_json_is_ascii_that_gives_the_text_again(name: str, value: str) -> None:
    text = as_json({"name": name, "value": [value]})
    assert text.isascii()
    assert all(one.isprintable() for one in text.replace("\n", ""))
    assert json.loads(text) == {"name": name, "value": [value]}


@given(st.dictionaries(st.text(min_size=1), st.text(min_size=8), min_size=1, max_size=3))
def test_no_value_of_a_variable_is_shown(variables: dict[str, str]) -> None:
    secret = {name: f"secret-{value}" for name, value in variables.items()}
    shown = ServerView(McpServer("x", "c", env=secret), "unsupported").without_secrets()
    texts = [*shown.cells(), *shown.lines(), as_json(shown.fields())]
    assert not [text for text in texts if "secret-" in text]
