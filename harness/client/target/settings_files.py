"""The settings of a server: files in its home, their formats, and the settings of one scenario."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple, cast

import tomlkit
import yaml
from pydantic import Field

from harness.client.target.tables import Table
from harness.client.target.tomltext import dotted_key, steps_of

Format = Literal["toml", "json", "yaml", "dotenv", "text"]
CONFIG_FILE = "config.toml"
"""The file in which a server of the specification keeps its configuration."""

_FORMATS: Mapping[str, Format] = {
    ".json": "json",
    ".jsonc": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".env": "dotenv",
}
# Any name, in a path of `names`; the first step of a path that leads to a variable.
_ANY_NAME, _ENVIRONMENT = "*", "env"
# Values that every reader of dotenv files takes without quotes.
_PLAIN_VALUE = re.compile(r"[\w./:@%+,=-]*")
_MAX_KEYS_NAMED = 3


class Settings(Table):
    """The place of a scenario's `config` in the settings of this server.

    `file` is a file of `home`, "" for `config.toml`. `names` maps keys of `config` to keys of the
    file, to `env.NAME`, or to "" for one that the server does not need; None: they are the same.
    """

    file: str = ""
    names: dict[str, str] | None = Field(default=None)


class Placed(NamedTuple):
    """The settings of a scenario: tables for the file, variables, and keys that have no place."""

    table: dict[str, Any]
    env: dict[str, str]
    unknown: list[str]


def format_of(name: str, content: object, stated: Mapping[str, Format]) -> Format:
    """Return the format of a file: text for a string, as stated, else by its ending, or TOML."""
    if isinstance(content, str):
        return "text"
    path = PurePosixPath(name)
    suffix = ".env" if path.name.startswith(".env") else path.suffix.lower()
    return stated.get(name, _FORMATS.get(suffix, "toml"))


def file_text(name: str, content: Any, stated: Mapping[str, Format]) -> str:
    """Return the text of a settings file. Raises `ValueError` for a table in a dotenv file."""
    match format_of(name, content, stated):
        case "text":
            return content
        case "json":
            return json.dumps(content, indent=2, ensure_ascii=False, default=_day_text) + "\n"
        case "yaml":
            return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        case "dotenv":
            return "".join(f"{key}={_dotenv_value(key, one)}\n" for key, one in content.items())
        case _:
            return tomlkit.dumps(content)  # pyright: ignore[reportUnknownMemberType]


def _day_text(value: Any) -> str:
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    raise TypeError(f"{value!r} has no form in JSON")


def _dotenv_value(key: str, value: Any) -> str:
    text = variable_text(value)
    if text is None:
        raise ValueError(f"{key!r} is a table or list, which a dotenv file cannot hold")
    if _PLAIN_VALUE.fullmatch(text):
        return text
    escaped = re.sub(r'(["\\$`])', r"\\\1", text).replace("\n", "\\n")
    return f'"{escaped}"'


def variable_text(value: Any) -> str | None:
    """Return a value as a variable holds it, None for a table or list."""
    if isinstance(value, dict | list):
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def place_settings(settings: Settings, config: Mapping[str, Any]) -> Placed:
    """Return where the keys of a scenario's `config` belong."""
    if settings.names is None:
        return Placed(dict(config), {}, [])
    targets = {steps_of(key): target for key, target in settings.names.items()}
    placed = Placed({}, {}, [])
    for loc, value in _leaves((), config):
        prefix = next(
            (
                path
                for length in range(len(loc), 0, -1)
                for path in targets
                if len(path) == length and _fits(path, loc)
            ),
            None,
        )
        if prefix is None:
            placed.unknown.append(dotted_key(loc))
        elif targets[prefix]:
            _put(placed, (*steps_of(targets[prefix]), *loc[len(prefix) :]), loc, value)
    return placed


def _put(placed: Placed, target: Sequence[str], loc: Sequence[str], value: Any) -> None:
    """Put a value at its place in the file, or into a variable."""
    if target[0] == _ENVIRONMENT and len(target) > 1:
        text = variable_text(value)
        if text is None or len(target) > 2:
            placed.unknown.append(dotted_key(tuple(loc)))
        else:
            placed.env[target[1]] = text
        return
    table = placed.table
    for step in target[:-1]:
        table = table.setdefault(step, {})
    table[target[-1]] = value


def _fits(path: Sequence[str], loc: Sequence[str]) -> bool:
    return all(one in (_ANY_NAME, step) for one, step in zip(path, loc, strict=False))


def _leaves(loc: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in cast("Mapping[str, Any]", value).items():
            yield from _leaves((*loc, key), inner)
    elif loc:
        yield loc, value


def settings_problem(
    settings: Settings,
    home: Mapping[str, Any],
    formats: Mapping[str, Format],
    config: Mapping[str, Any],
) -> str:
    """Return why a scenario's `config` cannot be given to the server, "" if it can."""
    placed = place_settings(settings, config)
    if placed.unknown:
        named = ", ".join(placed.unknown[:_MAX_KEYS_NAMED])
        more = len(placed.unknown) - _MAX_KEYS_NAMED
        named += f" and {more} more" if more > 0 else ""
        return f"the profile's settings.names has no place for {named}"
    if not placed.table:
        return ""
    file = settings.file or CONFIG_FILE
    content = home.get(file, {})
    if not settings.file and home and file not in home:
        return f"the profile writes no {file}, and its [settings] names no other file"
    form = format_of(file, content, formats)
    is_flat = not any(isinstance(one, dict | list) for one in placed.table.values())
    if form == "text" or (form == "dotenv" and not is_flat):
        return f"the settings file {file} is {form}, which a scenario's config cannot be put into"
    return ""
