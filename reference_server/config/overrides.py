"""`--config key=value` of the command line.

The key may be dotted, as in TOML (`model_providers.mock.base_url="…"`). The value is TOML, or else
a string, so that `--config model=some-model` needs no quotes. Later arguments take precedence.
"""

import re
from collections.abc import Sequence
from typing import Any, cast

from reference_server.brief import brief
from reference_server.config.mistakes import ConfigError, Steps

_DOTTED = re.compile(
    r"""\s*(?:[\w-]+|"[^"\\]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"\\]*"|'[^']*'))*\s*"""
)


def apply_overrides(table: dict[str, Any], arguments: Sequence[str]) -> dict[Steps, str]:
    """Apply the arguments to `table` in place; return the argument by the steps to its value.

    A table is merged into a table; any other value replaces the old one. Raises ConfigError for an
    argument that is not `key=value`.
    """
    argument_of: dict[Steps, str] = {}
    for argument in arguments:
        _apply(table, _read(argument), (), argument, argument_of)
    return argument_of


def _read(argument: str) -> dict[str, Any]:
    import tomllib

    key, equals, value = argument.partition("=")
    if not (equals and _DOTTED.fullmatch(key)):
        raise ConfigError(
            f"--config {brief(argument)}: must be key=value, for example model=some-model or "
            "model_providers.mine.request_max_retries=2"
        )
    try:
        return tomllib.loads(f"{key} = {value}")
    except (tomllib.TOMLDecodeError, RecursionError):
        table = tomllib.loads(f"{key} = 0")
        _put(table, value.strip())
        return table


def _put(table: dict[str, Any], value: str) -> None:
    """Set the innermost value of nested tables with one key each."""
    [(key, inner)] = table.items()
    if isinstance(inner, dict):
        _put(cast("dict[str, Any]", inner), value)
    else:
        table[key] = value


def _apply(
    table: dict[str, Any],
    overrides: dict[str, Any],
    steps: Steps,
    argument: str,
    argument_of: dict[Steps, str],
) -> None:
    for key, value in overrides.items():
        path = (*steps, key)
        old = table.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            _apply(
                cast("dict[str, Any]", old),
                cast("dict[str, Any]", value),
                path,
                argument,
                argument_of,
            )
        else:
            table[key] = value
            argument_of[path] = argument
