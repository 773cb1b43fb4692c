"""Profiles: built-in ones load, mistakes are one line, placeholders are the four and no more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client.target.profile import (
    PLACEHOLDERS,
    Bounds,
    builtin_names,
    fill,
    load_profile,
    parse_profile,
)
from harness.client.target.shell_syntax import split_command
from harness.errors import UsageError


@pytest.mark.parametrize("name", builtin_names())
def test_builtin_profile_loads_and_knows_its_name(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert all(deviation.reason for deviation in profile.deviations)


def test_the_built_in_profiles_are_these() -> None:
    assert builtin_names() == ["codex", "codex-0.107", "codex-0.169", "reference", "spec"]


MISTAKES = {
    "not-toml": ("name =", "here:1:7: not TOML: Invalid value"),
    "unknown-key": (
        'name="x"\nhandshke="none"',
        "here:2:1: unknown key 'handshke'; did you mean 'handshake'?",
    ),
    "unknown-key-like-no-other": (
        'name="x"\nzzz=1',
        "here:2:1: unknown key 'zzz'; expected one of: agent_folder, barrier, bounds,",
    ),
    "unknown-bound": (
        'name="x"\n[bounds]\nstep=8\nsetle=1',
        "here:4:1: unknown key 'setle'; did you mean 'settle'?",
    ),
    "unknown-deviation-key": (
        'name="x"\n[[deviations]]\nrule="a"\nraeson="b"',
        "here:4:1: unknown key 'raeson'; did you mean 'reason'?",
    ),
    "unknown-key-in-an-inline-table": (
        'name="x"\ntools=[\n  {intent="run", nam="y"}]',
        "here:3:18: unknown key 'nam'; did you mean 'name'?",
    ),
    "missing-name": ('title="x"', "here:1:1: the key 'name' is missing"),
    "missing-reason": (
        'name="x"\n[[deviations]]\nrule="a"',
        "here:2:1: the key 'reason' is missing",
    ),
    "empty-reason": (
        'name="x"\n[[deviations]]\nrule="a"\nreason=""',
        "here:4:8: deviations.reason: ",
    ),
    "handshake": (
        'name="x"\nhandshake="initialise"',
        "here:2:11: handshake: it should be 'initialize' or 'none'; did you mean 'initialize'?",
    ),
    "listen": (
        'name="x"\nlisten="websocket"',
        "here:2:8: listen: it should be 'stdio', 'ws', 'unix' or 'ws-unix'",
    ),
    "hygiene": (
        'name="x"\nhygiene="INFOS"',
        "here:2:9: hygiene: it should be 'INFO' or 'MUST'; did you mean 'INFO'?",
    ),
    "capabilities": (
        'name="x"\ncapabilities="prob"',
        "here:2:14: capabilities: it should be 'probe' or a list; did you mean 'probe'?",
    ),
    "intent": (
        'name="x"\n[[tools]]\nname="y"\nintent="patsch"',
        "here:4:8: tools.intent: it should be 'run', 'patch', 'update_plan', 'mcp_call', "
        "'dynamic_call' or 'view_image'; did you mean 'patch'?",
    ),
    "outcome": (
        'name="x"\n[outcomes]\ndeclind=["no"]',
        "here:3:1: outcomes.declind: it should be 'ok', 'failed', 'declined' or 'refused'; "
        "did you mean 'declined'?",
    ),
    "pattern": (
        'name="x"\npanics=["("]',
        "here:2:8: panics: '(' is not a valid regular expression: ",
    ),
    "bound": (
        'name="x"\n[bounds]\nsettle=0',
        "here:3:8: bounds.settle: it should be greater than 0",
    ),
    "home": ('name="x"\nhome="here"', "here:2:6: home: it should be a table"),
    "env": ('name="x"\nenv.A=1', "here:2:7: env.A: it should be a text"),
    "command-quotes": (
        'name="x"\ncommand="a \'b"',
        'here:2:9: command: the command "a \'b" cannot be split as by a shell: No closing quot',
    ),
    "home-absolute": (
        'name="x"\n[home."/tmp/file.toml"]\nmodel="m"',
        "here:2:7: home.\"/tmp/file.toml\": '/tmp/file.toml' is not inside the home; expected the "
        "relative path of a file",
    ),
    "home-upwards": (
        'name="x"\n[home."a.toml"]\n[home."../../x.toml"]',
        "here:3:7: home.\"../../x.toml\": '../../x.toml' is not inside the home",
    ),
    "home-upwards-later": (
        'name="x"\nhome."a/../../x.toml".a=1',
        "here:2:6: home.\"a/../../x.toml\": 'a/../../x.toml' is not inside the home",
    ),
    "home-itself": ('name="x"\n[home."."]', "here:2:7: home.\".\": '.' is not inside the home"),
    "home-empty": ('name="x"\n[home.""]', "here:2:7: home.\"\": '' is not inside the home"),
    "home-file-and-folder": (
        'name="x"\n[home."a/b"]\n[home.a]',
        "here:2:1: home: 'a' is a file and the folder of 'a/b'; rename one",
    ),
    "agent-folder": (
        'name="x"\nagent_folder="../.."',
        "here:2:14: agent_folder: '../..' is not inside the project; expected the name of a folder",
    ),
    "name-upwards": (
        'name="../../../x"',
        "here:1:6: name: '../../../x' is no name of a profile; use letters, digits, '.', '_' and "
        "'-', and no '..'",
    ),
    "name-with-a-slash": ('name="a/b"', "here:1:6: name: 'a/b' is no name of a profile"),
    "name-empty": ('name=""', "here:1:6: name: '' is no name of a profile"),
    "name-dot": ('name="."', "here:1:6: name: '.' is no name of a profile"),
    "name-dots": ('name="a..b"', "here:1:6: name: 'a..b' is no name of a profile"),
    "env-name-with-equals": (
        'name="x"\n[env]\n"A=B"="c"',
        "here:3:1: env.\"A=B\": 'A=B' is no name of a variable; expected a text without '='",
    ),
    "env-name-empty": ('name="x"\n[env]\n""="c"', "here:3:1: env.\"\": '' is no name of a var"),
    "env-value-with-zero": (
        'name="x"\n[env]\nA="\\u0000"',
        "here:3:3: env.A: a variable cannot hold the character U+0000",
    ),
    "home-env": (
        'name="x"\nhome_env="A=B"',
        "here:2:10: home_env: 'A=B' is no name of a variable; expected a text without '='",
    ),
    "home-env-empty": ('name="x"\nhome_env=""', "here:2:10: home_env: '' is no name of a variable"),
    "the-first-of-several": (
        'name="x"\nhygiene="no"\nlisten="no"',
        "here:2:9: hygiene: it should be 'INFO' or 'MUST'",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistake_is_one_line_with_its_place(case: str) -> None:
    text, expected = MISTAKES[case]
    with pytest.raises(UsageError) as caught:
        parse_profile(text, "here")
    assert str(caught.value).startswith(expected)
    assert len(str(caught.value).splitlines()) == 1


@given(st.text(max_size=200))
def test_any_text_is_a_profile_or_a_profile_error(text: str) -> None:
    complaint = "here:1:1: "
    try:
        parse_profile(text, "here")
    except UsageError as error:
        complaint = str(error)
    assert re.match(r"here:\d+:\d+: ", complaint)


def test_command_can_be_a_line_or_words() -> None:
    assert parse_profile("name='x'\ncommand='a \"b c\" d'", "p").command == ["a", "b c", "d"]
    assert parse_profile("name='x'\ncommand=['a', 'b c']", "p").command == ["a", "b c"]
    assert split_command("a\\ b 'c;d' $HOME |e") == ["a b", "c;d", "$HOME", "|e"]


def test_profile_is_found_by_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\n')
    assert load_profile(str(path)).name == "mine"


def test_profile_that_is_not_there_names_the_built_in_ones() -> None:
    with pytest.raises(UsageError, match="the built-in ones are codex, codex-0"):
        load_profile("refrence")


def test_only_the_four_placeholders_are_replaced() -> None:
    values = {name: name.upper() for name in PLACEHOLDERS}
    template = ["--url={model_url}", {"k": "{home}/{cwd}", "{home}": 1}, "{other} {} {{listen}}", 5]
    assert fill(template, values) == [
        "--url=MODEL_URL",
        {"k": "HOME/CWD", "{home}": 1},
        "{other} {} {LISTEN}",
        5,
    ]


def test_placeholder_without_a_value_stays() -> None:
    assert fill("{listen} {home}", {"home": "h"}) == "{listen} h"


def test_scale_multiplies_every_bound() -> None:
    bounds, scaled = Bounds(), Bounds().scale(3)
    assert scaled.model_dump() == {name: 3 * value for name, value in bounds.model_dump().items()}
