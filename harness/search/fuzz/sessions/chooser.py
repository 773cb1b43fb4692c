"""Source of the choices of a generated session: hypothesis, or a seeded generator."""

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Chooser:
    """Choices from one function, which returns an integer from 0 to n - 1.

    0 is always the plainest choice, so that smaller numbers make plainer sessions. `choices` are
    those so far, if they are recorded.
    """

    def __init__(self, below: Callable[[int], int], choices: Sequence[int] = ()) -> None:
        self.below = below
        self.choices = choices

    def chance(self, percent: int) -> bool:
        """Return True with a probability of `percent`."""
        return self.below(100) >= 100 - percent

    def pick(self, values: Sequence[T]) -> T:
        """Return one of the values."""
        return values[self.below(len(values))]

    def pick_weighted(self, values: Sequence[tuple[T, int]]) -> T:
        """Return one of the values, with probabilities by weight."""
        place = self.below(sum(weight for _, weight in values))
        for value, weight in values:
            place -= weight
            if place < 0:
                return value
        return values[-1][0]

    def pick_some(self, values: Sequence[T], percent: int) -> list[T]:
        """Return a selection, each value with a probability of `percent`."""
        return [value for value in values if self.chance(percent)]


def seeded_chooser(seed: int) -> Chooser:
    """Return a chooser that makes the same choices for the same seed."""
    return Chooser(random.Random(seed).randrange)
