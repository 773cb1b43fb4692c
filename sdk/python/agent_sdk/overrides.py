"""The `config` of an agent as `--config` arguments: dotted paths and values in TOML.

Every invalid key or value raises a ConfigError that names its path.
"""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent_sdk.errors import ConfigError
from agent_sdk.guards import is_list, is_mapping, is_path

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_MAX_DEPTH = 64


def overrides(config: Mapping[str, object]) -> list[str]:
    """Return one `path=value` for each leaf; an empty mapping inside `config` is a leaf.

    >>> overrides({"show_raw_agent_reasoning": True, "tools": {"web.search": "live"}})
    ['show_raw_agent_reasoning=true', 'tools."web.search"="live"']
    """
    return list(_flat((), {**config}))


def _flat(path: tuple[str, ...], config: Mapping[Any, object]) -> Iterator[str]:
    for key, value in config.items():
        full_path = (*path, _key(key, path))
        if len(full_path) > _MAX_DEPTH:
            raise ConfigError(f"config: {_path_name(path)} is nested too deeply")
        if is_mapping(value) and value:
            yield from _flat(full_path, value)
        else:
            yield f"{'.'.join(full_path)}={_toml(value, full_path)}"


def _key(key: object, path: tuple[str, ...]) -> str:
    if not isinstance(key, str) or not key:
        raise ConfigError(
            f"config: a key in {_path_name(path)} is {key!r}, and not a non-empty string"
        )
    return key if _BARE.fullmatch(key) else toml_string(key, _path_name((*path, repr(key))))


def _toml(value: object, path: tuple[str, ...]) -> str:
    if len(path) > _MAX_DEPTH:
        raise ConfigError(f"config: {_path_name(path)} is nested too deeply")
    # A bool is an int too.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml_string(value, _path_name(path))
    if is_path(value):
        return toml_string(os.fsdecode(value), _path_name(path))
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ConfigError(f"config: {_path_name(path)} does not fit into 64 bits")
        return str(int(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ConfigError(f"config: {_path_name(path)} is {value}, and not a finite number")
        return repr(float(value))
    return _composite(value, path)


def _composite(value: object, path: tuple[str, ...]) -> str:
    if is_mapping(value):
        pairs = [(_key(key, path), one) for key, one in value.items()]
        members = [f"{name} = {_toml(one, (*path, name))}" for name, one in pairs]
        return "{" + ", ".join(members) + "}"
    if is_list(value):
        return "[" + ", ".join(_toml(one, (*path, "[]")) for one in value) + "]"
    raise ConfigError(
        f"config: {_path_name(path)} is {_kind(value)}; "
        "it can be a string, a number, true or false, a list or a mapping"
    )


def _kind(value: object) -> str:
    return value.__class__.__name__


def _path_name(path: tuple[str, ...]) -> str:
    return "`" + ".".join(path) + "`" if path else "the top"


def toml_string(value: str, name: str) -> str:
    """Return a basic TOML string: a JSON string except for U+007F. `name` is for errors."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ConfigError(f"{name} holds a lone surrogate, which is no text") from None
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
