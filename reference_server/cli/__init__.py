"""The `agent` command.

Here lives the choice of the subcommand. Nothing heavy is imported before it is chosen: a server has
0.2 s from its start to its first answer.
"""

import gc
import os
import sys
from collections.abc import Sequence
from types import ModuleType

USAGE = """\
usage: agent COMMAND [OPTION...]

commands:
  app-server    serve the agent session protocol on standard input and output

options:
  --version     print the version
  --help        print this text

`agent COMMAND --help` tells more.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; gives the exit status. Wrong usage is status 2, with a line on stderr."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _without_folders_of_others()
    match words:
        case ["app-server", *rest]:
            # What is imported stays: looking through it for garbage, now or later, is for nothing,
            # and a twentieth of the start.
            gc.disable()
            _without_plugins()
            try:
                from reference_server.cli import app_server
            finally:
                gc.freeze()
                gc.enable()
            return app_server.run(rest)
        case ["--version", *_]:
            from reference_server import VERSION

            return _print(f"agent {VERSION}\n")
        case ["--help" | "-h", *_]:
            return _print(USAGE)
        case []:
            sys.stderr.write(USAGE)
            return 2
        case _:
            sys.stderr.write(f"agent: there is no command `{words[0]}`; see agent --help\n")
            return 2


def _without_folders_of_others() -> None:
    """Import nothing from the folder that this was started in: a model may write there.

    Python looks there first (`-m`, an empty entry of PYTHONPATH), and much of the server is
    imported late. Where the server itself lies there it stays.
    """
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:
        here = ""
    sys.path[:] = [
        entry
        for entry in sys.path
        if os.path.isabs(entry) and (os.path.realpath(entry) != here or here == own)
    ]


def _without_plugins() -> None:
    """Keep pydantic from looking for plugins of its own in everything that is installed.

    A server needs none, and to look for them (which the package's setting turns off, but not the
    imports for it) is a tenth of the time to the first answer.
    """
    none = ModuleType("pydantic.plugin._loader")
    setattr(none, "get_plugins", tuple)  # noqa: B010 (a module has no such attribute by type)
    sys.modules.setdefault(none.__name__, none)


def _print(text: str) -> int:
    sys.stdout.write(text)
    return 0
