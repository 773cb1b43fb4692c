"""Options of the command `harness connect`."""

from typing import Annotated

import typer

from harness.cli.commands.output_files import say
from harness.cli.commands.run_commands import exit_on_error
from harness.cli.commands.target_options import ScaleOption, ServerCmdOption, TargetOption


def connect(
    *,
    server_cmd: ServerCmdOption = "",
    connect: Annotated[
        str, typer.Option("--connect", metavar="ADDRESS", help="ws://…, unix:PATH or ws+unix:PATH")
    ] = "",
    target: TargetOption = "spec",
    scenario: Annotated[
        str, typer.Option("--scenario", metavar="FILE|ID", help="what the model says; its files")
    ] = "",
    model_port: Annotated[
        int, typer.Option(min=0, max=65535, help="the port of the model; 0 is any free one")
    ] = 0,
    timeout_scale: ScaleOption = 1.0,
    web: Annotated[bool, typer.Option("--web", help="on a page in the browser")] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="of the page, on 127.0.0.1; 0 is any free one")
    ] = 0,
    opens: Annotated[bool, typer.Option("--open", help="open the page in the browser")] = False,
) -> None:
    """Speak to a server by hand: every message is judged as it comes.

    In a terminal Tab completes methods and members; from a pipe each line is done and waited for.
    :help lists the commands. Exit status 1 if a MUST was broken, 2 if a line could not be done.
    """
    with exit_on_error():
        from harness.cli.commands.connect import PageOptions, by_hand
        from harness.errors import UsageError

        if (port or opens) and not web:
            raise UsageError("--port and --open are about the page of --web")

        status = by_hand(
            server_cmd=server_cmd,
            address=connect,
            target=target,
            scenario=scenario,
            model_port=model_port,
            scale=timeout_scale,
            page=PageOptions(port, opens) if web else None,
            write=typer.echo,
            complain=lambda line: say(f"harness: {line}", err=True),
        )
    raise typer.Exit(status)
