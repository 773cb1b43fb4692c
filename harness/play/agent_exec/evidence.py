"""Capabilities that a program's events show to be missing."""

from typing import Final

from harness.client.target.profile import Profile
from harness.model.parts import Reasoning
from harness.play.capability_evidence import undeclared_needs
from harness.play.run import Run
from harness.protocol.values import text
from harness.scenario.loader import Loaded
from harness.scenario.sdk_results import results_by_alias

# Capability -> the item type that shows it.
_ITEM_TYPES: Final = {"web-search": "web_search", "plan-update": "todo_list"}


def absent_from_exec(loaded: Loaded, run: Run, profile: Profile) -> list[str]:
    """Return the scenario's needs that this target does not offer."""
    if profile.capabilities != "probe":
        return undeclared_needs(loaded, profile)
    unmet_capability = run.unmet.capability if run.unmet is not None else ""
    turns = results_by_alias(loaded.surface, run.trace, run.cast.turns).values()
    types = {text(item.members.get("type")) for turn in turns for item in turn.items or ()}
    if any(turn.items is None for turn in turns):
        types |= {"reasoning", *_ITEM_TYPES.values()}  # Unreported items may exist.
    missing = [need for need in loaded.scenario.needs if _is_absent(need, types, run)]
    return list(dict.fromkeys([*([unmet_capability] if unmet_capability else []), *missing]))


def _is_absent(need: str, types: set[str], run: Run) -> bool:
    match need:
        case "reasoning":
            return "reasoning" not in types and _model_sent_reasoning(run)
        case "model-retry":
            return len(run.model.calls) <= len(run.cast.turns)
        case _:
            return need in _ITEM_TYPES and _ITEM_TYPES[need] not in types


def _model_sent_reasoning(run: Run) -> bool:
    return any(
        isinstance(part, Reasoning)
        for call in run.model.calls
        if call.step is not None
        for part in call.step.reply or ()
    )
