"""`--program FILE`: the executable by which clients start a server that plays scenarios to them.

A shell script that runs `agent` with the socket of this stage, for `relay`. It lives as long as the
stage.
"""

import contextlib
import os
import shlex
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from reference_server.cli.surroundings import UsageError
from reference_server.private_folder import private_root
from reference_server.program_start import DIALECT, PROGRAM_SCENARIO, PROGRAM_SOCKET

_PYTHON_VARIABLES = ("PYTHONPATH", "PYTHONHOME")
_MARK = "# A program of agent app-server --program, which removes it at its end."
_MAX_SOCKET_BYTES = 107
"""Bytes of the path of a Unix socket."""
_SHORT_FOLDER = Path("/tmp")
_NAME = "program"


def socket_path(root: Path, stack: ExitStack) -> str:
    """Return a path for the socket in `root`, or in a private folder of /tmp if it is too long.

    Raises OSError if no folder can be made.
    """
    path = str(root / _NAME)
    if len(os.fsencode(path)) > _MAX_SOCKET_BYTES:
        path = str(stack.enter_context(private_root(_SHORT_FOLDER)) / _NAME)
    return path


@contextmanager
def program_file(path: Path, text: str) -> Generator[None]:
    """Write the program for the length of the block. Raises UsageError if it cannot be written.

    The program of a killed stage is replaced, no other file.
    """
    try:
        if os.path.lexists(path) and not _is_program(path):
            raise UsageError(f"--program {path}: there is another file; give a new name")
        identity = _write(path, text)
    except OSError as error:
        raise UsageError(f"--program {path}: cannot be written: {error.strerror}") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if _identity(path) == identity:
                path.unlink()


def script(
    socket: str, home: Path, environment: Mapping[str, str], scenarios: Sequence[str]
) -> str:
    """Return the text of the program. `environment` is that of the stage.

    The Python of this process runs it, whatever the client's environment says of Python. Commands
    that are not connections have `home`, unless that environment names another one.
    """
    python = {name: environment[name] for name in _PYTHON_VARIABLES if environment.get(name)}
    isolated = [] if python else ["-E"]
    command = [sys.executable, *isolated, "-P", "-m", "reference_server"]
    dialect = {DIALECT: environment[DIALECT]} if environment.get(DIALECT) else {}
    variables = {PROGRAM_SOCKET: socket, **dialect, **python, **_scenario_variable(scenarios)}
    lines = [f"{name}={shlex.quote(value)}; export {name}" for name, value in variables.items()]
    lines.append(f"AGENT_HOME=${{AGENT_HOME:-{shlex.quote(str(home))}}}; export AGENT_HOME")
    return "\n".join(["#!/bin/sh", _MARK, *lines, f'exec {shlex.join(command)} "$@"', ""])


def _scenario_variable(scenarios: Sequence[str]) -> dict[str, str]:
    """Return the variable with the scenario, if there is one file or id."""
    if len(scenarios) != 1 or os.path.isdir(scenarios[0]):
        return {}
    [scenario] = scenarios
    return {PROGRAM_SCENARIO: os.path.abspath(scenario) if os.path.exists(scenario) else scenario}


def _write(path: Path, text: str) -> tuple[int, int]:
    """Write the program at once, so that nobody runs half of it; return its identity."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(os.fsencode(text))
        os.chmod(name, 0o700)
        os.rename(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    return _identity(path)


def _is_program(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(1000).split(b"\n")[1:2] == [_MARK.encode()]


def _identity(path: Path) -> tuple[int, int]:
    status = os.lstat(path)
    return status.st_dev, status.st_ino
