"""The table of `agent mcp list`.

On a terminal it has the terminal's width, and long cells are folded; elsewhere every row is one
line of any length, without control codes.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import TextIO


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], stream: TextIO | None = None
) -> None:
    """Print a table on `stream`, by default standard output. Cells are lines without escapes."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    out = sys.stdout if stream is None else stream
    rows = [list(row) for row in rows]
    if not out.isatty():
        widths = [max(map(cell_len, cells)) for cells in zip(columns, *rows, strict=True)]
        for row in (columns, *rows):
            cells = (
                cell + " " * (width - cell_len(cell))
                for cell, width in zip(row, widths, strict=True)
            )
            print("  ".join(cells).rstrip(), file=out)
        return
    console = Console(file=out, highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
