"""config.toml and the environment."""

from dataclasses import fields
from pathlib import Path

import pytest

from harness.protocol.wire.settings import WorkspaceWrite
from harness.protocol.wire.thread import ThreadStartParams
from reference_server.config.home import Home
from reference_server.config.keys import KEYS
from reference_server.config.load import ConfigError, load_config
from reference_server.config.model import Config, Provider
from reference_server.settings import settings_of_new_thread

WHOLE = """
model = "m"
model_provider = "near"
approval_policy = "never"
sandbox_mode = "workspace-write"
unknown = [1, 2]

[model_providers.near]
name = "Near"
base_url = "http://near.invalid/v1"
env_key = "NEAR_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 1
stream_idle_timeout_ms = 2000

[model_providers.far]
"""


def load(tmp_path: Path, text: str, **environment: str) -> Config:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return load_config(path, environment)


def mistake_in(tmp_path: Path, text: str) -> str:
    """Return the message about the mistake in a text, whether it is an error or a warning."""
    told: list[str] = []
    path = tmp_path / "config.toml"
    path.write_text(text)
    try:
        load_config(path, {}, told.append)
    except ConfigError as error:
        return str(error)
    return told[0]


def test_every_key_is_read(tmp_path) -> None:
    config = load(tmp_path, WHOLE)
    assert (config.model, config.model_provider) == ("m", "near")
    assert (config.approval_policy, config.sandbox_mode) == ("never", "workspace-write")
    assert config.providers["near"] == Provider(
        "near", "Near", "http://near.invalid/v1", "NEAR_KEY", 0, 1, 2000
    )
    assert config.providers["far"] == Provider("far", "far")


def test_a_missing_file_is_an_empty_one(tmp_path) -> None:
    assert load_config(tmp_path / "none.toml", {}) == load(tmp_path, "") == Config()


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("model = \n", "1:9", "Invalid value"),
        ('a = 1\n\nmodel = "x', "3:11", ""),
        ("a = 1\na = 2\n", "2:6", "overwrite"),
        ("\nmodel = 3\n", "2:9", "`model` must be a string, not 3"),
        ('approval_policy = "maybe"\n', "1:19", "one of never, untrusted"),
        ('approval_policy = "on-reqest"\n', "1:19", "not 'on-reqest'; did you mean `on-request`?"),
        ("sandbox_mode = true\n", "1:16", "read-only"),
        ("\nmodel_providers = 1\n", "2:19", "a table"),
        (
            "[model_providers.a]\nrequest_max_retries = 1\n"
            "[model_providers.b]\n  request_max_retries = -1\n",
            "4:25",
            "`request_max_retries` must be a number from 0 to 1000000000, not -1",
        ),
        ("[model_providers.a]\nstream_max_retries = true\n", "2:22", "a number"),
        ("[model_providers]\na.base_url = 4\n", "2:14", "begins with http:// or https://, not 4"),
        (
            "model_providers = {a = {base_url = 'localhost:80'}}\n",
            "1:36",
            "not 'localhost:80'",
        ),
        (
            'model_provider = "mok"\n[model_providers.mock]\n',
            "1:18",
            "not 'mok'; did you mean `mock`?",
        ),
        (
            'model_provider = "other"\n[model_providers.mock]\n[model_providers.far]\n',
            "1:18",
            "not 'other'; there are: far, mock",
        ),
        ("skills.config = 3\n", "1:17", "must be an array of tables, not 3"),
        ("[[skills.config]]\n[[skills.config]]\npath = 3\n", "3:8", "`path` must be a string"),
        ("[features]\nremote_skills = 1\n", "2:17", "must be true or false, not 1"),
        ("[command_environment.set]\n'A=B' = 'x'\n", "2:1", "`A=B` must be the name of a variable"),
        ("[command_environment]\npass = ['A',\n  'B', 3]\n", "2:8", "an array of names"),
        (
            "[command_environment]\npass = ['A',\n  'PROVIDER_API_KEY']\n",
            "3:3",
            "without PROVIDER_API_KEY",
        ),
    ],
)
def test_a_mistake_is_one_line_with_its_place(tmp_path, text: str, place: str, words: str) -> None:
    message = mistake_in(tmp_path, text)
    assert message.startswith(f"{tmp_path / 'config.toml'}:{place}: ")
    assert words in message
    assert "\n" not in message


