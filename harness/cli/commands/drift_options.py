"""Options of the command `harness drift`."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.commands.output_files import (
    JsonOption,
    MarkdownOption,
    check_targets,
    write_results,
)
from harness.cli.commands.run_commands import exit_on_error


def drift(
    scenarios: Annotated[
        list[str] | None, typer.Argument(help="scenarios to play; the bundled ones by default")
    ] = None,
    *,
    target: Annotated[str, typer.Option(help="the profile of the release")] = "codex-0.169",
    schemas: Annotated[
        Path | None,
        typer.Option(help="what the release's generate-json-schema wrote", show_default=False),
    ] = None,
    release: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="traces of the release; several plays")
    ] = None,
    double: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="traces of the double", show_default=False),
    ] = None,
    release_cmd: Annotated[str, typer.Option(help="the release, to be played twice")] = "",
    double_cmd: Annotated[str, typer.Option(help="the double, to be played and asked")] = "",
    lanes: Annotated[int, typer.Option(min=0, help="scenarios played at once")] = 0,
    reasons: Annotated[
        Path | None, typer.Option(help="TOML: why differences stay", show_default=False)
    ] = None,
    json: JsonOption = "",
    markdown: MarkdownOption = "",
) -> None:
    """Compare a server with the release that it imitates.

    Exit status 1 if a message or an answer does not fit the release's schemas.
    """
    from harness.cli.commands.drift import RELEASE_PLAYS, find_drift, play_scenarios

    with exit_on_error():
        check_targets(json, markdown)
        folders = list(release or ())
        for number in range(RELEASE_PLAYS if release_cmd else 0):
            name = f"{target}-release-{number + 1}"
            folders.append(play_scenarios(target, release_cmd, name, scenarios or (), lanes))
        if double_cmd and double is None:
            double = play_scenarios(target, double_cmd, f"{target}-double", scenarios or (), lanes)
        report = find_drift(
            target,
            release=folders,
            double=double,
            schemas=schemas,
            reasons=reasons,
            double_cmd=double_cmd,
        )
        write_results(
            report.text_lines,
            json_target=json,
            results=report.to_plain,
            markdown_target=markdown,
            markdown=report.markdown_lines,
        )
    raise typer.Exit(0 if report.is_clean else 1)
