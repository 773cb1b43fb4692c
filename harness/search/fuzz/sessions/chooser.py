"""Sources of the choices of a generated session: hypothesis, or a seeded generator in tests."""

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Chooser:
    """Makes every choice from one function that gives a whole number from 0 to n - 1.

    0 is always the plainest choice, so that what shrinks numbers makes sessions plainer. `made` are
    the choices so far, where somebody notes them.
    """

    def __init__(self, below: Callable[[int], int], made: Sequence[int] = ()) -> None:
        self.below = below
        self.made = made

    def chance(self, percent: int) -> bool:
        """True in so many of a hundred cases."""
        return self.below(100) >= 100 - percent

    def one(self, values: Sequence[T]) -> T:
        """One of the values."""
        return values[self.below(len(values))]

    def weighted(self, values: Sequence[tuple[T, int]]) -> T:
        """One of the values, each as often as its weight says."""
        place = self.below(sum(weight for _, weight in values))
        for value, weight in values:
            place -= weight
            if place < 0:
                return value
        return values[-1][0]

    def some(self, values: Sequence[T], percent: int) -> list[T]:
        """Each of the values with this chance."""
        return [value for value in values if self.chance(percent)]


def seeded(seed: int) -> Chooser:
    """A chooser that makes the same choices for the same seed."""
    return Chooser(random.Random(seed).randrange)
