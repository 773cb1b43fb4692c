"""Options of the command `harness soak`."""

from typing import Annotated

import typer

from harness.cli.commands.output_files import JsonOption, check_targets, say, write_results
from harness.cli.commands.run_commands import exit_on_error
from harness.cli.commands.target_options import ScaleOption, ServerCmdOption, TargetOption

DEFAULT_MIX = "turn=60,list=15,fork=10,interrupt=5,reconnect=10"


def soak(
    *,
    target: TargetOption = "spec",
    server_cmd: ServerCmdOption = "",
    stdio: Annotated[
        bool, typer.Option("--stdio", help="one user over standard streams, without reconnecting")
    ] = False,
    users: Annotated[int, typer.Option(min=1, max=32, help="connections at once")] = 2,
    time: Annotated[float, typer.Option(min=1, help="seconds")] = 3600.0,
    mix: Annotated[str, typer.Option(help="operations and their weights")] = DEFAULT_MIX,
    seed: Annotated[int, typer.Option(help="of the operations")] = 0,
    timeout_scale: ScaleOption = 1.0,
    json: JsonOption = "",
) -> None:
    """Run a server for long, and test whether memory, descriptors, times or disk grow.

    Exit status 1 if an operation failed, a MUST rule was broken, or something grows although the
    profile says hygiene = "MUST".
    """
    with exit_on_error():
        check_targets(json)
        from harness.load.operations import parse_mix
        from harness.load.soak import SoakOptions, run_soak
        from harness.play.config import configure

        options = SoakOptions(time, users, parse_mix(mix), seed=seed, stdio=stdio)
        config = configure(target=target, server_cmd=server_cmd, scale=timeout_scale)
        report = run_soak(config, options, lambda line: say(line, err=True))
        write_results(report.text_lines, json_target=json, results=report.to_plain)
    raise typer.Exit(0 if report.is_clean else 1)
