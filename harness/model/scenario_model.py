"""The scripted model of a scenario whose client's side is not played.

Gates that the scenario's client would open are open from the start. Any other gate holds until the
caller closes the stream, as an interrupt does.
"""

from collections.abc import Iterable
from typing import Protocol

from harness.model.default_script import DefaultModel
from harness.model.model import ScriptedModel
from harness.model.script import Script
from harness.model.wire.responses import ResponsesEncoder


class ScenarioScripts(Protocol):
    """The members of a scenario that its model needs."""

    def scripts(self) -> dict[str, Script]:
        """Return thread alias -> script, in the order in which the scenario starts the threads."""
        ...

    def opened_gates(self) -> Iterable[str]:
        """Return the gates that the client's side opens."""
        ...

    @property
    def default_script(self) -> bool:
        """Return whether the built-in default script is played."""
        ...

    @property
    def strict_model(self) -> bool:
        """Return whether a call of a thread that has no script is a problem."""
        ...


def scripted_model_of(scenario: ScenarioScripts) -> ScriptedModel:
    """Return a model that plays a scenario's scripts, or the default script."""
    if scenario.default_script:
        return DefaultModel()
    model = ScriptedModel(scenario.scripts(), ResponsesEncoder(), strict=scenario.strict_model)
    for gate in scenario.opened_gates():
        model.gates.open(gate)
    return model
