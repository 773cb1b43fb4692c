"""Options of `harness show`, its colours and its pager."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.commands.output_files import STANDARD_OUTPUT, JsonOption, check_targets, write_json
from harness.cli.commands.run_commands import exit_on_error

if TYPE_CHECKING:
    from harness.cli.commands.show import Shown
    from harness.report.diagram.model import Diagram
    from harness.report.outline.node import Node

_TIME = "a time: 8300 (milliseconds), 8.3s or 2m"


def show(
    trace: Annotated[Path, typer.Argument(help="a stored trace, or a recording")],
    *,
    stdin: Annotated[bool, typer.Option("--stdin", help="only what was sent, as sent")] = False,
    message: Annotated[
        int | None, typer.Option(help="this one and those around it; the first is 0")
    ] = None,
    line: Annotated[int | None, typer.Option(help="the message in this line of the file")] = None,
    thread: Annotated[
        str, typer.Option(metavar="ID", help="of this thread; its id or a part")
    ] = "",
    turn: Annotated[str, typer.Option(metavar="ID", help="of this turn")] = "",
    item: Annotated[str, typer.Option(metavar="ID", help="of this item")] = "",
    method: Annotated[
        list[str] | None, typer.Option(help="of this method, or such as 'turn/*'; repeatable")
    ] = None,
    direction: Annotated[str, typer.Option(help="to-target or from-target")] = "",
    since: Annotated[str, typer.Option(metavar="TIME", help=f"from {_TIME}")] = "",
    until: Annotated[str, typer.Option(metavar="TIME", help=f"up to {_TIME}")] = "",
    target: Annotated[str, typer.Option(help="a profile: its names and known deviations")] = "",
    json: JsonOption = "",
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="as a sequence diagram: Mermaid text")
    ] = False,
    svg: Annotated[bool, typer.Option("--svg", help="as a sequence diagram: an SVG file")] = False,
    fold: Annotated[
        bool, typer.Option("--fold", help="in a terminal: unfold turns, items and messages; search")
    ] = False,
    pager: Annotated[bool, typer.Option(help="page long output in a terminal")] = True,
) -> None:
    """Show a trace: its messages with times and pairs, silences, and findings of its check.

    A request names its answer and the time between, a silence what was waited for. "!" marks a
    message with a finding. Filters combine; a request and its answer are shown together.
    """
    from harness.cli.commands.show import sent_bytes, show_trace
    from harness.cli.commands.trace_filter import TraceFilter
    from harness.client.target.run_folders import find_kept_file
    from harness.errors import UsageError

    with exit_on_error():
        check_targets(json)
        if stdin + mermaid + svg + (json == STANDARD_OUTPUT) > 1:
            raise UsageError("--stdin, --mermaid, --svg and --json - print: give one of them")
        path = find_kept_file(trace)
        if stdin:
            sys.stdout.buffer.write(sent_bytes(path))
            return
        chosen = TraceFilter(thread, turn, item, method or (), direction, since, until)
        if message is not None and line is not None:
            raise UsageError("--message and --line name one message: give one of them")
        read = partial(show_trace, path, chosen, message=message, line=line, target=target)
        if fold and not (stdin or mermaid or svg or json) and _can_fold():
            _show_folded(str(trace), read)
            return
        shown = read(colour=_wants_colour())
        if json:
            write_json(shown.json(), json)
        if mermaid or svg:
            _print_diagram(shown.diagram(), as_svg=svg)
        elif json != STANDARD_OUTPUT:
            _print(list(shown.lines()), pager=pager)


def _can_fold() -> bool:
    """Return whether keys can be read and the cursor be moved; if not, lines are printed."""
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return is_terminal and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")


def _show_folded(title: str, read: "Callable[..., Shown]") -> None:
    """Show a trace unjudged at first, since judging a long one takes seconds."""
    from harness.cli.fold_view import FoldView
    from harness.protocol.escapes import visible
    from harness.report.outline.build import build_outline

    def nodes(trace: "Shown") -> "list[Node]":
        return build_outline(trace.diagram(), trace.trace)

    FoldView(visible(title), nodes(read(judge=False)), lambda: nodes(read())).run()


def _wants_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _print_diagram(diagram: "Diagram", *, as_svg: bool) -> None:
    """Print a diagram as UTF-8, whatever the locale is: SVG files have that encoding."""
    from harness.report.diagram.mermaid import mermaid_text
    from harness.report.diagram.svg import svg_text

    text = svg_text(diagram) if as_svg else mermaid_text(diagram)
    sys.stdout.buffer.write(text.encode())


def _print(lines: Sequence[str], *, pager: bool) -> None:
    text = "\n".join(lines) + "\n"
    screen = shutil.get_terminal_size()
    height = sum(1 + len(line) // max(1, screen.columns) for line in lines)
    if pager and sys.stdout.isatty() and height >= screen.lines:
        _page(text)
    else:
        typer.echo(text, nl=False)


def _page(text: str) -> None:
    """Show a text with `$PAGER`, else `less`; print it if there is none."""
    command = shlex.split(os.environ.get("PAGER") or "less")
    program = shutil.which(command[0]) if command else None
    if program is None:
        typer.echo(text, nl=False)
        return
    # R shows colours; F and X leave a short text on the screen.
    env = {**os.environ, "LESS": os.environ.get("LESS") or "FRX"}
    subprocess.run(
        [program, *command[1:]], input=text.encode(errors="backslashreplace"), env=env, check=False
    )
