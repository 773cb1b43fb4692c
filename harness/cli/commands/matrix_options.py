"""Options of the command `harness matrix`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.commands.output_files import (
    BadgesOption,
    HtmlOption,
    JsonOption,
    MarkdownOption,
    OnOption,
    check_targets,
    say,
    write_results,
)
from harness.cli.commands.run_commands import exit_on_error
from harness.cli.commands.target_options import ScaleOption

if TYPE_CHECKING:
    from harness.report.matrix import Matrix


def matrix(
    file: Annotated[Path, typer.Argument(metavar="MATRIX.toml", help="the targets")],
    *,
    jobs: Annotated[int, typer.Option(min=1, help="targets judged at once")] = 1,
    lanes: Annotated[
        int | None, typer.Option(min=1, help="scenarios of a target played at once")
    ] = None,
    timeout_scale: ScaleOption = 1.0,
    confine: Annotated[
        bool, typer.Option("--confine/--no-confine", help="confine the servers where possible")
    ] = True,
    fresh: Annotated[bool, typer.Option("--fresh", help="play all, use no stored result")] = False,
    full: Annotated[
        bool, typer.Option("--all", help="every requirement, not only those that differ")
    ] = False,
    on: OnOption = "",
    badges: BadgesOption = None,
    json: JsonOption = "",
    markdown: MarkdownOption = "",
    html: HtmlOption = "",
) -> None:
    """Judge many targets: servers, versions, profiles, surfaces; a column for each.

    What was judged with the same server, suite and profile is not played again. Exit status 1 if a
    target could not be judged; a RED one is a result.
    """
    from harness.cli.commands.matrix import judge_targets, write_badges
    from harness.cli.commands.plays_progress import show_plays
    from harness.client.target.run_folders import base_folder
    from harness.search.releases.matrix_file import read_matrix_file
    from harness.search.releases.plays import Plays, options_of, stop_on_signals

    with exit_on_error():
        check_targets(json, markdown, html)
        options = options_of(lanes, 1, timeout_scale, confine=confine, on=on)
        plays = Plays(base_folder(), options, fresh=fresh, on=on)
        targets = read_matrix_file(file)
        with stop_on_signals(plays), show_plays(plays) as print_line:
            result = judge_targets(targets, plays, jobs, print_line)
        write_results(
            lambda: result.text_lines(full=full),
            json_target=json,
            results=result.to_plain,
            markdown_target=markdown,
            markdown=lambda: result.markdown_lines(full=full),
            html_target=html,
            html=lambda: _page(result),
        )
        if badges is not None:
            write_badges(result.columns, badges)
    if plays.stopped_by is not None:
        say("interrupted: what was judged is kept; the same command goes on", err=True)
        raise typer.Exit(128 + plays.stopped_by)
    raise typer.Exit(1 if len(result.judged_columns()) < len(result.columns) else 0)


def _page(matrix: "Matrix") -> str:
    from harness.report.html.other_pages import matrix_page

    return matrix_page(matrix)
