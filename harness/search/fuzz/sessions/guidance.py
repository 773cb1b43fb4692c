"""Guidance of the search: new sessions begin like earlier ones that reached something rare."""

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from harness.search.fuzz.sessions.chooser import Chooser
from harness.search.fuzz.sessions.play import Played
from harness.trace.frame import Frame

Mark = tuple[str, ...]
# Recent sessions with rare marks that are kept as beginnings.
MAX_KEPT_SESSIONS = 40
# Percentage of sessions that begin like a kept one.
MUTATION_PERCENT = 25
# A mark that fewer sessions reached is rare.
MAX_RARE_COUNT = 2


class Corpus:
    """Choices of sessions that reached something rare, and of the next session.

    The same seed gives the same choices as long as the same marks are reached; if unguided, always.
    """

    def __init__(self, seed: int, *, guided: bool = True) -> None:
        self._random = random.Random(f"sessions {seed}")
        self._guided = guided
        self._seen: Counter[Mark] = Counter()
        self._kept: list[Sequence[int]] = []

    @property
    def distinct(self) -> int:
        """Return the number of distinct marks reached."""
        return len(self._seen)

    def chooser(self) -> Chooser:
        """Return the chooser of the next session."""
        choices: list[int] = []
        source = random.Random(self._random.getrandbits(64))
        replayed: list[int] = []
        if self._guided and self._kept and source.randrange(100) < MUTATION_PERCENT:
            other = source.choice(self._kept)
            replayed = list(other[: source.randrange(len(other))])[::-1]

        def below(number: int) -> int:
            choices.append(replayed.pop() % number if replayed else source.randrange(number))
            return choices[-1]

        return Chooser(below, choices)

    def note_play(self, played: Played, chooser: Chooser) -> int:
        """Count the marks of a session with these choices; return how many are rare."""
        marks = marks_of(played)
        rare = sum(self._seen[mark] < MAX_RARE_COUNT for mark in marks)
        self._seen.update(marks)
        if rare and chooser.choices and not played.unmet:
            self._kept.append(chooser.choices)
            del self._kept[:-MAX_KEPT_SESSIONS]
        return rare


def marks_of(played: Played) -> set[Mark]:
    """Return the marks of a session: its verdicts on rules, its pairs of consecutive messages."""
    rule_marks: set[Mark] = {("rule", row.rule, str(row.verdict)) for row in played.outcome.rows}
    names = [_name(frame) for frame in played.run.trace.frames]
    return rule_marks | set(pairwise(names))


def _name(frame: Frame) -> str:
    return f"{frame.kind} {frame.method or ''}"
