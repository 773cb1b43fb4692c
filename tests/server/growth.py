"""Measurement of how the cost of code grows with the size of its input.

The cost is the CPU time of the process, and the minimum of several repeats, so that a busy machine
changes little.
"""

import gc
import math
import time
from collections.abc import Callable

Job = Callable[[], object]
STEPS = (1, 2, 4, 8)
_REPEATS = 3
_MIN_SECONDS = 0.001
"""Minimum seconds of one measurement; a shorter job is run several times."""


def exponent(job_of: Callable[[int], Callable[[], Job]], largest: int) -> float:
    """Fit cost = c * size**e by least squares on logarithms and return e.

    `job_of(size)` prepares an input once and returns a function that makes a job for each repeat.
    """
    sizes = [largest * step // STEPS[-1] for step in STEPS]
    points = [(math.log(size), math.log(_cost(job_of(size)))) for size in sizes]
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    above = sum((x - middle_x) * (y - middle_y) for x, y in points)
    return above / sum((x - middle_x) ** 2 for x, _ in points)


def _cost(fresh: Callable[[], Job]) -> float:
    gc.disable()
    try:
        first = _timed([fresh()])
        count = max(1, math.ceil(_MIN_SECONDS / max(first, 1e-7)))
        repeats = _REPEATS if first < 0.1 else 1
        return min(_timed([fresh() for _ in range(count)]) / count for _ in range(repeats))
    finally:
        gc.enable()


def _timed(jobs: list[Job]) -> float:
    begun = time.process_time()
    for job in jobs:
        job()
    return max(time.process_time() - begun, 1e-9)
