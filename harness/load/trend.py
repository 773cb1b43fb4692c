"""Trend of a series: the Mann-Kendall test, with the slope of Theil and Sen.

H. B. Mann, "Nonparametric Tests Against Trend", Econometrica 13 (1945); M. G. Kendall, "Rank
Correlation Methods" (1975), for ties; P. K. Sen, "Estimates of the Regression Coefficient Based on
Kendall's Tau", J. Am. Stat. Assoc. 63 (1968), after H. Theil (1950).
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Final

MIN_POINTS: Final = 12
MAX_P: Final = 0.001
MIN_LATE_SHARE: Final = 0.4
"""Least slope of the second half, as a share of the whole's: a series that levels off is flat."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Trend:
    """A series: its median, its slope per unit of x, the growth over all, and whether it grows.

    `p` is the probability of such an order, or a stronger one, in a series without a trend.
    """

    level: float
    slope: float
    growth: float
    p: float
    grows: bool


def trend_of(points: Points, *, min_growth: float, min_share: float) -> Trend | None:
    """Return the trend of points in the order of x, None for fewer than `MIN_POINTS`.

    It grows if that is no accident, if it did not level off, and if the growth is at least
    `min_growth` and `min_share` of the value with which the line of the trend begins.
    """
    if len(points) < MIN_POINTS:
        return None
    values = [y for _, y in points]
    level, slope, p = median(values), theil_sen(points), mann_kendall(values)
    growth = slope * (points[-1][0] - points[0][0])
    beginning = level - slope * (median(x for x, _ in points) - points[0][0])
    grows = (
        p < MAX_P
        and growth >= max(min_growth, min_share * beginning)
        and theil_sen(points[len(points) // 2 :]) >= MIN_LATE_SHARE * slope
    )
    return Trend(level, slope, growth, p, grows)


def theil_sen(points: Points) -> float:
    """Return the median of the slopes of all pairs, 0 if no two have a different x."""
    pairs = combinations(points, 2)
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in pairs if x1 != x2]
    return median(slopes) if slopes else 0.0


def mann_kendall(values: Sequence[float]) -> float:
    """Return the one-sided p of growth, by the normal approximation with a correction for ties."""
    count = len(values)
    score = sum((later > earlier) - (later < earlier) for earlier, later in combinations(values, 2))
    ties = Counter(values).values()
    variance = (
        count * (count - 1) * (2 * count + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)
    ) / 18
    if variance <= 0:
        return 1.0
    z = (score - (score > 0) + (score < 0)) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2)) / 2
