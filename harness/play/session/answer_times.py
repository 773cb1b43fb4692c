"""The speed of a server: the time of its answers, and a note about a run that it makes long."""

import math
from statistics import median

from harness.trace.correlation import Correlation
from harness.trace.frame import Direction
from harness.trace.trace import Trace

SLOW_SECONDS = 1.0
"""An answer that takes longer makes a server slow: scenarios with many steps meet their bounds."""
_BOUNDS_FIT_SECONDS = 0.5
"""With answers of this time the usual bounds are long enough for every bundled scenario."""


def answer_seconds(trace: Trace) -> float:
    """Return the median time of the answers to requests of the client, 0 without an answer."""
    correlation = Correlation(trace.frames)
    times = [
        answer.at - request.at
        for request in correlation.requests
        if request.direction is Direction.TO_TARGET
        and request.method != "initialize"
        and (answer := correlation.answer_of(request)) is not None
    ]
    return median(times) if times else 0.0


def slow_note(
    answer_time: float, *, scale: float, scenario_seconds: float, scenarios: int, lanes: int
) -> str:
    """Return a note about a slow server: the length of the run, and the options; "" for others.

    One scenario took `scenario_seconds`; `scale` is the option `--timeout-scale` of the run.
    """
    if answer_time < SLOW_SECONDS:
        return ""
    minutes = math.ceil(scenario_seconds * math.ceil(scenarios / lanes) / 60)
    needed = math.ceil(round(answer_time / _BOUNDS_FIT_SECONDS, 1))
    advice = f"; if steps time out, give --timeout-scale {needed}" if scale < needed else ""
    return (
        f"slow server: an answer takes {answer_time:.1f} s, so {scenarios} scenario(s) take about "
        f"{minutes} min{advice}; --max-time SECONDS ends earlier, with a verdict on what was played"
    )
