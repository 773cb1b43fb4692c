"""Reducing many measurements to one figure."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value in the unit of its budget, its range, and what must be said with it.

    `comparable` is False where it was measured on less than its budget speaks of.
    """

    value: float
    low: float | None = None
    high: float | None = None
    note: str = ""
    comparable: bool = True


@dataclass(frozen=True, slots=True)
class Absent:
    """No figure, and why: shown in its place."""

    reason: str


Cell = Figure | Absent


def median(values: Sequence[float], *, scale: float = 1.0, note: str = "") -> Figure:
    """Return the median of at least one value, with minimum and maximum; each times `scale`."""
    if not values:
        raise ValueError("a figure needs at least one value")
    scaled = [value * scale for value in values]
    return Figure(statistics.median(scaled), min(scaled), max(scaled), note)


def format_number(value: float) -> str:
    """Three significant digits, or whole thousands with separators."""
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    digits = 1 if abs(value) >= 9.995 else 2
    return f"{value:.{digits}f}"


def format_cell(cell: Cell) -> str:
    """Return a cell in words: value, range, note."""
    if isinstance(cell, Absent):
        return cell.reason
    text = format_number(cell.value)
    if cell.low is not None and cell.high is not None and cell.low != cell.high:
        text += f" [{format_number(cell.low)}..{format_number(cell.high)}]"
    return f"{text} ({cell.note})" if cell.note else text
