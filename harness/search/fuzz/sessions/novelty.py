"""Choice among many drawn sessions: those with new combinations of steps and states.

Drawing a session takes a millisecond and playing it half a second; random sessions alone show a bug
that needs a combination of three only once in hundreds.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from harness.protocol.values import obj, text
from harness.scenario.client_steps import MAIN_CONNECTION
from harness.search.fuzz.sessions.turns import Json

# A combination in a session: a step, with steps and states that its effect may depend on.
Meeting: TypeAlias = tuple[Any, ...]
# Sessions drawn for each one that is played.
DRAWN_PER_PLAYED = 12
# Worth of a meeting, by the number of times that it came up before.
_NOVELTY = (1.0, 0.3)
# Fixed cost of a session in steps: a workspace, a silence, the judging.
_FIXED_COST = 20


@dataclass(frozen=True, slots=True)
class DrawnSession:
    """A candidate session: its number of steps, its meetings, and its document."""

    steps: int
    meetings: Collection[Meeting]
    document: Callable[[], Json]

    def worth(self, meeting_counts: Counter[Meeting]) -> float:
        """Return the worth of its rare meetings, divided by its cost."""
        news = sum(
            _NOVELTY[meeting_counts[meeting]]
            for meeting in self.meetings
            if meeting_counts[meeting] < len(_NOVELTY)
        )
        return news / (self.steps + _FIXED_COST)


def choose_novel(
    sessions: Sequence[DrawnSession], number: int, meeting_counts: Counter[Meeting]
) -> list[int]:
    """Return the indexes of the most worthwhile sessions, and count their meetings.

    Choosing a session never makes another worth more, so only the best remaining one is weighed
    again (Minoux's lazy greedy algorithm).
    """
    waiting = [(-session.worth(meeting_counts), place) for place, session in enumerate(sessions)]
    heapq.heapify(waiting)
    places: list[int] = []
    while waiting and len(places) < number:
        _, place = heapq.heappop(waiting)
        now = -sessions[place].worth(meeting_counts)
        if waiting and now > waiting[0][0]:
            heapq.heappush(waiting, (now, place))
            continue
        places.append(place)
        meeting_counts.update(sessions[place].meetings)
    return places


class Meetings:
    """Meetings of one session, recorded step by step while it is planned."""

    def __init__(self) -> None:
        self.found: set[Meeting] = set()
        self._last = ("", "")
        self._rows: dict[str, list[str]] = defaultdict(lambda: ["", ""])
        self._asked: dict[str, str] = {}

    def note(
        self,
        kind: str,
        body: Json,
        thread: str,
        moment: str,
        other_moments: Collection[str],
        follows: int,
    ) -> None:
        """Record the meetings of a step.

        `thread` is the alias of its thread, "" for none, and `moment` that thread's state;
        `other_moments` are those of other threads with a turn. `follows` is the number of the
        thread's subscribers, negative if the step's client is not one of them.
        """
        if kind == "wait":
            return
        on = text(body.get("on")) or MAIN_CONNECTION
        last, before = self._last
        step_name = text(body.get("method")) or f"{kind} {_decision(kind, body)}"
        where_from = "here" if before == thread else "elsewhere"
        around = tuple(sorted(set(other_moments)))
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
