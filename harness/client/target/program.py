"""The program of a command: finding it, and explaining in one line why it cannot be run."""

import errno
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.client.target.shell_syntax import expansion_hint
from harness.errors import UsageError

_SUFFIX_INTERPRETERS = {
    ".bash": "bash",
    ".js": "node",
    ".mjs": "node",
    ".pl": "perl",
    ".py": "python",
    ".rb": "ruby",
    ".sh": "sh",
    ".ts": "npx tsx",
}
_HEAD_BYTES = 4096
# Option -> words for the program that its command starts.
_PROGRAM_NAMES = {
    "harness faulty --": "the server's program",
    "harness record --": "the program",
    "--server-cmd": "the server's program",
    "--agent-cmd": "the agent's program",
    "--sdk-cmd": "the SDK's driver",
}


class NotStarted(UsageError):
    """Error for a program under test that could not be started."""


def find_program(command: Sequence[str], option: str = "--server-cmd") -> list[str]:
    """Return the command with its program found. Raises `NotStarted` if it cannot be run.

    `option` is the option that takes the command.

    A bare name is looked up on PATH, then beside the running interpreter: the commands of the
    harness's own virtual environment work without activating it.
    """
    program = command[0]
    beside = str(Path(sys.executable).parent)
    executable = shutil.which(program) or (shutil.which(program, path=beside))
    fault = _describe_missing(command, option) if executable is None else _check_script(executable)
    if executable is None or fault:
        raise NotStarted(f"{_PROGRAM_NAMES[option]} {program!r} {fault}")
    return [executable, *command[1:]]


def with_absolute_paths(command: Sequence[str]) -> list[str]:
    """Return the command with the paths in it made absolute, for a process that starts elsewhere.

    A word is a path if it has a separator and exists, or if it is the name of a file in the current
    folder with a suffix, like `agent.py` after its interpreter. Links are not resolved.
    """
    return [
        os.path.abspath(word) if _is_path(word, first=not index) else word
        for index, word in enumerate(command)
    ]


def _is_path(word: str, *, first: bool) -> bool:
    if os.sep in word:
        return os.path.exists(word)
    # The first word without a separator is looked up on PATH, not here.
    return not first and bool(Path(word).suffix) and os.path.isfile(word)


def describe_start_failure(command: Sequence[str], error: OSError, option: str) -> str:
    """Return why the system refused to start a program that was found, and what to do.

    `option` is the option that takes the command.
    """
    program, head = command[0], _read_head(command[0])
    cause = error.strerror or str(error)
    failure = f"{_PROGRAM_NAMES[option]} {program!r} cannot be started: {cause}"
    if error.errno == errno.ENOEXEC and not head:
        return f"{failure}; it is an empty file; write the program into it, or give another path"
    if error.errno == errno.ENOEXEC and b"\0" in head:
        return (
            f"{failure}; it is damaged, or made for another kind of machine; build it for this one"
        )
    if error.errno == errno.ENOEXEC:
        name = _likely_interpreter(program)
        return (
            f"{failure}; it does not begin with a #! line, so that nothing says what runs it; name "
            f"its interpreter: {_interpreted_command(name, command)}, or let it begin with "
            f"#!/usr/bin/env {name}"
        )
    if error.errno == errno.ENOENT and head.startswith(b"\x7fELF"):
        return (
            f"{failure}; it wants a loader of programs that this machine has not; it was built for "
            "another system (glibc or musl): build it for this one"
        )
    if error.errno == errno.EACCES:
        return f"{failure}; its disk may be mounted without the right to run programs (noexec)"
    return f"{failure}; run the same command by hand to see more"


def _describe_missing(command: Sequence[str], option: str) -> str:
    """Return why a program was not found; another file or folder may be at its path."""
    program, shells = command[0], expansion_hint(command)
    name = _likely_interpreter(program)
    if os.path.isdir(program):
        to_do = shells or f"give the program in it, such as {os.path.join(program, 'server')}"
        return f"is a directory; {to_do}"
    if not os.path.exists(program):
        to_do = shells or f"give {option} a program on PATH or a path to one"
        return f"was not found; {to_do}"
    path_here = program if os.sep in program else f"./{program}"
    if os.access(program, os.X_OK):
        return f"was not found on PATH; the one in this folder is {path_here}"
    and_path = "" if path_here == program else f" and give {path_here}"
    interpreted = _interpreted_command(name, command)
    return (
        f"is not executable: chmod +x {program}{and_path}, or name its interpreter: {interpreted}"
    )


def _check_script(path: str) -> str:
    """Return the problem of a script's `#!` line, "" if there is none or no such line."""
    head = _read_head(path)
    if not head.startswith(b"#!"):
        return ""
    line = head.partition(b"\n")[0].decode("utf-8", "backslashreplace")
    if line.endswith("\r"):
        return (
            f"has the line ends of Windows, and its interpreter would be {line[2:].strip(' ')!r}; "
            rf"write it with plain line feeds: sed -i 's/\r$//' {path}"
        )
    words = line[2:].split()
    if not words:
        shebang = f"#!/usr/bin/env {_interpreter_of_suffix(path)}"
        return f"begins with an empty #! line; name the interpreter there: {shebang}"
    if not os.path.exists(words[0]):
        interpreted = _interpreted_command(os.path.basename(words[0]), [path])
        return (
            f"cannot be started: its first line is {line!r}, and there is no {words[0]}; "
            f"fix that line, or name an interpreter: {interpreted}"
        )
    if os.path.isdir(words[0]) or not os.access(words[0], os.X_OK):
        return (
            f"cannot be started: its first line is {line!r}, and {words[0]} is not executable; "
            "fix that line"
        )
    return ""


def _read_head(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""


def _likely_interpreter(path: str) -> str:
    """Return the likely interpreter of a script, by its first line or its file name's suffix."""
    head = _read_head(path) if os.path.isfile(path) else b""
    words = head[2:].partition(b"\n")[0].decode("utf-8", "replace").split()
    if head.startswith(b"#!") and words:
        first = os.path.basename(words[0])
        programs = [word for word in words[1:] if not word.startswith("-")]
        return programs[0] if first == "env" and programs else first
    return _interpreter_of_suffix(path)


def _interpreter_of_suffix(path: str) -> str:
    return _SUFFIX_INTERPRETERS.get(os.path.splitext(path)[1], "python")


def _interpreted_command(interpreter: str, command: Sequence[str]) -> str:
    return f"{interpreter} {command[0]}{' …' if command[1:] else ''}"
