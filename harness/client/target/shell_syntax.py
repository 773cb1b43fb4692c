"""Shell syntax in a server's command, which no shell runs.

A command is split as by a shell, but run without one.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.errors import UsageError

_OPERATOR = re.compile(r"\|\|?|&&?|;;?|\d?(?:>>?|<<?<?)(?:&\d)?|\d?>&\d|&>>?")
# Operators that a shell recognises inside a word: `2>err.log`, `agent>log`, `server.py;`.
_ATTACHED_OPERATOR = re.compile(r"[^<>]*[<>].*|.*[;&|]", re.S)
_ENDS_IN_OPERATOR = re.compile(r"[^;&|]+(?:;|&&|\|)")
_QUOTED = re.compile(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"", re.S)
_WORD = re.compile(rf"(?:{_QUOTED.pattern}|\S)+", re.S)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.S)
_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})")
_BUILTINS = (".", "cd", "exec", "export", "set", "source", "ulimit", "umask", "unset")


def operator_of(command: str) -> str:
    """Return the first word that is a shell operator or contains one, "" for none.

    Quoted operators do not count, nor do characters in a URL: `x?a=1&b=2`.
    """
    return next(
        (word for word in _WORD.findall(command) if _is_operator(_QUOTED.sub("q", word))), ""
    )


def _is_operator(bare: str) -> bool:
    return bool(_OPERATOR.fullmatch(bare) or _ATTACHED_OPERATOR.fullmatch(bare))


def as_shell_command(command: str) -> str:
    """Return the same command, run by a shell: `sh -c '…'`."""
    return f"sh -c {shlex.quote(command)}"


def expansion_hint(words: Sequence[str]) -> str:
    """Return why the first word is not a program if a shell would have expanded it; else ""."""
    program, rest = words[0], shlex.join(words[1:])
    if _ASSIGNMENT.fullmatch(program):
        return (
            f"no shell runs the command, so {program} sets no variable; write "
            f"env {shlex.join(words)}, or put it into [env] of a profile"
        )
    if program.startswith("~"):
        try:
            path = str(Path(program).expanduser())
        except RuntimeError:  # No such user exists.
            path = "the whole path"
        return f"no shell runs the command, so ~ is not replaced; write {path}"
    if _VARIABLE.search(program):
        return f"no shell runs the command, so {program} is not replaced; write its value"
    if program in _BUILTINS or _ENDS_IN_OPERATOR.fullmatch(program):
        return f"no shell runs the command; write {as_shell_command(f'{program} {rest}'.strip())}"
    return ""


def unexpanded_arguments(words: Sequence[str]) -> Iterator[str]:
    """Return the arguments that a shell would have expanded."""
    return (word for word in words[1:] if word.startswith("~/") or _VARIABLE.match(word))


def split_command(command: str) -> list[str]:
    """Split a command as a POSIX shell would; `UsageError` if it is empty or needs a shell."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(
            f"the command {command!r} cannot be split as by a shell: {error}; fix its quotes"
        ) from error
    if not words:
        raise UsageError("the command is empty; give --server-cmd 'program arguments'")
    operator = operator_of(command)
    if operator:
        raise UsageError(
            f"the command holds {operator!r}, and no shell runs it; write "
            f"{as_shell_command(command)}, or quote what is a word"
        )
    return words
