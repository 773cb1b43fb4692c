"""Inheritance of profiles: from `spec` by default, and never unnoticed by the author."""

from __future__ import annotations

import json
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from harness.client.target.profile import Profile, builtin_names, load_profile, parse_profile
from harness.errors import UsageError

SPEC = load_profile("spec")


def mine(text: str = "") -> Profile:
    return parse_profile(f'name = "mine"\n{text}', "mine.toml")


def test_a_profile_of_name_and_command_tells_the_server_where_the_model_is() -> None:
    profile = mine('command = "my-server --stdio"')
    assert profile.env == SPEC.env
    assert profile.env["PROVIDER_BASE_URL"] == "{model_url}"
    assert profile.home == SPEC.home
    assert profile.command == ["my-server", "--stdio"]


@pytest.mark.parametrize("nothing", ["", "none"])
def test_a_profile_can_inherit_nothing(nothing: str) -> None:
    profile = mine(f'extends = "{nothing}"')
    assert (profile.env, profile.home) == ({}, {})


def test_tables_merge_key_by_key_at_every_depth_and_own_values_win() -> None:
    profile = mine(
        'env.OPENAI_API_KEY = "mine"\nbounds.step = 9\n'
        '[home."config.toml"]\nmodel = "m"\n'
        '[home."config.toml".model_providers.mock]\nstream_max_retries = 0\n'
        '[home."other.toml"]\nx = 1\n'
    )
    assert profile.env == {**SPEC.env, "OPENAI_API_KEY": "mine"}
    assert (profile.bounds.step, profile.bounds.start) == (9, 10)
    config: Any = profile.home["config.toml"]
    assert config["model"] == "m"
    assert config["model_provider"] == "mock"
    assert config["model_providers"]["mock"]["stream_max_retries"] == 0
    assert config["model_providers"]["mock"]["base_url"] == "{model_url}"
    assert profile.home["other.toml"] == {"x": 1}


def test_who_a_profile_is_is_not_inherited() -> None:
    profile = mine()
    assert (profile.name, profile.title) == ("mine", "")


def extending(folder: Path, base: str, own: str) -> Profile:
    (folder / "base.toml").write_text(f'name = "base"\n{base}')
    (folder / "mine.toml").write_text(f'name = "mine"\nextends = "base.toml"\n{own}')
    return load_profile(str(folder / "mine.toml"))


def test_a_path_begins_at_the_file_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    profile = extending(tmp_path, 'command = "server"\nhygiene = "MUST"', 'barrier = "thread/list"')
    assert profile.command == ["server"]
    assert (profile.hygiene, profile.barrier) == ("MUST", "thread/list")
    assert profile.env == SPEC.env, "what the base inherits is handed on"


def test_a_list_that_is_one_value_is_replaced(tmp_path: Path) -> None:
    base = 'command = ["a", "b"]\ncapabilities = ["core", "deltas"]\ninitialize.x = [1]'
    own = 'command = ["c"]\ncapabilities = ["core"]\ninitialize.x = [2]'
    profile = extending(tmp_path, base, own)
    assert (profile.command, profile.capabilities) == (["c"], ["core"])
    assert profile.initialize == {"x": [2]}


LISTS = """
panics = ["{0}"]
[[deviations]]
rule = "turn.completes"
reason = "{0}"
[[deviations]]
rule = "{0}"
reason = "another"
[[tools]]
intent = "run"
name = "{0}"
[outcomes]
ok = ["{0}"]
"""


def test_rows_and_patterns_are_added_after_the_own_ones(tmp_path: Path) -> None:
    profile = extending(tmp_path, LISTS.format("base"), LISTS.format("mine"))
    assert profile.panics == ["mine", "base"]
    assert profile.outcomes == {"ok": ["mine", "base"]}
    assert [tool.name for tool in profile.tools] == ["mine", "base"]
    assert [(one.rule, one.reason) for one in profile.deviations] == [
        ("turn.completes", "mine"),  # of the same rule, scenario and pinned text: it replaces
        ("mine", "another"),
        ("base", "another"),
    ]


def test_every_value_knows_the_file_it_comes_from(tmp_path: Path) -> None:
    profile = extending(tmp_path, LISTS.format("base"), LISTS.format("mine"))
    own, base = tmp_path / "mine.toml", tmp_path / "base.toml"
    assert str(profile.place("deviations", 1, "rule")) == f"{own}:9:8"
    assert str(profile.place("deviations", 2, "rule")) == f"{base}:8:8"
    assert str(profile.place("env", "PROVIDER_API_KEY", key=True)) == "profile spec:10:1"
    assert profile.is_built_in("env", "PROVIDER_API_KEY")
    assert not profile.is_built_in("deviations", 2)


def test_deviations_of_a_built_in_profile_are_inherited_and_known_as_such() -> None:
    profile = mine('extends = "codex-0.107"\n[[deviations]]\nrule = "turn.completes"\nreason="r"')
    theirs = load_profile("codex-0.107")
    assert len(profile.deviations) == len(theirs.deviations) + 1
    assert profile.command == ["codex", "app-server"]
    assert [profile.is_built_in("deviations", index) for index in (0, 1)] == [False, True]


