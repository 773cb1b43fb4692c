"""Which items a run wants: scenarios, races, or one placement.

Here: what `--race` and `-m` say. Not here: collecting (items).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from harness.scenario.explain import unknown
from harness.scenario.model import ACTIONS
from harness.target.profile import ProfileError


@dataclass(frozen=True, slots=True)
class Selection:
    """`scenarios` and `races`: whether such items are wanted; of races `action` and `position` may
    be the only ones, "" for all.
    """

    scenarios: bool = True
    races: bool = False
    action: str = ""
    position: str = ""

    def chooses(self, action: str) -> bool:
        """Whether races of this action are wanted."""
        return self.races and self.action in ("", action)

    def at(self, positions: Iterable[str]) -> bool:
        """Whether the wanted position is among these."""
        return not self.position or self.position in positions


def selection(race: str, markers: str) -> Selection:
    """What `--race` (all, ACTION, ACTION@POSITION) and the expression of `-m` ask for.

    Races take long, so they are played only where one of the two names them. Raises
    `ProfileError`.
    """
    if not race:
        return Selection(races="race" in markers)
    action, _, position = race.partition("@")
    if action == "all" and not position:
        return Selection(scenarios=False, races=True)
    if action not in ACTIONS:
        what = unknown("action", action, ("all", *ACTIONS))
        raise ProfileError(f"--race {race}: {what}; give all, ACTION, or ACTION@POSITION")
    return Selection(scenarios=False, races=True, action=action, position=position)
