"""Answer times of a server, and a note about a run that they make long."""

import math
from statistics import median

from harness.trace.correlation import Correlation
from harness.trace.frame import Direction
from harness.trace.trace import Trace

SLOW_SECONDS = 1.0
"""A server with a longer median answer time is slow: scenarios with many steps may time out."""
_BOUNDS_FIT_SECONDS = 0.5
"""At this answer time the usual bounds are long enough for every bundled scenario."""


def answer_seconds(trace: Trace) -> float:
    """Return the median time of answers to the client's requests in seconds; 0 without any."""
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
    """Return a note on a slow server: how long the run takes, and options; "" if it is not slow.

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
