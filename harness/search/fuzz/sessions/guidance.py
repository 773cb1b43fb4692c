"""Beginnings of new sessions: nothing, or one that reached what few others did."""

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from harness.search.fuzz.sessions.chooser import Chooser
from harness.search.fuzz.sessions.play import Played
from harness.trace.frame import Frame

Mark = tuple[str, ...]
# Of so many sessions that reached something new, the last ones, one is gone on from.
KEPT = 40
# In so many of a hundred cases.
FROM_ANOTHER = 25
# What so few sessions reached is rare.
RARE = 2


class Corpus:
    """The choices of sessions that reached something rare, and the next session's choices.

    The same seed gives the same choices as long as the same things are reached; unguided ones,
    always.
    """

    def __init__(self, seed: int, *, guided: bool = True) -> None:
        self._random = random.Random(f"sessions {seed}")
        self._guided = guided
        self._seen: Counter[Mark] = Counter()
        self._kept: list[Sequence[int]] = []

    @property
    def distinct(self) -> int:
        """Return the number of different marks reached."""
        return len(self._seen)

    def chooser(self) -> Chooser:
        """The choices of the next session."""
        choices: list[int] = []
        source = random.Random(self._random.getrandbits(64))
        replayed: list[int] = []
        if self._guided and self._kept and source.randrange(100) < FROM_ANOTHER:
            other = source.choice(self._kept)
            replayed = list(other[: source.randrange(len(other))])[::-1]

        def below(number: int) -> int:
            choices.append(replayed.pop() % number if replayed else source.randrange(number))
            return choices[-1]

        return Chooser(below, choices)

    def reached(self, played: Played, chooser: Chooser) -> int:
        """Note what the session of these choices reached; gives how much of it is rare."""
        marks = marks_of(played)
        rare = sum(self._seen[mark] < RARE for mark in marks)
        self._seen.update(marks)
        if rare and chooser.made and not played.unmet:
            self._kept.append(chooser.made)
            del self._kept[:-KEPT]
        return rare


def marks_of(played: Played) -> set[Mark]:
    """Return the rules that a session gave something to judge, and its messages in a row."""
    rule_marks: set[Mark] = {("rule", row.rule, str(row.verdict)) for row in played.outcome.rows}
    names = [_name(frame) for frame in played.run.trace.frames]
    return rule_marks | set(pairwise(names))


def _name(frame: Frame) -> str:
    return f"{frame.kind} {frame.method or ''}"
