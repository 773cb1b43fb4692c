"""Needs of the server in its environment: standard streams, a UTF-8 locale, a home.

Settings live in `config`; folders of threads are checked when a request names them.
"""

import os
import sys
from collections.abc import Mapping

from reference_server.config.home import Home


class UsageError(Exception):
    """The server cannot start; str() is one line for stderr."""


def speak_utf8() -> None:
    """Restart this process in Python's UTF-8 mode if its locale encodes paths otherwise.

    Paths in messages are UTF-8, since JSON is, and Python fixes their encoding when it starts. The
    process id stays. (In the plain C locale Python chooses UTF-8 by itself.)
    """
    if sys.getfilesystemencoding().lower() != "utf-8":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def check_streams(*, uses_streams: bool = True) -> None:
    """Open the null device in place of closed standard streams.

    Otherwise the next opened file would get the descriptor, and with it the stream's output.
    Raises UsageError for closed standard input or output if `uses_streams`: the protocol needs it.
    """
    missing = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    if uses_streams and missing and missing[0] != "stderr":
        raise UsageError(
            f"standard {missing[0].removeprefix('std')}put is closed; the protocol is spoken on "
            "standard input and output"
        )
    for name in missing:
        _open_null_device(("stdin", "stdout", "stderr").index(name))
    if "stderr" in missing:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def _open_null_device(descriptor: int) -> None:
    null_device = os.open(os.devnull, os.O_RDWR)
    if null_device != descriptor:
        os.dup2(null_device, descriptor)
        os.close(null_device)


def complain(line: str) -> None:
    """Write one line on standard error, if there is one."""
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr.write(f"{line}\n")


def find_home(environment: Mapping[str, str]) -> Home:
    """Return the home by AGENT_HOME or HOME. Raises UsageError if there is no usable one."""
    agent_home = environment.get("AGENT_HOME")
    try:
        home = Home.from_environment(environment)
    except RuntimeError:
        raise UsageError(
            "there is no home: neither AGENT_HOME nor HOME is set, and this user has no account; "
            "set AGENT_HOME to a folder"
        ) from None
    except OSError as error:
        raise UsageError(
            f"AGENT_HOME ({agent_home}) is relative, and the working directory cannot be found "
            f"({error.strerror}); set it to an absolute path"
        ) from None
    variable = "AGENT_HOME" if agent_home else "HOME"
    try:
        str(home.root).encode()
    except UnicodeError:
        raise UsageError(
            f"the home {home.root} has a name that is not UTF-8, which no message can hold; "
            f"set {variable} to another folder"
        ) from None
    if os.path.exists(home.root) and not os.path.isdir(home.root):
        raise UsageError(f"the home {home.root} is no folder; set {variable} to one")
    return home
