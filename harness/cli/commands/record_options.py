"""Options of the command `harness record`."""

import contextlib
import os
import re
from typing import Annotated

import typer

from harness.cli.commands.output_files import say
from harness.cli.commands.run_commands import exit_on_error

_SERVER = "the server, or the agent, and its arguments, behind --"
_OUTPUT = "the file; or a folder, for a file 1.jsonl, 2.jsonl, … each time"


def record(
    server: Annotated[list[str] | None, typer.Argument(metavar="[SERVER…]", help=_SERVER)] = None,
    *,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE|FOLDER/", help=_OUTPUT)],
    target: Annotated[str, typer.Option(help="the server's profile: its name or path")] = "",
    surface: Annotated[str, typer.Option(help="session, or exec for agent exec")] = "session",
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="take clients there, not on standard input")
    ] = "",
    connect: Annotated[
        str, typer.Option(metavar="ADDRESS", help="a server that runs already")
    ] = "",
    record_model: Annotated[
        bool, typer.Option("--record-model", help="what the model is asked and answers, too")
    ] = False,
    model_url: Annotated[
        str, typer.Option(help="the real model; else PROVIDER_BASE_URL or OPENAI_BASE_URL")
    ] = "",
    mask: Annotated[
        list[str] | None, typer.Option(metavar="REGEX", help="a secret, too; may be repeated")
    ] = None,
    no_mask: Annotated[bool, typer.Option("--no-mask", help="mask nothing at all")] = False,
    force: Annotated[bool, typer.Option("--force", help="write over a file")] = False,
) -> None:
    """Record a session between your client and your server: a proxy that writes a trace.

    What passes is not changed; secrets are masked in the file. The exit status is the server's.
    """
    from harness.cli.commands.proxy import end_like
    from harness.cli.commands.record import Recording, real_model_url
    from harness.cli.commands.record import record as on_our_streams
    from harness.cli.commands.record_sockets import record_sockets
    from harness.trace.record.masks import Masker, secret_values

    with exit_on_error():
        masker = Masker(
            patterns=[_pattern(pattern) for pattern in mask or ()],
            secrets=secret_values(os.environ),
            active=not no_mask,
        )
        recording = Recording(
            output,
            os.environ,
            _say,
            target=target,
            surface=surface,
            force=force,
            model_url=real_model_url(model_url, os.environ) if record_model or model_url else "",
        )
        if listen or connect:
            status = record_sockets(server or (), recording, masker, listen=listen, to=connect)
        else:
            status = on_our_streams(server or (), recording, masker)
    end_like(status)


def _pattern(text: str) -> re.Pattern[str]:
    from harness.errors import UsageError

    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"--mask {text}: {error}; expected a regular expression") from error


def _say(line: str) -> None:
    # If nobody reads standard error, the session still goes on.
    with contextlib.suppress(OSError, ValueError):
        say(f"record: {line}", err=True)
