"""Options of the command `harness model`."""

import json as json_
from enum import StrEnum
from typing import Annotated

import typer

from harness.cli.commands.output_files import JsonOption
from harness.cli.commands.run_commands import exit_on_error
from harness.protocol.escapes import visible_lines


class Timing(StrEnum):
    """The times of a recorded model's pieces."""

    RECORDED = "recorded"


TimingOption = Annotated[
    Timing | None,
    typer.Option("--timing", help="of a recording with --record-model: pieces come as they came"),
]


def model(
    script: Annotated[
        str,
        typer.Argument(
            metavar="SCRIPT",
            help="a scenario (file or id), a file with model: alone, or a recording",
        ),
    ],
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any free one")] = 0,
    host: Annotated[str, typer.Option(help="the address to listen on")] = "127.0.0.1",
    once: Annotated[bool, typer.Option("--once", help="end when the script was played")] = False,
    loop: Annotated[
        bool, typer.Option("--loop", help="begin again with the next conversation")
    ] = False,
    open_gates: Annotated[
        bool, typer.Option("--open-gates", help="wait at no hold: of the script")
    ] = False,
    target: Annotated[
        str, typer.Option("--target", help="a profile: its tools, its words")
    ] = "spec",
    timing: TimingOption = None,
    json: JsonOption = "",
) -> None:
    """Serve the model's side of a scenario by itself, for a server that you start.

    Says what the server asked, what it was told, and what was unexpected. Exit status 1 if
    anything was, or if a step was not used.
    """
    from harness.cli.commands.model import ModelOptions, report_file, serve

    aside = json == "-"

    def say(line: str) -> None:
        typer.echo(visible_lines(line), err=aside)

    def warn(line: str) -> None:
        typer.secho(visible_lines(line), err=aside, fg=typer.colors.RED)

    options = ModelOptions(script, host, port, once, loop, open_gates, target, timing is not None)
    with exit_on_error(), report_file("" if aside else json) as write:
        status, report = serve(options, say, warn)
        write(report)
        if aside:
            typer.echo(json_.dumps(report, indent=1))
    raise typer.Exit(status)
