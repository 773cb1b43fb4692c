"""Names in a scenario that may be one server's own."""

from collections.abc import Iterator
from typing import Any, cast

from harness.scenario.client_steps import WaitStep
from harness.scenario.model import Outcome, Scenario
from harness.scenario.references import paths_of_references

# Fields of steps that hold parts of messages; in the last two a key is a dotted path.
_VALUE_FIELDS = ("params", "input", "decision", "result", "where", "message")
# Fields of steps that name a method.
_METHOD_FIELDS = ("method", "to", "notification", "request")


def words_used(scenario: Scenario) -> set[str]:
    """Return the keys, texts, methods, item types and statuses in a scenario."""
    used: set[str] = set()
    for step in scenario.steps:
        body: Any = getattr(step, next(iter(type(step).model_fields)))
        for field in (*_VALUE_FIELDS, *_METHOD_FIELDS):
            value = getattr(body, field, None)
            used.update(_words(value, paths=field in ("where", "message")))
            used.update(step for *_, path in paths_of_references(value) for step in path)
        if isinstance(step, WaitStep):
            used.update(step.wait.statuses)
    for entry in scenario.faults:
        used.update(_words(entry.model_dump()))
    for outcome in (scenario.expect, *scenario.expect.any_of):
        used.update(_words_of_outcome(outcome))
    return used


def _words_of_outcome(outcome: Outcome) -> Iterator[str]:
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
