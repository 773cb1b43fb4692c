"""`harness merge`: one report of the shards of a run."""

import gc
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.commands.output_files import (
    BadgesOption,
    HtmlOption,
    JsonOption,
    MarkdownOption,
    write_results,
)
from harness.cli.commands.run_commands import exit_on_error

STATUS_INCOMPLETE = 6
STATUS_OF_SIGNAL = {"SIGINT": 130, "SIGTERM": 143}


def merge(
    reports: Annotated[
        list[str], typer.Argument(metavar="REPORT…", help="of harness run --shard K/N --json")
    ],
    *,
    write_durations: Annotated[
        str, typer.Option(metavar="FILE", help="for --durations of the next run")
    ] = "",
    markdown: MarkdownOption = "",
    html: HtmlOption = "",
    json: JsonOption = "",
    badges: BadgesOption = None,
) -> None:
    """Merge the reports of all shards into that of one run, with its exit status.

    A missing shard, or one that ended early, makes the run fail.
    """
    from harness.cli.commands.matrix import write_badges
    from harness.cli.commands.recorded_report import RecordedRun
    from harness.cli.commands.recorded_runs import find_run
    from harness.report.shards.durations import durations_text
    from harness.report.shards.merging import merge_reports

    with exit_on_error():
        gc.disable()  # Everything read stays until the end.
        report, seconds = merge_reports((name, find_run(name).report) for name in reports)
        status = STATUS_INCOMPLETE if report.unplayed else 0
        status = STATUS_OF_SIGNAL.get(report.interrupted, int(report.red) or status)
        merged = RecordedRun(report, status)
        write_results(
            merged.text_lines,
            json_target=json,
            results=merged.to_plain,
            markdown_target=markdown,
            markdown=merged.markdown_lines,
            html_target=html,
            html=merged.html,
        )
        if badges is not None:
            write_badges(merged.columns(), badges)
        if write_durations:
            Path(write_durations).write_text(durations_text(seconds), "utf-8")
    raise typer.Exit(status)
