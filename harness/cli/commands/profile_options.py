"""`harness profile`: list, show and begin profiles of servers."""

from typing import Annotated

import typer

from harness.cli.commands import run_commands
from harness.cli.commands.folder_option import KeepingCommand
from harness.cli.commands.output_files import JsonOption, write_results

app = typer.Typer(no_args_is_help=True, help="List, show and begin profiles of servers.")


@app.command(name="list")
def list_(*, json: JsonOption = "") -> None:
    """List the built-in profiles: name, title, releases."""
    from harness.cli.commands.profiles import built_in_lines, built_in_rows

    with run_commands.exit_on_error():
        write_results(built_in_lines, json_target=json, results=built_in_rows)


@app.command(cls=KeepingCommand)
def show(
    name: Annotated[str, typer.Argument(help="a profile's name or path: codex-0.118, mine.toml")],
    *,
    server_cmd: Annotated[
        str, typer.Option("--server-cmd", help="a server, which is asked for its release")
    ] = "",
    json: JsonOption = "",
) -> None:
    """Print a profile with all that it inherits, as TOML; comments say where each line is from."""
    from harness.cli.commands.profiles import profile_json, profile_lines
    from harness.client.target.profile import load_profile
    from harness.play.config import configure

    with run_commands.exit_on_error():
        profile = load_profile(name)
        if server_cmd:
            profile = configure(target=name, server_cmd=server_cmd).profile
        write_results(
            lambda: profile_lines(profile),
            json_target=json,
            results=lambda: profile_json(profile),
        )
