"""Unknown keys of config.toml.

An unknown key has no effect and only causes a warning, since one file may serve several versions of
the server. `config.file` has the known keys.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from reference_server.brief import brief
from reference_server.config.file import (
    CommandEnvironment,
    ConfigFile,
    ProviderTable,
    WorkspaceWriteTable,
    keys_of,
)
from reference_server.config.mcp_tables import McpTable, TransportTable
from reference_server.config.mistakes import Steps, choices, suggestion
from reference_server.config.skills import FeaturesTable, SkillsTable, SkillSwitch

KEYS: dict[str, tuple[str, ...]] = {
    "": keys_of(ConfigFile),
    "command_environment": keys_of(CommandEnvironment),
    "model_providers.*": keys_of(ProviderTable),
    "sandbox_workspace_write": keys_of(WorkspaceWriteTable),
    "mcp_servers.*": keys_of(McpTable),
    "mcp_servers.*.transport": keys_of(TransportTable),
    "skills": keys_of(SkillsTable),
    "skills.config": keys_of(SkillSwitch),
    "features": keys_of(FeaturesTable),
}
"""Known keys by table; `*` is any name. A table that is not here may have any key."""


def unknown_keys(
    table: Mapping[str, Any], path: str = "", steps: Steps = ()
) -> Iterator[tuple[Steps, str]]:
    """Yield the steps to each unknown key in `table`, with a message."""
    known_keys = KEYS.get(path)
    for key, value in table.items():
        if known_keys is not None and key not in known_keys:
            yield (
                (*steps, key),
                f"there is no key `{brief(key)}` here{_advice(key, path, known_keys)}",
            )
        elif isinstance(value, dict):
            inner = cast("dict[str, Any]", value)
            yield from unknown_keys(inner, _inner(path, key), (*steps, key))
        elif isinstance(value, list):
            for index, value_in_list in enumerate(cast("list[Any]", value)):
                if isinstance(value_in_list, dict):
                    element = cast("dict[str, Any]", value_in_list)
                    yield from unknown_keys(element, _inner(path, key), (*steps, key, index))


def _inner(path: str, key: str) -> str:
    name = f"{path}.{key}" if path else key
    any_name = f"{path}.*"
    return any_name if any_name in KEYS else name


def _advice(key: str, path: str, known_keys: tuple[str, ...]) -> str:
    for other, names in KEYS.items():
        if other != path and key in names:
            return f"; it belongs {f'in [{other}]' if other else 'before the first table'}"
    return suggestion(key, known_keys) or f"; it has no effect{choices(known_keys)}"
