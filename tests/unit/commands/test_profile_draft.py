"""The first profile that `harness profile new` writes of what a server shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.cli.commands.profile_draft import (
    Answers,
    Observed,
    default_name,
    draft_lines,
    family_hint,
)
from harness.cli.commands.profile_new import ask_for_settings
from harness.client.target.profile import Profile, parse_profile
from harness.errors import UsageError

CAPABILITIES = ("core", "deltas", "plan", "skills")


def tool(name: str, *parameters: str) -> dict[str, Any]:
    return {"name": name, "parameters": {"properties": {key: {} for key in parameters}}}


def draft(answers: Answers, observed: Observed) -> tuple[str, Profile]:
    text = "\n".join(draft_lines(answers, observed, CAPABILITIES))
    return text, parse_profile(text, "mine.toml")


def test_tools_get_rows_by_their_names_and_parameters() -> None:
    tools = [
        tool("shell_command", "command"),
        tool("web_fetch", "url"),
        tool("writeDiff", "reason", "diff"),
        tool("terminal", "line"),
        tool("bash", "script"),
        {"type": "web_search"},
    ]
    text, profile = draft(Answers("mine", "s"), Observed(tools=tools))
    assert [(row.intent, row.name, row.arguments) for row in profile.tools] == [
        ("patch", "writeDiff", {"diff": "{patch}"})
    ]
    assert "# shell_command(command): called by the built-in rows" in text
    assert "# web_fetch(url): not called; a row with its intent changes that" in text
    _, profile = draft(Answers("mine", "s"), Observed(tools=tools[3:]))
    assert [(row.name, row.arguments) for row in profile.tools] == [
        ("terminal", {"line": "{command}"})
    ]


def test_a_settings_file_carries_the_address_of_the_model() -> None:
    answers = Answers("mine", "serve --x", "conf/a.yaml", 'llm."base url"', "MINE_HOME")
    _, profile = draft(answers, Observed())
    assert profile.home["conf/a.yaml"] == {"llm": {"base url": "{model_url}"}}
    assert profile.settings.file == "conf/a.yaml"
    assert (profile.home_env, profile.command) == ("MINE_HOME", ["serve", "--x"])


def test_capabilities_are_told_apart_by_what_the_probes_saw() -> None:
    observed = Observed(
        server="mine/1.4.0 (x)",
        offered={"deltas"},
        absent={"skills"},
        names={"TurnError.agentErrorInfo": "mineErrorInfo"},
        has_called_model=True,
    )
    text, profile = draft(Answers("mine", "s"), observed)
    assert profile.capabilities == "probe"
    assert profile.names == {"TurnError.agentErrorInfo": "mineErrorInfo"}
    assert '# capabilities = ["core", "deltas"]' in text
    assert "# Not offered: skills" in text
    assert "# Only their scenarios show: plan" in text
    dated = text.partition("# [version]")[2].replace("\n# ", "\n")
    family = parse_profile(f'name = "mine"\n[version]{dated}', "here")
    assert family.version.find_release(observed.server) == "1.4.0"


def test_a_person_is_asked_for_the_settings_that_are_missing() -> None:
    answers = Answers("mine", "serve", home_env="H")

    def answered(*words: str) -> Answers:
        words_left = iter(words)
        return ask_for_settings(answers, lambda _: next(words_left))

    assert answered("") == answers
    expected = Answers("mine", "serve", "a.json", "llm.url", "H")
    assert answered("a.json", "llm.url", "") == expected
    assert answered("a.json", "llm.url", "MINE") == replace(expected, home_env="MINE")
    for words in (("a.json", "llm.", ""), ("a.json", "llm", "a b")):
        with pytest.raises(UsageError):
            answered(*words)


def test_a_command_gives_the_name_and_a_built_in_profile_that_fits() -> None:
    assert default_name("python -u ./my server/my_agent.py --stdio") == "my_agent"
    assert default_name("/opt/codex app-server") == "codex"
    answers = Answers("x", "/opt/codex app-server")
    hint = family_hint(answers, Observed(server="harness/0.118.0 (Debian)"))
    assert hint == "a built-in profile fits it: --target codex (or codex-0.118)"
    assert family_hint(Answers("x", "other"), Observed(server="harness/0.118.0 (x)")) == ""
