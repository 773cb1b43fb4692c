"""The option `--dir` of every command that keeps files of runs, or reads them."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command


class FolderCommand(TyperCommand):
    """A command with `--dir`, which reads the files of runs."""

    keeps_files = False

    def __init__(self, *args: Any, params: list[Any] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, params=[*(params or ()), *_folder_options()], **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; if it keeps files, first warn of another folder or a missing /proc."""
        if self.keeps_files:
            from harness.cli.commands.output_files import say
            from harness.cli.commands.run_commands import exit_on_error
            from harness.client.target.process_tree import find_processes_note
            from harness.client.target.run_folders import folder_note

            with exit_on_error():
                for note in filter(None, (folder_note(), find_processes_note())):
                    say(f"harness: {note}", err=True)
        return super().invoke(ctx)


class KeepingCommand(FolderCommand):
    """A command with `--dir` that keeps the files of what it plays."""

    keeps_files = True


def _use_folder(value: str) -> None:
    """Set the environment variable of the folder for this process and its children."""
    from harness.client.target.run_folders import FOLDER_VARIABLE

    if value:
        os.environ[FOLDER_VARIABLE] = str(Path(value).expanduser().resolve())


_Folder = Annotated[
    str,
    typer.Option(
        "--dir",
        metavar="DIR",
        help="the folder of traces and reports, in place of .harness",
        callback=_use_folder,
        expose_value=False,
        show_default=False,
    ),
]


def _folder_options() -> list[Any]:
    """Return the option `--dir`, as typer builds it from a function's parameter."""
    app = typer.Typer(add_completion=False)

    @app.command()
    def command(folder: _Folder = "") -> None: ...  # pyright: ignore[reportUnusedFunction]

    return [option for option in get_command(app).params if "--dir" in option.opts]
