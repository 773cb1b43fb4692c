"""How far a session has led: what it reached that few others did.

Here: the number by which hypothesis prefers sessions. What counts are the rules that judged
something, which messages came in a row, and what was under way when a request was sent. Not here:
drawing sessions.
"""

import itertools
from collections import Counter

from harness.fuzz.sessions.play import Played


class Reached:
    """What all sessions so far have reached."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, ...]] = Counter()

    def score(self, played: Played) -> int:
        """What this session reached, rare things ten times."""
        mine = marks_of(played)
        rare = sum(self._seen[one] < 3 for one in mine)
        self._seen.update(mine)
        return len(mine) + 10 * rare


def marks_of(played: Played) -> set[tuple[str, ...]]:
    """What a session reached: rules, and messages in a row."""
    found: set[tuple[str, ...]] = {("rule", row.rule) for row in played.outcome.rows}
    names = [_name(frame) for frame in played.run.trace.frames]
    return found | set(itertools.pairwise(names))


def _name(frame: object) -> str:
    method = getattr(frame, "method", None)
    return f"{getattr(frame, 'kind', '')}:{method or ''}"
