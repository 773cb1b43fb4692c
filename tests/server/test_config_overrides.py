"""`--config key=value` of the command line."""

from pathlib import Path

import pytest

from reference_server.config.load import ConfigError, load_config
from reference_server.config.model import Config

FILE = """
model = "of the file"
[model_providers.mock]
base_url = "http://mock.invalid/v1"
request_max_retries = 3
"""


def load(tmp_path: Path, *overrides: str, text: str = FILE) -> Config:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return load_config(path, {}, overrides=overrides)


def test_a_bare_word_is_a_string_and_takes_the_place_of_the_files(tmp_path) -> None:
    assert load(tmp_path, "model=other-model").model == "other-model"
    assert load(tmp_path, 'model = "other"').model == "other"


def test_a_dotted_key_changes_one_value_of_a_table(tmp_path) -> None:
    [mock] = load(tmp_path, "model_providers.mock.request_max_retries=0").providers.values()
    assert (mock.request_max_retries, mock.base_url) == (0, "http://mock.invalid/v1")


def test_tables_are_laid_over_tables_and_anything_else_takes_the_place(tmp_path) -> None:
    config = load(
        tmp_path,
        'model_providers.far={base_url = "https://far.invalid", stream_max_retries = 1}',
        'command_environment.pass=["A"]',
        'command_environment.pass=["B"]',
    )
    assert set(config.providers) == {"mock", "far"}
    assert config.command_variables.passed_names == ("B",)


def test_the_last_one_counts_and_values_may_have_equals_signs(tmp_path) -> None:
    assert load(tmp_path, "model=a", "model=b=c").model == "b=c"


def test_without_a_file_they_count_too(tmp_path) -> None:
    config = load_config(tmp_path / "none.toml", {}, overrides=["sandbox_mode=workspace-write"])
    assert config.sandbox_mode == "workspace-write"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("model", "--config model: must be key=value, for example model=some-model"),
        ("=x", "--config =x: must be key=value"),
        ("a b=x", "--config a b=x: must be key=value"),
        ("a..b=x", "--config a..b=x: must be key=value"),
        (
            "approval_policy=nevr",
            "--config approval_policy=nevr: `approval_policy` must be one of never, untrusted, "
            "on-request, on-failure, reject, not 'nevr'; did you mean `never`?",
        ),
        (
            "model_providers.mock.request_max_retries=-1",
            "--config model_providers.mock.request_max_retries=-1: `request_max_retries` must be",
        ),
        ("model_providers=3", "--config model_providers=3: `model_providers` must be a table"),
        (
            "model_provider=mok",
            "--config model_provider=mok: `model_provider` must be the name of a table "
            "[model_providers.NAME], not 'mok'; did you mean `mock`?",
        ),
        ("model.inner=x", "--config model.inner=x: `model` must be a string"),
    ],
)
def test_a_mistake_names_the_argument(tmp_path, argument: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, argument)
    assert str(caught.value).startswith(message)


def test_a_mistake_of_the_file_keeps_its_place(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"config\.toml:1:10: `model` must be a string"):
        load(tmp_path, "model_provider=x", text="model  = 3\n")
    # What is wrong in the file does no harm where it is replaced.
    assert load(tmp_path, "model=good", text="model = 3\n").model == "good"


def test_an_unknown_key_is_told_with_the_argument(tmp_path) -> None:
    told: list[str] = []
    load_config(tmp_path / "none.toml", {}, told.append, overrides=["modl=x"])
    assert told == ["--config modl=x: there is no key `modl` here; did you mean `model`?"]
