"""Options of the command `harness mutate`."""

from functools import partial
from typing import Annotated

import typer

from harness.cli.commands.output_files import STANDARD_OUTPUT, JsonOption, OnOption, say
from harness.cli.commands.run_commands import exit_on_error
from harness.cli.commands.target_options import (
    AgentCmdOption,
    ScaleOption,
    SdkCmdOption,
    ServerCmdOption,
    TargetOption,
)


def mutate(
    *,
    target: TargetOption = "spec",
    server_cmd: ServerCmdOption = "",
    agent_cmd: AgentCmdOption = "",
    sdk_cmd: SdkCmdOption = "",
    fault: Annotated[list[str] | None, typer.Option(help="this fault alone; or ID,ID")] = None,
    rule: Annotated[
        list[str] | None, typer.Option(help="the faults of this rule alone; or ID,ID")
    ] = None,
    sample: Annotated[int, typer.Option(min=0, help="so many faults alone, spread over all")] = 0,
    timeout_scale: ScaleOption = 1.0,
    workers: Annotated[int, typer.Option("-n", min=1, help="worker processes")] = 2,
    on: OnOption = "",
    resume: Annotated[
        bool, typer.Option("--resume", help="only the faults that the run before left alive")
    ] = False,
    json: JsonOption = "",
) -> None:
    """Put each fault between a server and the rules: does its rule notice?

    Exit status 1 if a fault survived.
    """
    from harness.cli.commands.mutate import mutate_target

    target_options = {"target": target, "server_cmd": server_cmd, "agent_cmd": agent_cmd}
    target_options |= {"sdk_cmd": sdk_cmd, "scale": timeout_scale}
    with exit_on_error():
        status = mutate_target(
            target_options,
            fault=",".join(fault or ()),
            rule=",".join(rule or ()),
            sample=sample,
            workers=workers,
            on=on,
            resume=resume,
            json_target=json,
            say=partial(say, err=json == STANDARD_OUTPUT),
        )
    raise typer.Exit(status)
