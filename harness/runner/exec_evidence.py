"""Which capabilities a program turned out not to offer, read off the events that it wrote.

Here: what a run of `agent exec` shows of a scenario's needs where its profile promises nothing. Not
here: the same for the session (capability_evidence).
"""

from typing import Final

from harness.backend.parts import Reasoning
from harness.runner.capability_evidence import undeclared
from harness.runner.run import Run
from harness.scenario.exec_told import told_by
from harness.scenario.loader import Loaded
from harness.target.profile import Profile
from harness.trace.values import text

# Offered if an item of this type was shown.
_SHOWN: Final = {"web-search": "web_search", "plan-update": "todo_list"}


def absent_from_exec(loaded: Loaded, run: Run, profile: Profile) -> list[str]:
    """The needs of a scenario that this target does not offer."""
    if profile.capabilities != "probe":
        return undeclared(loaded, profile)
    lacking = run.unmet.capability if run.unmet is not None else ""
    types = {
        text(item.shows.get("type"))
        for connection in run.cast.turns.values()
        for item in told_by(run.trace, connection).items
    }
    missing = [need for need in loaded.scenario.needs if _lacks(need, types, run)]
    return list(dict.fromkeys([*([lacking] if lacking else []), *missing]))


def _lacks(need: str, types: set[str], run: Run) -> bool:
    match need:
        case "reasoning":
            return "reasoning" not in types and _reasoned(run)
        case "model-retry":
            return len(run.model.calls) <= len(run.cast.turns)
        case _:
            return need in _SHOWN and _SHOWN[need] not in types


def _reasoned(run: Run) -> bool:
    return any(
        isinstance(part, Reasoning)
        for call in run.model.calls
        if call.step is not None
        for part in call.step.reply or ()
    )
