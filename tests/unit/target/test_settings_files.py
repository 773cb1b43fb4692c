"""Settings files of a server: their formats, and the place of a scenario's settings in them."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.client.target.overrides import unplaced_settings, with_overrides
from harness.client.target.profile import Profile, parse_profile
from harness.client.target.run_folders import write_home_files
from harness.client.target.settings_files import Settings, file_text, place_settings
from harness.errors import UsageError

FILES = """
[home."a.json".llm]
url = "{model_url}/x"
day = 2027-01-31
[home."b/b.yaml"]
list = [{ url = "{model_url}" }]
[home.".env"]
URL = "{model_url}"
ON = true
SAID = 'a "b" $c'
[home."c.toml"]
url = "{model_url}"
[home.plain]
url = "{model_url}"
[home]
"d.conf" = '''
url {model_url} {other} {{home}}
'''
[formats]
plain = "json"
"""


def mine(text: str, head: str = "") -> Profile:
    return parse_profile(f'name = "mine"\nextends = "none"\n{head}\n{text}', "mine.toml")


def test_files_are_written_in_their_formats_with_the_placeholders(tmp_path: Path) -> None:
    write_home_files(tmp_path, mine(FILES), {"model_url": "http://m/v1", "home": "/h"})
    text = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*.*")}
    assert json.loads(text["a.json"]) == {"llm": {"url": "http://m/v1/x", "day": "2027-01-31"}}
    assert yaml.safe_load(text["b/b.yaml"]) == {"list": [{"url": "http://m/v1"}]}
    assert text[".env"] == 'URL=http://m/v1\nON=true\nSAID="a \\"b\\" \\$c"\n'
    assert tomllib.loads(text["c.toml"]) == {"url": "http://m/v1"}
    assert text["d.conf"] == "url http://m/v1 {other} {/h}\n"
    assert json.loads((tmp_path / "plain").read_text()) == {"url": "http://m/v1"}


LINES = st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=12)


@given(st.dictionaries(st.from_regex(r"[A-Z]{1,4}", fullmatch=True), LINES, max_size=4))
def test_a_shell_reads_the_values_of_a_dotenv_file_as_they_are(values: dict[str, str]) -> None:
    text = file_text(".env", values, {})
    words = shlex.split(text.replace("\\$", "$").replace("\\`", "`"))
    assert dict(word.split("=", 1) for word in words) == values


def test_a_table_in_a_dotenv_file_is_refused_with_its_place() -> None:
    with pytest.raises(UsageError, match=r"mine\.toml:4:1: home: \.env: 'a' is a table or list"):
        mine('[home.".env".a]\nb = 1')


CONFIG: dict[str, Any] = {
    "model": "m",
    "model_providers": {"mock": {"request_max_retries": 0, "name": "x"}},
    "mcp_servers": {"tiny": {"command": "{python}"}},
}
NAMES = {
    "model": "llm.model",
    'model_providers."*".request_max_retries': "env.RETRIES",
    "model_providers.mock.name": "",
    "mcp_servers": "mcp.servers",
}


def test_settings_of_a_scenario_go_to_their_names_in_the_file_and_to_variables() -> None:
    placed = place_settings(Settings(file="a.json", names=NAMES), CONFIG)
    assert placed.table == {
        "llm": {"model": "m"},
        "mcp": {"servers": {"tiny": {"command": "{python}"}}},
    }
    assert (placed.env, placed.unknown) == ({"RETRIES": "0"}, [])
    names = "".join(f"'{key}' = {json.dumps(value)}\n" for key, value in NAMES.items())
    names = names.replace('\'model_providers."*".request', '"model_providers.\\"*\\".request')
    names = names.replace("retries' =", 'retries" =')
    head = f'[home."a.json".llm]\nurl = "u"\n[settings]\nfile = "a.json"\n[settings.names]\n{names}'
    profile = mine(head)
    assert unplaced_settings(profile, CONFIG) == ""
    adapted = with_overrides(profile, config=CONFIG, placeholders={"python": "py"}, several=False)
    assert adapted.env == {"RETRIES": "0"}
    assert adapted.home["a.json"] == {
        "llm": {"url": "u", "model": "m"},
        "mcp": {"servers": {"tiny": {"command": "py"}}},
    }


@pytest.mark.parametrize(
    ("text", "config", "has_mcp_servers", "reason"),
    [
        ("", CONFIG, True, ""),
        ('[home."a.json"]\nx = 1', {}, False, ""),
        ('[home."a.json"]\nx = 1', {"a": 1}, False, "the profile writes no config.toml, and its"),
        ('[settings]\nfile = "a.json"', {"a": {"b": 1}}, False, ""),
        (
            "[settings.names]\nb = 'c'",
            {"a": {"b": 1}},
            False,
            "the profile's settings.names has no",
        ),
        ("[settings.names]\na = ''", {"a": {"b": 1}}, True, "the profile's settings.names"),
        ("[settings.names]\na = 'env.A'", {"a": [1]}, False, "the profile's settings.names"),
        ('[settings]\nfile = ".env"', {"a": 1}, False, ""),
        ('[settings]\nfile = ".env"', {"a": {"b": 1}}, False, "the settings file .env is dotenv,"),
        (
            '[settings]\nfile = "x"\n[home]\nx = "text"',
            {"a": 1},
            False,
            "the settings file x is text,",
        ),
    ],
)
def test_settings_without_a_place_have_a_reason(
    text: str, config: dict[str, Any], has_mcp_servers: bool, reason: str
) -> None:
    told = unplaced_settings(mine(text), config, has_mcp_servers=has_mcp_servers)
    assert told.startswith(reason) if reason else not told
