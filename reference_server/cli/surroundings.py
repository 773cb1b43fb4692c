"""What a process finds when it is started: streams, a locale, a home.

Here lives what a server cannot do without, and the one line that says so where it is not there. The
settings are `config`'s matter; folders of threads are looked at when a request names them.
"""

import os
import sys
from collections.abc import Mapping

from reference_server.config.home import Home


class UsageError(Exception):
    """The server cannot start; str() is one line for stderr."""


def speak_utf8() -> None:
    """Start the process anew where its locale has another encoding for paths.

    Paths come and go as UTF-8 (JSON is), and what encodes them is settled when Python starts. It
    chooses UTF-8 itself in the plain C locale; this is for the others. The process id stays.
    """
    if sys.getfilesystemencoding().lower() != "utf-8":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def check_streams() -> None:
    """Make sure of standard input and output. Raises UsageError.

    Where standard error is closed, what is written there is discarded: else it would land in
    whatever is opened next.
    """
    if sys.stdin is None or sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        closed = "input" if sys.stdin is None else "output"  # pyright: ignore[reportUnnecessaryComparison]
        raise UsageError(
            f"standard {closed} is closed; the protocol is spoken on standard input and output"
        )
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        nothing = os.open(os.devnull, os.O_WRONLY)
        if nothing != 2:
            os.dup2(nothing, 2)
            os.close(nothing)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def complain(line: str) -> None:
    """Write one line on standard error, if there is one."""
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr.write(f"{line}\n")


def find_home(environment: Mapping[str, str]) -> Home:
    """Find the home. Raises UsageError."""
    named = environment.get("AGENT_HOME")
    try:
        home = Home.from_environment(environment)
    except RuntimeError:
        raise UsageError(
            "there is no home: neither AGENT_HOME nor HOME is set, and this user has no account; "
            "set AGENT_HOME to a folder"
        ) from None
    except OSError as error:
        raise UsageError(
            f"AGENT_HOME ({named}) is relative, and the working directory cannot be found "
            f"({error.strerror}); set it to an absolute path"
        ) from None
    variable = "AGENT_HOME" if named else "HOME"
    try:
        str(home.root).encode()
    except UnicodeError:
        raise UsageError(
            f"the home {home.root} has a name that is not UTF-8, which the protocol cannot tell "
            f"anybody; set {variable} to another folder"
        ) from None
    if os.path.exists(home.root) and not os.path.isdir(home.root):
        raise UsageError(f"the home {home.root} is no folder; set {variable} to one")
    return home
