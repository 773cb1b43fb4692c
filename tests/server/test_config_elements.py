"""A mistake in one table of config.toml: the tables beside it are used."""

from pathlib import Path

import pytest

from reference_server.config.load import Config, ConfigError, load_config
from reference_server.model.client import ModelClient
from reference_server.model.errors import ModelError

pytestmark = pytest.mark.anyio

WRONG = """\
model_provider = "near"
[mcp_servers.good]
command = "c"
[mcp_servers.bad]
command = 3
[mcp_servers."bad name"]
command = "c"
[mcp_servers.last]
url = "http://x.invalid"
[model_providers.near]
base_url = "http://near.invalid"
[model_providers.far]
base_url = "ftp://far.invalid"
env_key = "FAR_KEY"
[[skills.config]]
path = 3
[[skills.config]]
path = "/good/SKILL.md"
enabled = false
[[skills.config]]
enabled = "no"
"""


def load(folder: Path, text: str, *overrides: str, **environment: str) -> tuple[Config, list[str]]:
    path = folder / "config.toml"
    path.write_text(text)
    told: list[str] = []
    config = load_config(path, environment, told.append, overrides=overrides)
    return config, [line.removeprefix(f"{path}:") for line in told]


def test_elements_beside_a_mistake_are_used(tmp_path: Path) -> None:
    config, told = load(tmp_path, WRONG)
    assert set(config.mcp_servers) == {"good", "last"}
    near = config.provider("near")
    assert near is not None
    assert near.base_url == "http://near.invalid"
    assert sorted(line.partition(":")[0] for line in told) == ["13", "16", "21", "5", "6"]
    ends = {line.rpartition("; ")[2] for line in told}
    assert ends == {
        "this MCP server is left out",
        "this provider cannot be used",
        "this switch is left out",
    }


async def test_wrong_provider_is_not_reached_at_another_address(tmp_path: Path) -> None:
    config, _ = load(tmp_path, WRONG, PROVIDER_BASE_URL="http://else.invalid", FAR_KEY="k")
    far = config.provider("far")
    assert far is not None
    with pytest.raises(ModelError, match="must be an address that begins with http"):
        await ModelClient(None, lambda: None).call(far, {}, lambda _: None)  # type: ignore[arg-type]
    # Commands get its key no more than that of a good one.
    assert "FAR_KEY" in config.command_variables.withheld_names


def test_provider_in_use_must_be_right(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=":13:12: `base_url` must be an address"):
        load(tmp_path, WRONG.replace('"near"', '"far"', 1))


@pytest.mark.parametrize(
    "override", ["mcp_servers.bad.command=4", "model_providers.far.base_url=x", "sandbox_mode=3"]
)
def test_mistake_of_the_command_line_is_an_error(tmp_path: Path, override: str) -> None:
    with pytest.raises(ConfigError, match="--config"):
        load(tmp_path, "", override)
    with pytest.raises(ConfigError, match="--config"):
        load(tmp_path, WRONG, override)


@pytest.mark.parametrize("line", ["sandbox_mode = 3", "approval_policy = 'maybe'", "model = 3"])
def test_setting_of_every_thread_must_be_right(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError):
        load(tmp_path, f"{line}\n{WRONG}")
