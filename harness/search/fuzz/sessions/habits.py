"""Problems that count: breaches of the text, and of what this server does in other cases.

A SHOULD rule may be broken by a correct server, but a server that keeps it again and again, and
breaks it once, in a rare combination, has most likely a defect. Such a rule is a habit of the
server once it was kept often and never broken.
"""

from collections import Counter

from harness.judge.verdict import Level
from harness.search.fuzz.sessions.play import Played, Problem

# So often a rule has to be kept before breaking it is news.
OFTEN = 12
# So often the same choice has to be seen before the other one is.
SEEN = 2


class Habits:
    """Rules that a server was seen to keep and to break in the sessions so far."""

    def __init__(self) -> None:
        self._kept: Counter[str] = Counter()
        self._broken: set[str] = set()
        self._news: set[str] = set()
        self._done: dict[str, Counter[str]] = {}

    def serious(self, played: Played) -> list[Problem]:
        """The problems of a session that count, one for each occasion of a cause."""
        problems: dict[tuple[str, str], Problem] = {}
        for problem in played.problems:
            if problem.habit:
                if self._unusual(problem.cause, problem.habit) and problem.where:
                    problems.setdefault((problem.cause, problem.occasion), problem)
            elif problem.level is Level.MUST or self._habit(problem.cause):
                problems.setdefault((problem.cause, problem.occasion), problem)
        self._kept.update(played.kept)
        return list(problems.values())

    def _unusual(self, cause: str, done: str) -> bool:
        """Return whether the server mostly does otherwise where it has this choice."""
        if f"{cause} {done}" in self._news:
            return True  # It is being tried again.
        counts = self._done.setdefault(cause, Counter())
        counts[done] += 1
        other_count = sum(counts.values()) - counts[done]
        if other_count < SEEN or other_count <= counts[done]:
            return False
        self._news.add(f"{cause} {done}")
        return True

    def _habit(self, rule: str) -> bool:
        if rule in self._news:
            return True
        if rule in self._broken or self._kept[rule] < OFTEN:
            self._broken.add(rule)
            return False
        self._news.add(rule)
        return True
