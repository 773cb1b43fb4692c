"""The keys that config.toml may have, and what is said of others.

Here lives one table of names; values are checked in `config.load`. A key that is not here has no
effect and is no mistake, since one file may serve several versions: it is told, and that is all.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from reference_server.brief import brief

KEYS: dict[str, tuple[str, ...]] = {
    "": (
        "approval_policy",
        "command_environment",
        "model",
        "model_auto_compact_token_limit",
        "model_context_window",
        "model_provider",
        "model_providers",
        "sandbox_mode",
        "web_search",
    ),
    "command_environment": ("pass", "set"),
    "model_providers.*": (
        "base_url",
        "env_key",
        "name",
        "request_max_retries",
        "retry_delay_ms",
        "stream_idle_timeout_ms",
        "stream_max_retries",
        # How the provider is spoken to. There is one way here, "responses", with or without it.
        "wire_api",
    ),
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
            return f"; it belongs {f'into [{other}]' if other else 'before the first table'}"
    near = difflib.get_close_matches(key[:100].lower(), known, 1)
    return f"; did you mean `{near[0]}`?" if near else "; it has no effect"
