"""The timeline of lanes: which scenario was played on which lane, and when."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

MIN_WIDTH: Final = 1.5
"""Width, of 1,000 for the whole run, below which a play could not be clicked."""


@dataclass(frozen=True, slots=True)
class Span:
    """A `Play` of the page as a bar; `left` and `width` are of 1,000, `start` is in seconds."""

    play: Any
    left: float
    width: float
    start: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """The lanes of a run with their plays, and its seconds from the first play to the last."""

    lanes: Sequence[tuple[str, Sequence[Span]]]
    seconds: float


def timeline_of(plays: Sequence[Any]) -> Timeline:
    """Return the timeline of what was played on a lane."""
    timed = sorted((one for one in plays if one.lane and one.seconds), key=lambda one: one.began)
    first = timed[0].began if timed else 0.0
    total = max((play.began - first + play.seconds for play in timed), default=0.0) or 1.0
    lanes: dict[str, list[Span]] = defaultdict(list)
    for play in timed:
        start = play.began - first
        width = max(MIN_WIDTH, 1000 * play.seconds / total)
        left = min(1000 * start / total, 1000 - width)
        lanes[play.lane].append(Span(play, round(left, 2), round(width, 2), start))
    return Timeline(sorted(lanes.items(), key=lambda lane: (len(lane[0]), lane[0])), total)
