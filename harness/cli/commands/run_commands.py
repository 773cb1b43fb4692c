"""Commands of `harness` that read recorded runs, and the one-line form of user errors."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.commands.output_files import (
    BadgesOption,
    HtmlOption,
    JsonOption,
    MarkdownOption,
    say,
    write_results,
)

if TYPE_CHECKING:
    from harness.report.compare.values import Comparison

_RUN = "a JSON report, a name in .harness/reports, last, or previous"


class exit_on_error:
    """Context manager that turns `UsageError` and `OSError` into one line and exit status 2."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        from harness.errors import UsageError

        if isinstance(error, OSError) and error.filename is not None:
            say(f"harness: {os.fsdecode(error.filename)}: {error.strerror}", err=True)
            raise typer.Exit(2) from error
        if isinstance(error, UsageError | OSError):
            say(f"harness: {error}", err=True)
            raise typer.Exit(2) from error


def status(
    *,
    full: Annotated[bool, typer.Option("--full", help="every requirement, one row each")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="write the table to a file too")
    ] = None,
    json: JsonOption = "",
) -> None:
    """The table requirement x rule x scenario x fault x target, from the last runs."""
    from harness.cli.commands.status import read_targets, status_lines, to_plain

    with exit_on_error():
        targets = read_targets()
        lines = list(status_lines(targets, full=full))
        write_results(lambda: lines, json_target=json, results=lambda: to_plain(targets))
        if output is not None:
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text("\n".join(lines) + "\n", "utf-8", "backslashreplace")


def report(
    recorded: Annotated[str, typer.Argument(metavar="RUN", help=_RUN)] = "last",
    *,
    markdown: MarkdownOption = "",
    html: HtmlOption = "",
    json: JsonOption = "",
    badges: BadgesOption = None,
) -> None:
    """Show a recorded run, matrix or fuzz result again: as text, or as a page."""
    from harness.cli.commands.matrix import write_badges
    from harness.cli.commands.recorded_report import find_recorded

    with exit_on_error():
        recorded_results = find_recorded(recorded)
        write_results(
            recorded_results.text_lines,
            json_target=json,
            results=recorded_results.to_plain,
            markdown_target=markdown,
            markdown=recorded_results.markdown_lines,
            html_target=html,
            html=recorded_results.html,
        )
        if badges is not None:
            write_badges(recorded_results.columns(), badges)


def compare(
    before: Annotated[str, typer.Argument(help=_RUN)],
    after: Annotated[str, typer.Argument(help="the run to compare with it, named likewise")],
    *,
    markdown: MarkdownOption = "",
    html: HtmlOption = "",
    json: JsonOption = "",
) -> None:
    """Say what changed between two runs: verdicts, choices, messages.

    Exit status 1 if something got worse or may break a client, 0 if nothing did.
    """
    from harness.cli.commands.recorded_runs import find_run
    from harness.report.compare.comparison import compare
    from harness.report.compare.plain import to_plain
    from harness.report.compare.text import markdown as markdown_lines
    from harness.report.compare.text import text_lines

    with exit_on_error():
        comparison = compare(find_run(before), find_run(after))
        write_results(
            lambda: text_lines(comparison),
            json_target=json,
            results=lambda: to_plain(comparison),
            markdown_target=markdown,
            markdown=lambda: markdown_lines(comparison),
            html_target=html,
            html=lambda: _comparison_page(comparison),
        )
    raise typer.Exit(1 if comparison.worse else 0)


def _comparison_page(comparison: "Comparison") -> str:
    from harness.report.html.other_pages import comparison_page

    return comparison_page(comparison)


def ledger(
    recorded: Annotated[str, typer.Argument(metavar="RUN", help=_RUN)] = "last",
    *,
    point: Annotated[str, typer.Option(help="the points whose id begins so: item.")] = "",
    markdown: MarkdownOption = "",
    json: JsonOption = "",
) -> None:
    """Show what a server chose where the text leaves it open, next to what we chose."""
    from harness.cli.commands.ledger import ledger_rows as points
    from harness.cli.commands.ledger import markdown_lines, text_lines
    from harness.cli.commands.recorded_runs import find_run

    with exit_on_error():
        run = find_run(recorded)
        rows = points(run, point)
        write_results(
            lambda: text_lines(run, rows),
            json_target=json,
            results=lambda: [row.to_plain() for row in rows],
            markdown_target=markdown,
            markdown=lambda: markdown_lines(rows),
        )
