"""Which requests do what: the column `effects` of methods.yaml, and of unlisted_methods.yaml.

Rules subscribe to methods when their modules are imported, so this reads these tables alone.
"""

from functools import cache

from harness.spec.rows import EFFECTS, make_method, make_unlisted, read_table
from harness.spec.yamlfile import read_text

_LISTED, _UNLISTED = "methods.yaml", "unlisted_methods.yaml"


@cache
def _effects() -> dict[str, tuple[str, ...]]:
    listed = read_table(_LISTED, read_text(_LISTED), "method", make_method)
    unlisted = read_table(_UNLISTED, read_text(_UNLISTED), "method", make_unlisted)
    return {row.method: row.effects for row in (*listed.values(), *unlisted.values())}


@cache
def methods_with(effect: str) -> tuple[str, ...]:
    """The requests that have an effect, in the order of the tables; the words are in `EFFECTS`.

    Raises `KeyError` for a word that is not among them.
    """
    if effect not in EFFECTS:
        raise KeyError(effect)
    return tuple(method for method, effects in _effects().items() if effect in effects)
