"""Progress of the runs that `harness matrix` and `harness bisect` start, on standard error."""

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.cli.commands.output_files import say

if TYPE_CHECKING:
    from harness.search.releases.plays import Plays


@contextmanager
def show_plays(plays: "Plays", *, err: bool = True) -> Generator[Callable[[str], None]]:
    """Show how far each running play is, until the block ends; yield what prints a line.

    In a terminal below what is printed, elsewhere in a block of plain lines each half minute. Lines
    are printed on stderr with `err`, else on stdout.
    """
    from harness.report.progress.plain_lines import PlainLines
    from harness.report.progress.plays_view import PlaysView
    from harness.report.progress.terminal_area import TerminalArea, can_show_area

    view = PlaysView(lambda: dict(plays.playing))
    if can_show_area(2, os.environ):
        area = TerminalArea(view, view.poll, 2, sys.stderr.encoding)
    else:
        area = PlainLines(view.plain_lines, 2, sys.stderr.encoding)

    def print_line(line: str) -> None:
        if isinstance(area, TerminalArea) and (err or sys.stdout.isatty()):
            area.print(line)
        else:
            say(line, err=err)

    area.start()
    try:
        yield print_line
    finally:
        area.stop()
