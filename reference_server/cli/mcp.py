"""`agent mcp`: the MCP servers of config.toml.

`list`, `get`, `add` and `remove` live in `cli.mcp_servers`, `login` and `logout` in
`cli.mcp_login`. Source: mcp-cli-and-sdk "Command-line commands"; it shows no exit status.
"""

import io
import os
import sys
import threading
from collections.abc import Callable, Sequence

from reference_server.agent_mcp.masking import escape, mask_address
from reference_server.brief import brief
from reference_server.cli.mcp_servers import COMMANDS, CommandFailed
from reference_server.cli.surroundings import UsageError, check_streams, complain, speak_utf8
from reference_server.config.load import ConfigError
from reference_server.config.mistakes import suggestion
from reference_server.oauth.status import ASKING

READING_SETTINGS = ("list", "get", "login")
"""Subcommands that use the settings of the command line; the others only change files."""
USAGE = """\
usage: agent mcp COMMAND [OPTION...]

commands:
  list      list the MCP servers
  get       show one
  add       add one: a program, or an address
  remove    remove one
  login     sign in to one with OAuth
  logout    remove its OAuth credentials

`agent mcp COMMAND --help` tells more.
"""


def run(arguments: Sequence[str], settings: Sequence[str] = ()) -> int:
    """Run a subcommand and return the exit status: 1 if it failed, 2 for wrong usage.

    `settings` are the options that stood before `mcp`.
    """
    if not arguments:
        sys.stderr.write(USAGE)
        return 2
    name, *rest = arguments
    if name in ("--help", "-h", "help"):
        sys.stdout.write(USAGE)
        return 0
    if name.startswith("-"):
        return _run_after_options(arguments, settings)
    if name in READING_SETTINGS:
        rest = [*settings, *rest]
    if name in ("login", "logout"):
        from reference_server.cli import mcp_login

        return mcp_login.login(rest) if name == "login" else mcp_login.logout(rest)
    if name in COMMANDS:
        return _run_command(name, COMMANDS[name], rest)
    advice = suggestion(name, [*COMMANDS, "login", "logout"])
    complain(f"agent mcp: there is no command `{escape(brief(name))}`{advice}")
    return 2


def _run_after_options(arguments: Sequence[str], settings: Sequence[str]) -> int:
    from reference_server.config.arguments import WrongOption, split_leading_options

    try:
        more, rest = split_leading_options(arguments)
    except WrongOption as error:
        complain(f"agent mcp: {escape(brief(str(error)))}; see agent mcp --help")
        return 2
    return run(rest, [*settings, *more])


def _run_command(name: str, command: Callable[[Sequence[str]], int], words: Sequence[str]) -> int:
    from reference_server.config.editing import Unwritable

    speak_utf8()
    try:
        check_streams(uses_streams=False)
        _prepare_stdout()
        status = command(words)
        sys.stdout.flush()
        _leave_hung_requests(status)
        return status
    except UsageError as error:
        return _complain(name, str(error), 2)
    except (ConfigError, CommandFailed, Unwritable) as error:
        return _complain(name, str(error), 1)
    except BrokenPipeError:
        _discard_stdout()  # the reader of the output has left
        return 0
    except OSError as error:
        if error.filename is None:
            _discard_stdout()
        return _complain(name, _describe_error(error), 1)
    except KeyboardInterrupt:
        _leave_hung_requests(130)
        return 130


def _leave_hung_requests(status: int) -> None:
    """End the process here if a thread still looks up the name of a server, which may take long."""
    if any(thread.name == ASKING for thread in threading.enumerate()):
        from reference_server.cli.process import leave_hung_threads

        leave_hung_threads(status)


def _prepare_stdout() -> None:
    """Let standard output escape characters it cannot encode; use /dev/null if it is closed."""
    out: object = sys.stdout
    if out is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    elif isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="backslashreplace")


def _discard_stdout() -> None:
    """Keep the interpreter from flushing the unwritten output when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(name: str, words: str, status: int) -> int:
    complain(f"agent mcp {name}: {escape(mask_address(words))}")
    return status


def _describe_error(error: OSError) -> str:
    words = error.strerror or str(error)
    return f"{error.filename or 'standard output'}: {words}"