def test_a_key_in_the_place_of_its_variable_is_not_quoted(tmp_path) -> None:
    message = mistake_in(tmp_path, '[model_providers.a]\nenv_key = "sk-secret"\n')
    assert "the name of an environment variable" in message
    assert "sk-secret" not in message


def test_with_an_address_from_the_environment_a_provider_needs_no_table(tmp_path) -> None:
    text = 'model_provider = "other"\n[model_providers.mock]\n'
    config = load(tmp_path, text, PROVIDER_BASE_URL="http://there.invalid")
    found = config.provider("other")
    assert found is not None
    assert found.base_url == "http://there.invalid"


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        (
            '\nsandbx_mode = "read-only"\n',
            "2:1",
            "no key `sandbx_mode` here; did you mean `sandbox_mode`?",
        ),
        (
            "sparkles = 1\n",
            "1:1",
            "no key `sparkles` here; it has no effect; there are: approval_p",
        ),
        ('Model = "m"\n', "1:1", "did you mean `model`?"),
        ('base_url = "x"\n', "1:1", "no key `base_url` here; it belongs in [model_providers.*]"),
        ("[model_providers.a]\n model = 1\n", "2:2", "it belongs before the first table"),
        ("[model_providers.a]\n\nbase_ulr = 1\n", "3:1", "did you mean `base_url`?"),
        ("[model_providers]\na.base_ulr = 1\n", "2:3", "did you mean `base_url`?"),
        ("model_providers.a = {base_ulr = 1}\n", "1:22", "did you mean `base_url`?"),
        ("[[skills.config]]\n[[skills.config]]\n pat = 3\n", "3:2", "did you mean `path`?"),
        ("\n\n[sparkles]\na = 1\nb = 2\n", "3:2", "`sparkles`"),
        ("[[sparkles]]\na = 1\n", "1:3", "`sparkles`"),
        ("sparkles.a = 1\n", "1:1", "`sparkles`"),
        ("\n[model_providers.a.sparkles]\n", "2:20", "`sparkles`"),
        ('model = "sparkles = 1"\nsparkles = 1\n', "2:1", "`sparkles`"),
    ],
)
def test_a_key_that_is_unknown_is_told_with_its_place(
    tmp_path, text: str, place: str, words: str
) -> None:
    told: list[str] = []
    (path := tmp_path / "config.toml").write_text(text)
    load_config(path, {}, told.append)
    [warning] = told
    assert warning.startswith(f"{path}:{place}: there is ")
    assert words in warning


def test_each_unknown_key_is_told_once_and_changes_nothing(tmp_path) -> None:
    told: list[str] = []
    path = tmp_path / "config.toml"
    path.write_text(WHOLE)
    good = load_config(path, {}, told.append)
    words = f"it has no effect; there are: {', '.join(sorted(KEYS['']))}"
    assert [line.partition(": ")[2] for line in told] == [
        f"there is no key `unknown` here; {words}"
    ]
    path.write_text(WHOLE.replace("unknown = [1, 2]", ""))
    assert load_config(path, {}) == good


def test_every_key_that_is_read_is_known(tmp_path) -> None:
    # A setting that is read and not listed would be told to have no effect.
    assert set(KEYS[""]) == {field.name for field in fields(Config)} - {
        "providers",
        "environment",
        "folder",
        "command_variables",
        "disabled_mcp_servers",
        "remote_skills",
        "skill_catalogue",
        "network_access",
        "writable_roots",
    } | {"model_providers", "command_environment", "sandbox_workspace_write", "skills", "features"}
    assert set(KEYS["model_providers.*"]) == {field.name for field in fields(Provider)} - {
        "id",
        "api_key",
        "originator",
        "mistake",
    } | {"wire_api"}


def test_a_file_that_is_not_text_is_a_mistake(tmp_path) -> None:
    (tmp_path / "config.toml").write_bytes(b"model = '\xff'")
    with pytest.raises(ConfigError, match="is not UTF-8; save it"):
        load_config(tmp_path / "config.toml", {})


