"""Every word of a scenario that may be a name which only one server has."""

from collections.abc import Iterator
from typing import Any, cast

from harness.scenario.client_steps import WaitStep
from harness.scenario.model import Outcome, Scenario

# Fields of steps that hold messages or parts of them; in the last two a member may be a path.
_HELD = ("params", "input", "decision", "result", "where", "message")
# Fields of steps that name a method.
_METHODS = ("method", "to", "notification", "request")


def words_used(scenario: Scenario) -> set[str]:
    """The members, the texts, the methods, the item types and the statuses that a file names."""
    found: set[str] = set()
    for step in scenario.steps:
        body: Any = getattr(step, next(iter(type(step).model_fields)))
        for field in (*_HELD, *_METHODS):
            found.update(_words(getattr(body, field, None), paths=field in ("where", "message")))
        if isinstance(step, WaitStep):
            found.update(step.wait.statuses)
    for entry in scenario.faults:
        found.update(_words(entry.model_dump()))
    for outcome in (scenario.expect, *scenario.expect.any_of):
        found.update(_expected(outcome))
    return found


def _expected(outcome: Outcome) -> Iterator[str]:
    yield from _words(list(outcome.items or ()))
    for accepted in outcome.turns.values():
        yield from _words(accepted)


def _words(value: Any, *, paths: bool = False) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _words(item)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield from key.split(".") if paths else (key,)
            yield from _words(item)
