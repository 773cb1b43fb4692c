"""Effects of requests: `effects` of the methods in schema/*.json and unlisted_methods.yaml.

Rules subscribe to methods when their modules are imported, so this reads these tables alone.
"""

from functools import cache

from harness.protocol.spec.rows import (
    EFFECTS,
    make_method,
    make_unlisted,
    read_messages,
    read_table,
)
from harness.protocol.spec.yamlfile import load_schemas, read_text, schema_files

_UNLISTED = "unlisted_methods.yaml"


@cache
def _effects() -> dict[str, tuple[str, ...]]:
    files = load_schemas(schema_files()).items()
    listed = [row for file in files for row in read_messages(*file, "methods", make_method)]
    unlisted = read_table(_UNLISTED, read_text(_UNLISTED), "method", make_unlisted)
    return {row.method: row.effects for row in (*listed, *unlisted.values())}


@cache
def methods_with(effect: str) -> tuple[str, ...]:
    """Return the requests that have an effect of `EFFECTS`, in the order of the tables.

    Raises `KeyError` for an unknown effect.
    """
    if effect not in EFFECTS:
        raise KeyError(effect)
    return tuple(method for method, effects in _effects().items() if effect in effects)


@cache
def named_methods() -> frozenset[str]:
    """Return the requests that have a row in a schema file or in unlisted_methods.yaml."""
    return frozenset(_effects())
