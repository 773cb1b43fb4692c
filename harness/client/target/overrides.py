"""A profile with the additions of one scenario: configuration, or a server that listens."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from harness.client.target.profile import Profile, fill
from harness.client.target.settings_files import (
    CONFIG_FILE,
    place_settings,
    settings_problem,
)
from harness.client.target.tomltext import steps_of

# Any name, in a path of `lifted`.
ANY_NAME = "*"
# The placeholders of scenarios.
SCENARIO_PLACEHOLDERS = ("cwd", "home", "agent", "python", "scenario_folder")
# The placeholder of profiles for the model's address.
_MODEL = "{model_url}"


def placeholder_values(
    profile: Profile, cwd: Path, home: Path | None = None, *, scenario_folder: Path | None = None
) -> dict[str, str]:
    """Return the values of the placeholders in a scenario.

    `{cwd}` is its working folder, `{home}` the home of the server, once there is one, `{agent}` the
    name of a project's folder for the server, `{python}` an interpreter, `{scenario_folder}` the
    folder of its file.
    """
    values = {"cwd": str(cwd), "agent": profile.agent_folder, "python": sys.executable}
    if scenario_folder is not None:
        values["scenario_folder"] = str(scenario_folder)
    return values if home is None else {**values, "home": str(home)}


def with_overrides(
    profile: Profile,
    *,
    config: Mapping[str, Any],
    placeholders: Mapping[str, str],
    several: bool,
    env: Mapping[str, str] | None = None,
    client_name: str | None = None,
) -> Profile:
    """Return the profile with these additions; the same profile if there are none.

    `config` is merged into the profile's settings file, table by table, under the names of its
    `settings`; its `placeholders` are filled, and tables in the profile's `lifted` move up one
    level before. What has no place is left out. `env` is added to the server's environment. With
    `several` clients, a server on its standard streams gets the profile's arguments to listen.
    `client_name` is the client's name in the handshake.
    """
    changes: dict[str, Any] = {}
    if config:
        added = fill(dict(config), placeholders)
        for path in profile.lifted:
            added = _lift_members(added, steps_of(path))
        placed = place_settings(profile.settings, added)
        file = profile.settings.file or CONFIG_FILE
        content = profile.home.get(file, {})
        if placed.table and not isinstance(content, str):
            changes["home"] = {**profile.home, file: merge_tables(content, placed.table)}
        env = {**placed.env, **(env or {})}
    if env:
        changes["env"] = {**profile.env, **env}
    if client_name is not None:
        client_info = cast("dict[str, Any]", profile.initialize.get("clientInfo") or {})
        client = {"version": "1", **client_info, "name": client_name}
        changes["initialize"] = {**profile.initialize, "clientInfo": client}
    if several and profile.listen_arguments and profile.listening_kind() is None:
        changes["command"] = [*profile.command, *profile.listen_arguments]
    return profile.model_copy(update=changes) if changes else profile


def unplaced_settings(
    profile: Profile, config: Mapping[str, Any], *, has_mcp_servers: bool = False
) -> str:
    """Return why a scenario's configuration cannot be given to this server, "" if it can.

    `has_mcp_servers`: the harness adds `mcp_servers`.
    """
    added = merge_tables(config, {"mcp_servers": {}} if has_mcp_servers else {})
    for path in profile.lifted:
        added = _lift_members(added, steps_of(path))
    return settings_problem(profile.settings, profile.home, profile.formats, added)


def _lift_members(table: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return a copy with the members of the table at `path` moved one table up; `*` is any name."""
    name, *rest = path
    changed = dict(table)
    for key, value in table.items():
        if name not in (key, ANY_NAME) or not isinstance(value, dict):
            continue
        inner = cast("dict[str, Any]", value)
        if rest:
            changed[key] = _lift_members(inner, rest)
        else:
            del changed[key]
            changed |= inner
    return changed


def merge_tables(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return both tables merged; the new one's values win, table by table."""
    merged = dict(old)
    for key, value in new.items():
        before = merged.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            value = merge_tables(before, value)  # pyright: ignore[reportUnknownArgumentType]
        merged[key] = value
    return merged


def turn_params(profile: Profile, needs: Sequence[str]) -> dict[str, Any]:
    """Return the profile's additions to each turn/start of a scenario with these needs."""
    return {name: value for need in needs for name, value in profile.turn.get(need, {}).items()}


def model_address_carriers(profile: Profile) -> str:
    """Return how the server gets the model's address: `PROVIDER_BASE_URL and config.toml`.

    "" if the profile does not pass it on.
    """
    carriers = [name for name, value in profile.env.items() if _MODEL in value]
    carriers += [name for name, table in profile.home.items() if _MODEL in repr(table)]
    carriers += ["the command"] if any(_MODEL in word for word in profile.command) else []
    return " and ".join(filter(None, [", ".join(carriers[:-1]), *carriers[-1:]]))
