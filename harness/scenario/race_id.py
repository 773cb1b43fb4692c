"""The ids of a race and of its placements, as reports print them and users write them."""

from dataclasses import dataclass

_SEPARATOR = "@"


@dataclass(frozen=True, slots=True)
class RaceId:
    """A scenario, an action in it, and the position at which the action is placed.

    `turns/plain-turn@interrupt@item:1:started` is a placement, without a position it is a race,
    without an action the scenario itself. Parts that are not given are "".
    """

    scenario: str
    action: str = ""
    position: str = ""

    @classmethod
    def parse(cls, text: str) -> "RaceId":
        """Return the id that a text spells; it may be that of a scenario."""
        scenario, _, name = text.partition(_SEPARATOR)
        return cls.parse_name(name, scenario)

    @classmethod
    def parse_name(cls, name: str, scenario: str = "") -> "RaceId":
        """Return the id of a `name` (ACTION or ACTION@POSITION) in a scenario."""
        action, _, position = name.partition(_SEPARATOR)
        return cls(scenario, action, position)

    @property
    def name(self) -> str:
        """Return action and position without the scenario: `interrupt@item:1:started`."""
        return _SEPARATOR.join([self.action, self.position] if self.position else [self.action])

    def __str__(self) -> str:
        return _SEPARATOR.join(part for part in (self.scenario, self.name) if part)
