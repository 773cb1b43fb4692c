"""Keys of config.toml that are not known.

Here lives how they are found and what is said of each. A key that is not known has no effect and is
no mistake, since one file may serve several versions of the server: a warning is all. The known
ones are in `config.file`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from reference_server.brief import brief
from reference_server.config.file import (
    CommandEnvironment,
    ConfigFile,
    ProviderTable,
    keys_of,
)

KEYS: dict[str, tuple[str, ...]] = {
    "": keys_of(ConfigFile),
    "command_environment": keys_of(CommandEnvironment),
    "model_providers.*": keys_of(ProviderTable),
}
"""Table -> its keys; `*` is any name. A table that is not here takes any key."""


def unknown_keys(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, object, str]]:
    """Give each key that is not known with its value, and what to say of it."""
    known = KEYS.get(path)
    for key, value in table.items():
        if known is not None and key not in known:
            yield key, value, f"there is no key `{brief(key)}` here{_advice(key, path, known)}"
        elif isinstance(value, dict):
            yield from unknown_keys(cast("dict[str, Any]", value), _inner(path, key))


def _inner(path: str, key: str) -> str:
    one = f"{path}.{key}" if path else key
    any_name = f"{path}.*"
    return any_name if any_name in KEYS else one


def _advice(key: str, path: str, known: tuple[str, ...]) -> str:
    import difflib  # only who has such a key waits for it

    for other, names in KEYS.items():
        if other != path and key in names:
            return f"; it belongs {f'in [{other}]' if other else 'before the first table'}"
    near = difflib.get_close_matches(key[:100].lower(), known, 1)
    return f"; did you mean `{near[0]}`?" if near else "; it has no effect"
