"""Items to play of each scenario file: the scenario, races, or single placements."""

from dataclasses import dataclass

from harness.errors import UsageError
from harness.scenario.explain import unknown_name
from harness.scenario.model import ACTIONS
from harness.scenario.race_id import RaceId


@dataclass(frozen=True, slots=True)
class Selection:
    """Items of a file to play; each race is an action and its position, "" for all positions."""

    scenarios: bool = True
    races: tuple[tuple[str, str], ...] = ()

    def positions(self, action: str) -> list[str]:
        """Return the positions of an action by name, [""] for all; [] if it is not raced."""
        position_names = [
            position for raced_action, position in self.races if raced_action == action
        ]
        return [""] if "" in position_names else list(dict.fromkeys(position_names))


ALL = tuple((action, "") for action in ACTIONS)


def selection(race: str, markers: str) -> Selection:
    """Return the selection made by `--race` and the expression of `-m`.

    `race` is all, ACTION, ACTION@POSITION, or several with commas. Races take long, so they are
    played only if one of the two names them. Raises `UsageError` for an unknown action.
    """
    if not race:
        return Selection(races=ALL if "race" in markers else ())
    races: list[tuple[str, str]] = []
    for word in race.split(","):
        race_id = RaceId.parse_name(word.strip())
        action, position = race_id.action, race_id.position
        if action == "all" and not position:
            races += ALL
        elif action in ACTIONS:
            races.append((action, position))
        else:
            problem = unknown_name("action", action, ("all", *ACTIONS))
            raise UsageError(
                f"--race {race}: {problem}; "
                "give all, ACTION, or ACTION@POSITION, several with commas"
            )
    return Selection(scenarios=False, races=tuple(dict.fromkeys(races)))


def tags(option: str) -> frozenset[str]:
    """Return the words of `--tag`; a scenario needs one of them. `UsageError` if one is empty."""
    words = [word.strip() for word in option.split(",")] if option else []
    if not all(words):
        raise UsageError(f"--tag {option}: found an empty word; give TAG, several with commas")
    return frozenset(words)
