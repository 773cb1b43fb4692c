"""Cells of the table: a figure reduced from many measurements, or the reason for its absence."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value in the unit of its budget, its range, and a note to print with it.

    `comparable` is False if it was measured on a smaller scale than its budget assumes.
    """

    value: float
    low: float | None = None
    high: float | None = None
    note: str = ""
    comparable: bool = True


@dataclass(frozen=True, slots=True)
class Absent:
    """The reason for a missing figure, printed in its place."""

    reason: str


Cell = Figure | Absent


def median(values: Sequence[float], *, scale: float = 1.0, note: str = "") -> Figure:
    """Return the median, minimum and maximum, each times `scale`. ValueError without values."""
    if not values:
        raise ValueError("a figure needs at least one value")
    scaled = [value * scale for value in values]
    return Figure(statistics.median(scaled), min(scaled), max(scaled), note)


def format_number(value: float) -> str:
    """Return a number with three significant digits, from 100 on whole, as in `12,345`."""
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    digits = 1 if abs(value) >= 9.995 else 2
    return f"{value:.{digits}f}"


def format_cell(cell: Cell) -> str:
    """Return a cell as text: value, range and note, or the reason for its absence."""
    if isinstance(cell, Absent):
        return cell.reason
    text = format_number(cell.value)
    if cell.low is not None and cell.high is not None and cell.low != cell.high:
        text += f" [{format_number(cell.low)}..{format_number(cell.high)}]"
    return f"{text} ({cell.note})" if cell.note else text
