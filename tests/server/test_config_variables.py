"""`[command_environment]` of config.toml: allowed values, and errors with their line."""

from pathlib import Path

import pytest

from reference_server.config.load import ConfigError, load_config
from reference_server.sandbox.environment import CommandVariables


def variables(folder: Path, text: str) -> CommandVariables:
    (folder / "config.toml").write_text(text)
    return load_config(folder / "config.toml", {}).command_variables


def test_without_it_nothing_is_added_and_the_key_is_withheld(tmp_path: Path) -> None:
    found = variables(tmp_path, "")
    assert (found.passed_names, dict(found.set_values)) == ((), {})
    assert found.withheld_names == {"PROVIDER_API_KEY"}


def test_names_patterns_and_values(tmp_path: Path) -> None:
    text = '[command_environment]\npass = ["A", "B_*"]\n[command_environment.set]\nC = "d=e"\n'
    found = variables(tmp_path, text)
    assert (found.passed_names, dict(found.set_values)) == (("A", "B_*"), {"C": "d=e"})


def test_every_key_of_a_provider_is_withheld(tmp_path: Path) -> None:
    text = '[model_providers.a]\nenv_key = "ONE"\n[model_providers.b]\nenv_key = "TWO"\n'
    assert variables(tmp_path, text).withheld_names == {"PROVIDER_API_KEY", "ONE", "TWO"}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('[command_environment]\npass = "A"\n', 2, "an array of names"),
        ("[command_environment]\npass = [1]\n", 2, "an array of names"),
        ('[command_environment]\n\npass = ["PROVIDER_API_KEY"]\n', 3, "never get"),
        ('[model_providers.a]\nenv_key = "K"\n[command_environment]\npass = ["K"]\n', 4, "never"),
        ("[command_environment]\nset = 3\n", 2, "a table"),
        ("[command_environment.set]\nA = 3\n", 2, "a string"),
        ('[command_environment.set]\n"A=B" = "c"\n', 2, "the name of a variable, without `=`"),
        ('[command_environment.set]\n"" = "c"\n', 2, "the name of a variable"),
        ('[command_environment.set]\n"A=B" = {C = "d"}\n', 2, "not 'A=B'"),
        ('[command_environment.set]\nA = "\\u0000"\n', 2, "a string"),
        ("command_environment = 3\n", 1, "a table"),
    ],
)
def test_a_mistake_is_told_by_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        variables(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'config.toml'}:{line}:")
    assert words in message
