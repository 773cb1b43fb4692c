"""Problems that count: broken MUST rules, and deviations from the server's own habits.

A correct server may break a SHOULD rule, but one that keeps it again and again, and breaks it once
in a rare combination, most likely has a defect. A rule is a habit of the server once it was kept
often and never broken.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from harness.judge.verdict import Level
from harness.search.fuzz.sessions.play import Problem

# Times that a rule must be kept before a violation counts.
MIN_TIMES_KEPT = 12
# Times that a choice must be seen before another choice counts.
MIN_TIMES_SEEN = 2


class Judged(Protocol):
    """The problems of a play, and the number of rows of each SHOULD rule that passed."""

    @property
    def problems(self) -> Sequence[Problem]:
        """The problems, in the order in which they were noticed."""
        ...

    @property
    def kept_rules(self) -> Mapping[str, int]:
        """The number of rows that passed, by SHOULD rule."""
        ...


class Habits:
    """Rules that the server kept or broke, and its choices, in the sessions so far."""

    def __init__(self) -> None:
        self._kept: Counter[str] = Counter()
        self._broken: set[str] = set()
        self._news: set[str] = set()
        self._done: dict[str, Counter[str]] = {}

    def serious_problems(self, played: Judged) -> list[Problem]:
        """Return the problems of a session that count, one per cause and occasion."""
        problems: dict[tuple[str, str], Problem] = {}
        for problem in played.problems:
            if problem.habit:
                if self._is_unusual(problem.cause, problem.habit) and problem.where:
                    problems.setdefault((problem.cause, problem.occasion), problem)
            elif problem.level is Level.MUST or self._is_habit(problem.cause):
                problems.setdefault((problem.cause, problem.occasion), problem)
        self._kept.update(played.kept_rules)
        return list(problems.values())

    def _is_unusual(self, cause: str, done: str) -> bool:
        """Count a choice, and return whether the server mostly chooses otherwise."""
        if f"{cause} {done}" in self._news:
            return True  # It is being followed up.
        counts = self._done.setdefault(cause, Counter())
        counts[done] += 1
        other_count = sum(counts.values()) - counts[done]
        if other_count < MIN_TIMES_SEEN or other_count <= counts[done]:
            return False
        self._news.add(f"{cause} {done}")
        return True

    def _is_habit(self, rule: str) -> bool:
        if rule in self._news:
            return True
        if rule in self._broken or self._kept[rule] < MIN_TIMES_KEPT:
            self._broken.add(rule)
            return False
        self._news.add(rule)
        return True
