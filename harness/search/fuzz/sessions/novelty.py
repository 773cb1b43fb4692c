"""A choice among many drawn sessions: those that bring together what none did before.

To draw a session takes a millisecond and to play it half a second, and a bug that needs three
things at once shows in one of hundreds that chance alone draws.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from harness.protocol.values import obj, text
from harness.scenario.client_steps import MAIN
from harness.search.fuzz.sessions.turns import Json

# Things that come together in a session: what is done, and what its effect may depend on.
Meeting: TypeAlias = tuple[Any, ...]
# So many sessions are drawn for each that is played.
DRAWN_FOR_ONE = 12
# What a meeting is worth by how often it came up.
_WORTH = (1.0, 0.3)
# A session takes, beside its steps, the time of so many: a workspace, a silence, the judgement.
_FIXED_COST = 20


@dataclass(frozen=True, slots=True)
class Drawn:
    """A session that may be played: how many steps it has, what meets in it, and its document."""

    steps: int
    meetings: Collection[Meeting]
    document: Callable[[], Json]

    def worth(self, seen: Counter[Meeting]) -> float:
        """Weigh what is seldom seen in it against the time that it takes."""
        news = sum(
            _WORTH[seen[meeting]] for meeting in self.meetings if seen[meeting] < len(_WORTH)
        )
        return news / (self.steps + _FIXED_COST)


def chosen(drawn: Sequence[Drawn], number: int, seen: Counter[Meeting]) -> list[int]:
    """The places of so many sessions, the most worthwhile first; `seen` is added to.

    What one of them brings together is no news in the next. Since a session is never worth more
    after another was chosen, only the foremost is weighed again (Minoux's lazy greedy choice).
    """
    waiting = [(-session.worth(seen), place) for place, session in enumerate(drawn)]
    heapq.heapify(waiting)
    places: list[int] = []
    while waiting and len(places) < number:
        _, place = heapq.heappop(waiting)
        now = -drawn[place].worth(seen)
        if waiting and now > waiting[0][0]:
            heapq.heappush(waiting, (now, place))
            continue
        places.append(place)
        seen.update(drawn[place].meetings)
    return places


class Meetings:
    """Things that meet in one session, noted step by step while it is planned."""

    def __init__(self) -> None:
        self.found: set[Meeting] = set()
        self._last = ("", "")
        self._rows: dict[str, list[str]] = defaultdict(lambda: ["", ""])
        self._asked: dict[str, str] = {}

    def note(
        self, kind: str, body: Json, thread: str, moment: str, others: Collection[str], follows: int
    ) -> None:
        """Note a step.

        `thread` is the alias of the one that it is about, "" for none, and `moment` where that is;
        `others` are the moments of the other threads with a turn. `follows` counts the followers
        of the thread, below zero where the step is of another client.
        """
        if kind == "wait":
            return
        on = text(body.get("on")) or MAIN
        last, before = self._last
        step_name = text(body.get("method")) or f"{kind} {_decision(kind, body)}"
        where_from = "here" if before == thread else "elsewhere"
        around = tuple(sorted(set(others)))
        self.found.add(("next", self._asked.get(on, ""), step_name, where_from, moment, around))
        self.found.add(("after", last, step_name, moment, around))
        if thread:
            row = self._rows[thread]
            self.found.add(("row", *row[-2:], step_name))
            self.found.add(("who", step_name, moment, follows))
            row.append(step_name)
        self._last = (step_name, thread)
        if kind != "answer":
            self._asked[on] = step_name


def _decision(kind: str, body: Json) -> str:
    if kind != "answer":
        return ""
    return text(body.get("decision")) or text(obj(body.get("result")).get("decision")) or "none"
