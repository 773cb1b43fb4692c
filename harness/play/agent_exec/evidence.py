"""Capabilities that a program turned out not to offer, read off the events that it wrote."""

from typing import Final

from harness.client.target.profile import Profile
from harness.model.parts import Reasoning
from harness.play.capability_evidence import undeclared_needs
from harness.play.run import Run
from harness.protocol.values import text
from harness.scenario.loader import Loaded
from harness.scenario.sdk_told import told_turns

# Offered if an item of this type was shown.
_SHOWN: Final = {"web-search": "web_search", "plan-update": "todo_list"}


def absent_from_exec(loaded: Loaded, run: Run, profile: Profile) -> list[str]:
    """The needs of a scenario that this target does not offer."""
    if profile.capabilities != "probe":
        return undeclared_needs(loaded, profile)
    lacking = run.unmet.capability if run.unmet is not None else ""
    told = told_turns(loaded.surface, run.trace, run.cast.turns).values()
    types = {text(item.shows.get("type")) for one in told for item in one.items or ()}
    if any(one.items is None for one in told):
        types |= {"reasoning", *_SHOWN.values()}  # Nobody was told of them: they may have come.
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