def test_left_out_entries_are_gone() -> None:
    profile = mine(
        'without = ["env.OPENAI_API_KEY", \'home."config.toml".model_providers.mock.wire_api\']'
    )
    assert set(SPEC.env) - set(profile.env) == {"OPENAI_API_KEY"}
    config: Any = profile.home["config.toml"]
    mock = config["model_providers"]["mock"]
    assert "wire_api" not in mock
    assert "name" in mock


def test_rows_are_left_out_by_the_name_of_their_rule_or_all_at_once(tmp_path: Path) -> None:
    base = LISTS.format("base")
    one = extending(tmp_path, base, """without = ['deviations."turn.completes"', "tools.base"]""")
    assert [deviation.rule for deviation in one.deviations] == ["base"]
    assert one.tools == []
    assert extending(tmp_path, base, 'without = ["deviations"]').deviations == []
    only = extending(tmp_path, base, 'without = ["deviations"]' + LISTS.format("mine"))
    assert [deviation.rule for deviation in only.deviations] == ["turn.completes", "mine"]


def test_one_row_of_a_rule_is_left_out_by_its_scenario_and_pinned_text(tmp_path: Path) -> None:
    rows = "".join(
        f'[[deviations]]\nrule = "turn.completes"\nreason = "r"\nscenario = "{name}"\n{pinned}'
        for name, pinned in (("a/*", ""), ("b", ""), ("b", 'pinned = "it\'s \\"x\\""\n'))
    )

    def left(selector: str) -> list[tuple[str, str]]:
        without = json.dumps(f'deviations."turn.completes"{selector}')
        profile = extending(tmp_path, rows, f"without = [{without}]")
        return [(one.scenario, one.pinned) for one in profile.deviations]

    every = [("a/*", ""), ("b", ""), ("b", 'it\'s "x"')]
    assert left("") == []
    assert left('."a/*"') == every[1:]
    assert left(".b") == every[:1]
    assert left('.b.""') == [every[0], every[2]]
    assert left(f".b.{json.dumps(every[2][1])}") == every[:2]


MISTAKES = {
    "unknown": ('extends = "sepc"', "mine.toml:2:11: extends: unknown profile 'sepc'; did you"),
    "missing": (
        'extends = "no/such.toml"',
        "mine.toml:2:11: extends: unknown profile 'no/such.toml'; expected one of: codex, ",
    ),
    "not-there": (
        'without = ["env.OPENAI_KEY"]',
        "mine.toml:2:12: without: unknown inherited key 'env.OPENAI_KEY'; did you mean "
        "'env.OPENAI_API_KEY'?",
    ),
    "no-such-row": (
        'extends = "codex-0.107"\nwithout = ["deviations.turn.completed"]',
        "mine.toml:3:12: without: unknown rule of inherited deviations 'turn.completed'; did you",
    ),
    "no-row-with-a-name": (
        'extends = "codex-0.107"\nwithout = ["capabilities.plan"]',
        "mine.toml:3:12: without: capabilities is a list, and only rows of deviations and tools",
    ),
    "no-such-scenario": (
        'extends = "codex"\nwithout = [\'deviations."turn.items-empty"."threads/frk"\']',
        "mine.toml:3:12: without: unknown scenario of inherited deviations of turn.items-empty "
        "'threads/frk'; did you mean 'threads/fork*'?",
    ),
    "no-key": ('without = ["env."]', "mine.toml:2:11: without: 'env.' is no key of TOML: "),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_about_what_is_inherited_is_one_line(case: str) -> None:
    text, expected = MISTAKES[case]
    with pytest.raises(UsageError) as caught:
        mine(text)
    assert str(caught.value).startswith(expected)
    assert len(str(caught.value).splitlines()) == 1


def test_a_profile_that_extends_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "a.toml").write_text('name = "a"\nextends = "below/b.toml"\n')
    (tmp_path / "below/b.toml").write_text('name = "b"\nextends = "../a.toml"\n')
    with pytest.raises(UsageError, match=r"b\.toml:2:11: extends: '../a.toml' extends this file"):
        load_profile(str(tmp_path / "a.toml"))


def test_a_mistake_in_what_is_extended_has_its_place_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"base\.toml:2:1: unknown key 'hygeine'; did you mean"):
        extending(tmp_path, 'hygeine = "MUST"', "")


@pytest.mark.parametrize("name", ["reference", "spec"])
def test_a_built_in_profile_is_what_its_file_says_and_no_more(name: str) -> None:
    file = resources.files("harness.client.target") / "profiles" / f"{name}.toml"
    assert (
        load_profile(name).model_dump()
        == Profile.model_validate(tomllib.loads(file.read_text("utf-8"))).model_dump()
    )


def test_the_built_in_profiles_set_the_variables_that_their_servers_read() -> None:
    variables = {name: set(load_profile(name).env) for name in builtin_names()}
    assert variables == {
        "spec": {"PROVIDER_BASE_URL", "OPENAI_BASE_URL", "PROVIDER_API_KEY", "OPENAI_API_KEY"},
        "reference": {"PROVIDER_BASE_URL", "PROVIDER_API_KEY"},
        "codex": {"CODEX_API_KEY"},
        "codex-0.107": {"CODEX_API_KEY"},
        "codex-0.169": {"CODEX_API_KEY"},
    }
