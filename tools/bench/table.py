"""The printed table: a row for each budget, a column for each server.

A missing cell reads "not measured" in the first column, for which the budgets are, and "-" in the
others, since many budgets concern this project only.
"""

from collections.abc import Iterable, Mapping, Sequence

from tools.bench.budgets import Budget
from tools.bench.stats import Absent, Cell, format_cell, format_number

Cells = Mapping[str, Mapping[str, Cell]]
"""column -> budget key -> cell"""

NOT_MEASURED = Absent("not measured")
NOT_OURS = Absent("-")


def lines_of(budgets: Iterable[Budget], columns: Sequence[str], cells: Cells) -> list[str]:
    """Return the lines of the table; the first of `columns` is judged by the budgets."""
    rows = [["budget", "", columns[0], "", *columns[1:]]]
    for budget in budgets:
        row = [_cell(cells, column, budget.key, column == columns[0]) for column in columns]
        rows.append(
            [
                budget.title,
                _limit(budget),
                format_cell(row[0]),
                budget.verdict(row[0]),
                *map(format_cell, row[1:]),
            ]
        )
    return _align(rows)


def _cell(cells: Cells, column: str, key: str, is_first: bool) -> Cell:
    return cells.get(column, {}).get(key, NOT_MEASURED if is_first else NOT_OURS)


def _limit(budget: Budget) -> str:
    if budget.limit is None:
        return budget.unit
    sign = "<=" if budget.better == "lower" else ">="
    limit = f"{budget.limit:g}" if budget.limit < 1000 else format_number(budget.limit)
    return f"{sign} {limit} {budget.unit}"


def _align(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    rule = "  ".join("-" * width for width in widths)
    return [lines[0], rule, *lines[1:]]