def test_provider_base_url_beats_the_file_and_openai_base_url_fills_a_gap(tmp_path) -> None:
    def address(provider: str, **environment: str) -> str | None:
        found = load(tmp_path, WHOLE, **environment).provider(provider)
        return None if found is None else found.base_url

    assert address("near") == "http://near.invalid/v1"
    assert address("near", PROVIDER_BASE_URL="http://p.invalid") == "http://p.invalid"
    assert address("near", OPENAI_BASE_URL="http://o.invalid") == "http://near.invalid/v1"
    assert address("far", OPENAI_BASE_URL="http://o.invalid") == "http://o.invalid"
    assert address("far") is None
    both = {"PROVIDER_BASE_URL": "http://p.invalid", "OPENAI_BASE_URL": "http://o.invalid"}
    assert address("unheard-of", **both) == "http://p.invalid"
    assert load(tmp_path, WHOLE).provider("unheard-of") is None


def test_the_key_is_the_named_variable_or_provider_api_key(tmp_path) -> None:
    def key(**environment: str) -> str | None:
        found = load(tmp_path, WHOLE, **environment).provider("near")
        assert found is not None
        return found.api_key

    assert key() is None
    assert key(PROVIDER_API_KEY="p") == "p"
    assert key(PROVIDER_API_KEY="p", NEAR_KEY="n") == "n"


def test_a_key_is_never_shown(tmp_path) -> None:
    provider = load(tmp_path, WHOLE, NEAR_KEY="hush").provider("near")
    assert "hush" not in repr(provider)


def test_the_home_is_agent_home_or_the_users(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert Home.from_environment({}).root == tmp_path / ".agent"
    assert Home.from_environment({"AGENT_HOME": ""}).root == tmp_path / ".agent"
    assert Home.from_environment({"AGENT_HOME": "here"}).root == tmp_path / "here"


def test_the_table_of_workspace_write_is_the_policy_of_that_mode(tmp_path) -> None:
    config = load(
        tmp_path,
        'sandbox_mode = "workspace-write"\n'
        "[sandbox_workspace_write]\nnetwork_access = true\nwritable_roots = ['/extra']\n",
    )
    assert settings_of_new_thread(config, ThreadStartParams()).sandbox == WorkspaceWrite(
        writable_roots=["/extra"], network_access=True
    )


def test_the_effort_of_the_file_is_that_of_a_new_thread(tmp_path) -> None:
    config = load(tmp_path, 'model_reasoning_effort = "xhigh"')
    assert settings_of_new_thread(config, ThreadStartParams()).effort == "xhigh"


@pytest.mark.parametrize(
    ("environment", "table", "address"),
    [
        ({}, "", "http://own.invalid"),
        ({"OPENAI_BASE_URL": "http://elsewhere.invalid"}, "", "http://own.invalid"),
        ({"PROVIDER_BASE_URL": "http://forced.invalid"}, "", "http://forced.invalid"),
        ({}, 'base_url = "http://near.invalid"', "http://near.invalid"),
    ],
)
def test_openai_base_url_is_the_address_of_a_provider_without_one(
    tmp_path, environment: dict[str, str], table: str, address: str
) -> None:
    text = f'openai_base_url = "http://own.invalid"\n[model_providers.default]\n{table}\n'
    provider = load(tmp_path, text, **environment).provider("default")
    assert provider is not None
    assert provider.base_url == address


@pytest.mark.parametrize(
    ("environment", "sent"),
    [
        ({}, None),
        ({"CODEX_INTERNAL_ORIGINATOR_OVERRIDE": "codex_sdk_ts"}, "codex_sdk_ts"),
        ({"AGENT_ORIGINATOR": "own", "CODEX_INTERNAL_ORIGINATOR_OVERRIDE": "sdk"}, "own"),
        ({"AGENT_ORIGINATOR": "a\r\nX-Other: 1"}, None),
        ({"AGENT_ORIGINATOR": "\u00e9"}, None),
    ],
)
def test_the_originator_is_what_a_header_may_hold(
    tmp_path, environment: dict[str, str], sent: str | None
) -> None:
    provider = load(tmp_path, "", **environment).provider("default")
    assert provider is not None
    assert provider.originator == sent


def test_defaults_count_where_the_file_says_nothing(tmp_path) -> None:
    (path := tmp_path / "config.toml").write_text('model = "m"')
    defaults = Config(approval_policy="never", model="other")
    found = load_config(path, {}, defaults=defaults)
    assert (found.model, found.approval_policy) == ("m", "never")
    assert load_config(tmp_path / "none", {}, defaults=defaults) == defaults
