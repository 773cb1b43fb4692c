"""The `agent` command.

Each command imports its own modules: a server has 0.2 s from its start to its first answer.
"""

import gc
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import ModuleType

from reference_server.program_start import PROGRAM_SOCKET, exec_options

USAGE = """\
usage: agent [--config KEY=VALUE]... COMMAND [OPTION...]

commands:
  app-server    serve the agent session protocol on standard input and output
  exec          run one turn without a user, and print what came of it
  mcp           list, add, remove and sign in to MCP servers
  login, logout in a dialect: store, tell of and remove an API key

options:
  -c, --config KEY=VALUE               a setting, as after the command
  --enable FEATURE, --disable FEATURE  the same for features.FEATURE
  --dialect NAME                       speak as a release of Codex: codex-0.107, codex-0.169
  --version     print the version
  --help        print this text

`agent COMMAND --help` tells more.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 2 for wrong usage, with a line on stderr."""
    if sys.version_info < (3, 11):  # noqa: UP036 - before any import that needs it
        sys.stderr.write(
            f"agent: Python 3.11 or newer is needed, this is {sys.version.split()[0]}\n"
        )
        return 2
    words = list(sys.argv[1:] if arguments is None else arguments)
    _without_working_directory()
    try:
        if _has_dialect(words):
            words = _take_over_dialect(words)
        return _run(words)
    except DialectProblem as problem:
        sys.stderr.write(f"agent: {problem}\n")
        return 2
    finally:
        # Without this, a last garbage collection would cost a tenth of the start-up time.
        gc.freeze()


class DialectProblem(Exception):
    """The dialect that the command line or AGENT_DIALECT names is unknown."""


def _has_dialect(words: Sequence[str]) -> bool:
    """Return whether a dialect is chosen, without the imports that it needs."""
    if PROGRAM_SOCKET in os.environ and "app-server" in words:
        return False  # The stage speaks it; the program passes bytes on.
    return (
        bool(os.environ.get("AGENT_DIALECT"))
        or os.path.basename(_program_name(words)) == "codex"
        or any(word.startswith("--dialect") for word in words)
    )


def _program_name(words: Sequence[str]) -> str:
    """Return the name by which clients start this server: its own, or that of `--program`."""
    for position, word in enumerate(words):
        if word == "--program":
            return "".join(words[position + 1 : position + 2])
        if word.startswith("--program="):
            return word.partition("=")[2]
    return sys.argv[0]


def _take_over_dialect(words: Sequence[str]) -> list[str]:
    """Choose the dialect, and return the other words. Raises DialectProblem."""
    from reference_server.dialect import choice

    name, rest = choice.without_option(words)
    name = name or choice.name_in(_program_name(words), os.environ)
    try:
        if name:
            choice.take_over(name, os.environ)
    except choice.DialectError as error:
        raise DialectProblem(str(error)) from None
    return rest


def _run(words: list[str], settings: Sequence[str] = ()) -> int:
    """Run the command and return its exit status; `settings` are the options before it."""
    match words:
        case ["app-server", *rest] if PROGRAM_SOCKET in os.environ:
            from reference_server.cli import relay

            return relay.run(os.environ[PROGRAM_SOCKET], [*settings, *rest])
        case ["app-server", *rest]:
            with _fast_imports():
                from reference_server.cli import app_server
            return app_server.run([*settings, *rest])
        case ["exec", *rest]:
            with _fast_imports():
                from reference_server.cli import exec as one_turn
            played = exec_options(os.environ) if PROGRAM_SOCKET in os.environ else []
            return one_turn.run([*settings, *played, *rest])
        case ["mcp", *rest]:
            with _fast_imports():
                from reference_server.cli import mcp
            return mcp.run(rest, settings)
        case ["login" | "logout", *_] if (status := _log_in_or_out(words)) is not None:
            return status
        case ["--version", *_]:
            return _print(f"{_version_line()}\n")
        case ["--help" | "-h", *_]:
            return _print(USAGE)
        case []:
            sys.stderr.write(USAGE)
            return 2
        case [word, *_] if word.startswith("-"):
            return _run_after_options(words)
        case _:
            sys.stderr.write(f"agent: there is no command `{words[0]}`; see agent --help\n")
            return 2


def _run_after_options(words: list[str]) -> int:
    from reference_server.config.arguments import WrongOption, split_leading_options

    try:
        settings, rest = split_leading_options(words)
    except WrongOption as error:
        sys.stderr.write(f"agent: {error}; see agent --help\n")
        return 2
    return _run(rest, settings)


def _log_in_or_out(words: list[str]) -> int | None:
    """Log in or out as the chosen release does; None without a dialect that can."""
    if not os.environ.get("AGENT_DIALECT"):
        return None
    from reference_server.cli import login
    from reference_server.dialect.choice import dialect_of

    dialect = dialect_of(os.environ)
    row = dialect.login if dialect is not None else None
    return None if row is None else login.run(words, saved=row.saved, status=row.status)


def _version_line() -> str:
    if os.environ.get("AGENT_DIALECT"):
        from reference_server.dialect.choice import dialect_of

        dialect = dialect_of(os.environ)
        if dialect is not None:
            return dialect.version_line
    from reference_server import VERSION

    return f"agent {VERSION}"


@contextmanager
def _fast_imports() -> Generator[None]:
    """Keep garbage collection and pydantic plugins from slowing the imports of the block.

    Imported modules are never garbage: collections would take a twentieth of the start-up time
    and free nothing.
    """
    gc.disable()
    _without_plugins()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _without_working_directory() -> None:
    """Remove the working directory and relative entries from `sys.path`: the model may write there.

    Python looks there first (`-m`, or an empty entry of PYTHONPATH), and most of the server is
    imported late. The working directory stays on the path if the server itself is installed there.
    """
    install_folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    try:
        cwd = os.path.realpath(os.getcwd())
    except OSError:
        cwd = ""
    sys.path[:] = [
        entry
        for entry in sys.path
        if os.path.isabs(entry) and (os.path.realpath(entry) != cwd or cwd == install_folder)
    ]


def _without_plugins() -> None:
    """Keep pydantic from searching all installed packages for plugins of its own.

    The server needs none, and the search takes a tenth of the time to the first answer. Pydantic's
    own setting turns the search off, but not the imports for it.
    """
    none = ModuleType("pydantic.plugin._loader")
    setattr(none, "get_plugins", tuple)  # noqa: B010 (a module has no such attribute by type)
    sys.modules.setdefault(none.__name__, none)


def _print(text: str) -> int:
    sys.stdout.write(text)
    return 0
