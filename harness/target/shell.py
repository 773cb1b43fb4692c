"""What only a shell would do with a command, and how to say it without one.

A server's command is split as by a shell and run without one. Here: finding what a user took from
a shell's prompt, and the words of the way out. Not here: splitting and running (profile, process).
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

_OPERATOR = re.compile(r"\|\|?|&&?|;;?|\d?(?:>>?|<<?<?)(?:&\d)?|\d?>&\d|&>>?")
_ENDS_IN_ONE = re.compile(r"[^;&|]+(?:;|&&|\|)")
_QUOTED = re.compile(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"", re.S)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.S)
_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})")
_OWN_WORDS = (".", "cd", "exec", "export", "set", "source", "ulimit", "umask", "unset")


def operator_of(command: str) -> str:
    """A word of the command that is an operator of a shell, "" for none; quoted ones are words."""
    bare = _QUOTED.sub("q", command)
    return next((word for word in bare.split() if _OPERATOR.fullmatch(word)), "")


def through_a_shell(command: str) -> str:
    """The same command, run by a shell: `sh -c '…'`."""
    return f"sh -c {shlex.quote(command)}"


def hint(words: Sequence[str]) -> str:
    """Why the first word is no program to be found, where a shell would make it one; else ""."""
    program, rest = words[0], shlex.join(words[1:])
    if _ASSIGNMENT.fullmatch(program):
        return (
            f"no shell runs the command, so {program} sets no variable; write "
            f"env {shlex.join(words)}, or put it into [env] of a profile"
        )
    if program.startswith("~"):
        try:
            path = str(Path(program).expanduser())
        except RuntimeError:  # There is no such user.
            path = "the whole path"
        return f"no shell runs the command, so ~ is not replaced; write {path}"
    if _VARIABLE.search(program):
        return f"no shell runs the command, so {program} is not replaced; write its value"
    if program in _OWN_WORDS or _ENDS_IN_ONE.fullmatch(program):
        return f"no shell runs the command; write {through_a_shell(f'{program} {rest}'.strip())}"
    return ""


def left_alone(words: Sequence[str]) -> Iterator[str]:
    """The arguments in which a shell would replace something, and nothing does here."""
    return (word for word in words[1:] if word.startswith("~/") or _VARIABLE.match(word))
