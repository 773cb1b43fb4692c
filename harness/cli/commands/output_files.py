"""Output options, the same in all commands: `--json`, `--markdown`, `--html FILE|-`, `-o FILE`.

`-` is standard output, in place of the text that the command prints otherwise.
"""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from harness.errors import UsageError
from harness.protocol.escapes import json_text, visible_lines

STANDARD_OUTPUT: Final = "-"
METAVAR: Final = "FILE|-"

JsonOption = Annotated[
    str, typer.Option("--json", metavar=METAVAR, help="the results as JSON; - for standard output")
]
MarkdownOption = Annotated[
    str, typer.Option("--markdown", metavar=METAVAR, help="as Markdown; - for standard output")
]

HtmlOption = Annotated[
    str, typer.Option("--html", metavar=METAVAR, help="as a page for a browser; - for stdout")
]

BadgesOption = Annotated[
    Path | None,
    typer.Option(
        "--badges", metavar="DIR", help="a badge of each target there", show_default=False
    ),
]

OnOption = Annotated[
    str, typer.Option("--on", metavar="CLUSTER", help="play on a Dask cluster: local[:N], tcp://…")
]


def say(text: str, *, err: bool = False) -> None:
    """Print lines that may quote a server, a client or a folder's name, safely for a terminal."""
    typer.echo(visible_lines(text), err=err)


def write_results(
    text: Callable[[], Iterable[str]],
    *,
    json_target: str = "",
    results: Callable[[], Any] = lambda: None,
    markdown_target: str = "",
    markdown: Callable[[], Iterable[str]] = tuple,
    html_target: str = "",
    html: Callable[[], str] = str,
) -> None:
    """Write the results in the requested forms, and as text unless one is on standard output.

    Raises `UsageError` if several forms are, or if a file cannot be written.
    """
    check_targets(json_target, markdown_target, html_target)
    if json_target:
        write_json(results(), json_target)
    if markdown_target:
        _write("--markdown", visible_lines("\n".join(markdown()) + "\n"), markdown_target)
    if html_target:
        _write("--html", html(), html_target)
    if STANDARD_OUTPUT not in (json_target, markdown_target, html_target):
        for line in text():
            say(line)


def check_targets(json_target: str, markdown_target: str = "", html_target: str = "") -> None:
    """Raise `UsageError` for two forms on standard output, or a file that cannot be written."""
    targets = (("--json", json_target), ("--markdown", markdown_target), ("--html", html_target))
    from harness.report.report_file import write_problem

    printed = [f"{option} -" for option, target in targets if target == STANDARD_OUTPUT]
    if len(printed) > 1:
        raise UsageError(f"{' '.join(printed)}: one of them only; name a file for the other")
    for option, target in targets:
        problem = (
            write_problem(target, makes_folder=True) if target not in ("", STANDARD_OUTPUT) else ""
        )
        if problem:
            raise UsageError(f"{option} {target}: {problem}")


def write_json(value: Any, target: str) -> None:
    """Write a value to a file or to standard output. Raises `UsageError` if it cannot."""
    _write("--json", json_text(value, indent=1) + "\n", target)


def _write(option: str, text: str, target: str) -> None:
    if target == STANDARD_OUTPUT:
        sys.stdout.write(text)
        return
    try:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UsageError(f"{option} {target}: {os.strerror(error.errno or 0)}") from error
