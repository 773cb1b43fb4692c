"""Guesses at the scenario that an invalid file means, to find further mistakes in it.

It is never played: only the names in it are checked.
"""

from copy import deepcopy
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from harness.protocol.values import arr, obj
from harness.scenario.explain import keys_at
from harness.scenario.model import Scenario
from harness.trace.nearest import nearest

_ROUNDS = 3
_MISSING = object()


def mended_scenario(value: Any, error: ValidationError) -> Scenario | None:
    """Return the scenario with misspelt keys corrected and other invalid members left out.

    None if it is still invalid after a few attempts.
    """
    value = deepcopy(value)
    for _ in range(_ROUNDS):
        for detail in error.errors(include_url=False):
            _mend(value, detail)
        try:
            return Scenario.model_validate(value)
        except ValidationError as next_error:
            error = next_error
    return None


def _mend(value: Any, detail: ErrorDetails) -> None:
    """Rename a misspelt key or delete an invalid member, in place; list elements stay."""
    holder, last = None, None
    for step in detail["loc"]:
        # The validator's path has names of alternatives that are not keys of the file.
        inner = _child(value, step)
        if inner is not _MISSING:
            holder, last, value = value, step, inner
    if detail["type"] == "missing" or not isinstance(last, str) or last not in obj(holder):
        return
    del obj(holder)[last]
    if detail["type"] == "extra_forbidden":
        near = nearest(last, keys_at(detail["loc"][:-1]))
        if near:
            obj(holder).setdefault(near, value)


def _child(value: Any, step: str | int) -> Any:
    if isinstance(step, str):
        return obj(value).get(step, _MISSING)
    items = arr(value)
    return items[step] if step < len(items) else _MISSING
