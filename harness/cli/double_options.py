"""Options of the command `harness double`."""

from typing import Annotated

import typer

from harness.cli.commands.output_files import JsonOption, check_targets, say, write_json
from harness.cli.commands.run_commands import exit_on_error

_COMMAND = "what runs your client, such as its tests, behind --"
_SCENARIO = (
    "a file, folder or id; may be repeated. By default a word of the prompt says what happens"
)


def double(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND…]", help=_COMMAND)
    ] = None,
    *,
    scenario: Annotated[list[str] | None, typer.Option(metavar="FILE|ID", help=_SCENARIO)] = None,
    name: Annotated[str, typer.Option(help="the program that your client starts")] = "codex",
    dialect: Annotated[
        str, typer.Option(help="a release, such as codex-0.107; for codex the newest by default")
    ] = "",
    strict: Annotated[bool, typer.Option("--strict", help="a broken SHOULD counts too")] = False,
    allow_unused: Annotated[
        bool, typer.Option("--allow-unused", help="some of several scenarios may stay unplayed")
    ] = False,
    json: JsonOption = "",
) -> None:
    """Run your client's tests with a double of its agent on PATH, and judge your client.

    The double plays a script: no model and no network. The exit status is the command's, or 1 if
    it succeeds and the client breaks a duty.
    """
    from harness.cli.suite.double import DoubleOptions, run_with_double

    with exit_on_error():
        check_targets(json)
        options = DoubleOptions(
            tuple(scenario or ()), name, dialect, strict=strict, allow_unused=allow_unused
        )
        result = run_with_double(command or (), options)
        for story in result.stories:
            say(story, err=True)
        if json:
            write_json(result.report, json)
    raise typer.Exit(result.status)
