"""Profiles: built-in ones load, mistakes are one line, placeholders are the four and no more."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.target.profile import (
    PLACEHOLDERS,
    Bounds,
    ProfileError,
    builtin_names,
    fill,
    load_profile,
    parse_profile,
    split_command,
)


@pytest.mark.parametrize("name", builtin_names())
def test_builtin_profile_loads_and_knows_its_name(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert all(deviation.reason for deviation in profile.deviations)


def test_the_built_in_profiles_are_these() -> None:
    assert builtin_names() == ["codex-0.107", "codex-0.169", "reference", "spec"]


MISTAKES = {
    "not-toml": ("name =", "here: not TOML: "),
    "unknown-key": ('name="x"\nhandshke="none"', "here: unknown key 'handshke'; expected one of:"),
    "unknown-deviation-key": (
        'name="x"\n[[deviations]]\nrule="a"\nraeson="b"',
        "here: unknown key 'deviations.0.raeson'; expected one of: rule, reason, scenario, pinned",
    ),
    "missing-name": ('title="x"', "here: the key 'name' is missing"),
    "empty-reason": ('name="x"\n[[deviations]]\nrule="a"\nreason=""', "here: deviations.0.reason:"),
    "handshake": ('name="x"\nhandshake="hello"', "here: handshake: it should be 'initialize'"),
    "hygiene": ('name="x"\nhygiene="SHOULD"', "here: hygiene: it should be 'INFO' or 'MUST'"),
    "bound": ('name="x"\n[bounds]\nsettle=0', "here: bounds.settle: it should be greater than 0"),
    "home": ('name="x"\nhome="here"', "here: home: it should be a table"),
    "command-quotes": ('name="x"\ncommand="a \'b"', 'the command "a \'b" cannot be split'),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistake_is_one_line_with_its_key(case: str) -> None:
    text, expected = MISTAKES[case]
    with pytest.raises(ProfileError) as caught:
        parse_profile(text, "here")
    assert str(caught.value).startswith(expected)
    assert len(str(caught.value).splitlines()) == 1


@given(st.text(max_size=200))
def test_any_text_is_a_profile_or_a_profile_error(text: str) -> None:
    complaint = "here: "
    try:
        parse_profile(text, "here")
    except ProfileError as error:
        complaint = str(error)
    assert complaint.startswith("here: ")


def test_command_can_be_a_line_or_words() -> None:
    assert parse_profile("name='x'\ncommand='a \"b c\" d'", "p").command == ["a", "b c", "d"]
    assert parse_profile("name='x'\ncommand=['a', 'b c']", "p").command == ["a", "b c"]
    assert split_command("a\\ b 'c;d' $HOME |e") == ["a b", "c;d", "$HOME", "|e"]


def test_profile_is_found_by_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\n')
    assert load_profile(str(path)).name == "mine"


def test_profile_that_is_not_there_names_the_built_in_ones() -> None:
    with pytest.raises(ProfileError, match="the built-in ones are codex-"):
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
    bounds, scaled = Bounds(), Bounds().scaled(3)
    assert scaled.model_dump() == {name: 3 * value for name, value in bounds.model_dump().items()}
