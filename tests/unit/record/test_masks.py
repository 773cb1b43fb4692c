"""Masks of secrets in a recording: secrets, texts that only look like one, and their masks."""

import json
import re

import pytest

from harness.trace.record.masks import MAX_SECRETS, Masker, secret_values

SECRETS = [
    ('{"headers":{"Authorization":"Bearer abcdefgh12345678"}}', "abcdefgh12345678"),
    ('{"apiKey":"0123456789"}', "0123456789"),
    ('{"api_key" : "short"}', "short"),
    ('{"accessToken":"tok en with spaces"}', "tok en with spaces"),
    ('{"client_secret":"a\\"b"}', 'a\\"b'),
    (r'{"body":"{\"api_key\":\"0123456789\"}"}', "0123456789"),
    ('{"text":"export OPENAI_API_KEY=0123456789abc"}', "0123456789abc"),
    ('{"text":"curl -H \'X-Api-Key: 0123456789abc\'"}', "0123456789abc"),
    ('{"text":"tool --api-key 0123456789abc --fast"}', "0123456789abc"),
    ('{"text":"tool --token=0123456789abc --fast"}', "0123456789abc"),
    ('{"url":"https://me:hidden@host.example/x"}', "hidden"),
    ('{"url":"https://host.example/x?a=1&access_token=hidden9&b=2"}', "hidden9"),
    ('{"url":"https://host.example/cb?code=hidden9"}', "hidden9"),
    ('{"text":"it is sk-proj-abcdefghijklmnop, see?"}', "sk-proj-abcdefghijklmnop"),
    ('{"text":"ghp_abcdefghijklmnopqrstuvwxyz0123456789"}', "ghp_abcdefghijklmnopqrstuvwxyz0123"),
    ('{"text":"xoxb-0123456789-abcdef"}', "xoxb-0123456789-abcdef"),
    ('{"text":"AKIAABCDEFGHIJKLMNOP"}', "AKIAABCDEFGHIJKLMNOP"),
    ('{"text":"eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeKKF2QT4"}', "SflKxwRJSMeKKF2QT4"),
]
HARMLESS = [
    '{"method":"thread/tokenUsage/updated","params":{"tokenUsage":{"totalTokens":15}}}',
    '{"text":"a token of my esteem, the key to it all: be basic"}',
    '{"tokens":12,"key":"name","keyboard":"qwerty"}',
    '{"url":"https://host.example:8080/path?x=1"}',
    '{"env_key":"OPENAI_API_KEY","bearer_token_env_var":"MY_TOKEN"}',
    '{"nextCursor":"abcdefghijklmnop"}',
    '{"text":"task-0123456789abcdefgh"}',
]


@pytest.mark.parametrize(("said", "secret"), SECRETS, ids=[secret for _, secret in SECRETS])
def test_a_secret_is_masked_and_the_rest_stays_json(said: str, secret: str) -> None:
    masked = Masker().mask_text(said)
    assert secret not in masked
    assert "<secret 1>" in masked
    assert json.loads(masked).keys() == json.loads(said).keys()


@pytest.mark.parametrize("said", HARMLESS)
def test_text_that_only_sounds_like_a_secret_stays(said: str) -> None:
    assert Masker().mask_text(said) == said


def test_equal_secrets_have_equal_masks_wherever_they_stand() -> None:
    masker = Masker()
    first = masker.mask_text('{"apiKey":"one-0123456789"}')
    second = masker.mask_text('{"text":"it was one-0123456789, then sk-abcdefghijklmnop"}')
    assert (first, second) == (
        '{"apiKey":"<secret 1>"}',
        '{"text":"it was <secret 1>, then <secret 2>"}',
    )
    assert masker.mask_text(second) == second


def test_values_of_variables_that_are_called_so_are_secrets() -> None:
    environ = {
        "OPENAI_API_KEY": "value-of-the-key",
        "MY_TOKEN": "short",
        "SSH_AUTH_SOCK": "/run/agent.sock",
        "KEYBOARD": "a-large-keyboard",
        "DB_PASSWORD": 'has "quotes" in it',
    }
    known = secret_values(environ)
    assert known == ["value-of-the-key", 'has "quotes" in it']
    said = json.dumps({"text": f"printenv: {environ['OPENAI_API_KEY']} {environ['DB_PASSWORD']}"})
    assert Masker(secrets=known).mask_text(said) == '{"text": "printenv: <secret 1> <secret 2>"}'


def test_a_pattern_of_the_users_is_masked_whole_or_by_its_group() -> None:
    masker = Masker(patterns=[re.compile(r"ticket-\d+"), re.compile(r"name=(\w+)")])
    assert masker.mask_text("ticket-77 of name=ada") == "<secret 1> of name=<secret 2>"


def test_the_word_behind_an_option_is_a_secret_of_any_length() -> None:
    words = ["agent", "--api-key", "k", "-c", "model_key=abcdefgh", "--token-limit", "5"]
    assert Masker().mask_words(words) == (
        "agent",
        "--api-key",
        "<secret 1>",
        "-c",
        "model_key=abcdefgh",
        "--token-limit",
        "5",
    )


def test_without_masks_everything_stays() -> None:
    masker = Masker(secrets=["value-of-the-key"], active=False)
    assert masker.mask_bytes(b'{"apiKey":"value-of-the-key"}') == b'{"apiKey":"value-of-the-key"}'
    assert masker.mask_words(["--token", "x"]) == ("--token", "x")


def test_bytes_that_are_no_text_keep_their_place() -> None:
    assert (
        Masker().mask_bytes(b'\xff {"apiKey":"0123456789"} \x00')
        == b'\xff {"apiKey":"<secret 1>"} \x00'
    )


def test_a_stream_of_tokens_does_not_fill_the_memory() -> None:
    masker = Masker()
    for number in range(MAX_SECRETS + 5):
        masker.mask_text(f'{{"token":"value-{number:08}"}}')
    last = f"value-{MAX_SECRETS + 4:08}"
    assert masker.mask_text(f'{{"token":"{last}"}}') == f'{{"token":"<secret {MAX_SECRETS + 5}>"}}'
    assert last in masker.mask_text(f"bare {last}")
