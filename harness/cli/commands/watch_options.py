"""Options of the command `harness watch`."""

from typing import Annotated

import typer

from harness.cli.commands.run_commands import exit_on_error


def watch(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FOLDER|REPORT|RECORDING]…", help="without: .harness"),
    ] = None,
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="on 127.0.0.1; 0 is any free one")
    ] = 0,
    opens: Annotated[bool, typer.Option("--open", help="open the page in the browser")] = False,
) -> None:
    """Show runs, campaigns and recordings on a page while they go on.

    It may be started before, during or after them, and ends with Ctrl-C. A history of runs shows
    verdicts over time, flaky and slow scenarios.
    """
    with exit_on_error():
        from harness.cli.commands.watch import watch as serve

        status = serve(what or (), typer.echo, port=port, opens=opens)
    raise typer.Exit(status)
