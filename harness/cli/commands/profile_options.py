"""`harness profile`: list, show and begin profiles of servers."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.commands import run_commands
from harness.cli.commands.folder_option import KeepingCommand
from harness.cli.commands.output_files import JsonOption, say, write_results
from harness.cli.commands.target_options import ServerCmdOption

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


@app.command(cls=KeepingCommand)
def new(
    *,
    server_cmd: ServerCmdOption = "",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="the profile's file: NAME.toml")
    ] = None,
    settings: Annotated[
        str, typer.Option(metavar="FILE", help="its settings file, within its home: settings.json")
    ] = "",
    model_key: Annotated[
        str, typer.Option(metavar="KEY", help="the key in it for the model's address: llm.baseUrl")
    ] = "",
    home_env: Annotated[
        str, typer.Option(metavar="NAME", help="the variable that names its home")
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="write over a file")] = False,
) -> None:
    """Ask what doctor asks, look at what the server offers, and write a first profile.

    In a terminal it asks for what is missing. Exit status 1 if the server cannot be judged yet.
    """
    from harness.cli.commands.profile_new import write_profile

    asks = sys.stdin.isatty() and sys.stderr.isatty()
    with run_commands.exit_on_error():
        status = write_profile(
            server_cmd,
            output,
            settings=settings,
            model_key=model_key,
            home_env=home_env,
            force=force,
            ask=_ask if asks else None,
            say=say,
        )
    raise typer.Exit(status)


def _ask(question: str) -> str:
    return str(typer.prompt(question, default="", show_default=False, err=True)).strip()
