"""Parts of a scenario that only a client under test can use, and their mistakes."""

from harness.scenario.answers import find_answer_mistake
from harness.scenario.model import Scenario
from harness.trace.surfaces import SESSION

Problem = tuple[tuple[str | int, ...], str]

_PARTS = ("default_script", "answers")


def find_client_test_mistake(scenario: Scenario) -> Problem | None:
    """Return the place and reason of a part that does not fit the rest of the file, or None."""
    for part in _PARTS:
        if not getattr(scenario, part):
            continue
        if not scenario.is_clientless:
            return (part,), f"{part} is for a client under test: leave setup and client out"
        if SESSION not in scenario.surfaces:
            return (part,), f"{part} is for a client under test: leave surfaces out"
    if scenario.default_script and scenario.model:
        return ("default_script",), "default_script takes the place of model: leave one of them out"
    return find_answer_mistake(scenario.answers)
