"""The environment variables that a command gets.

They are a short list of the server's own, and what config.toml adds. No other variable of the
server's environment is passed on, whatever its name. The sandbox lives in `sandbox.py`.
"""

import os
from collections.abc import Iterable, Mapping, Set
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import NamedTuple

PASSED = ("HOME", "LANG", "LANGUAGE", "LC_*", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")
"""Of the server's variables, those that every command gets; `*` stands for any characters."""


class CommandVariables(NamedTuple):
    """Additions by `[command_environment]` of config.toml.

    `passed`: further names or patterns of the server's variables. `added`: variables with their
    values. `withheld`: names that hold a key of a model's provider; no pattern passes them.
    """

    passed: tuple[str, ...] = ()
    added: Mapping[str, str] = MappingProxyType({})
    withheld: Set[str] = frozenset()


def command_environment(
    environment: Mapping[str, str], wanted: CommandVariables, *, tty: bool
) -> dict[str, str]:
    """Make the environment of one command from the server's own.

    Without a terminal, TERM is `dumb` and pagers are `cat`, so that no program waits for a key.
    """
    patterns = (*PASSED, *wanted.passed)
    made = {
        name: value
        for name, value in environment.items()
        if name not in wanted.withheld and any(fnmatchcase(name, one) for one in patterns)
    }
    if tty:
        made["TERM"] = environment.get("TERM", "xterm-256color")
    else:
        made |= {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat"}
    return {**made, **wanted.added}


def path_without(path: str, folders: Iterable[str]) -> str:
    """Return a PATH without entries in these folders and without relative entries."""
    real = [os.path.join(os.path.realpath(folder), "") for folder in folders]

    def stays(entry: str) -> bool:
        place = os.path.join(os.path.realpath(entry), "")
        return os.path.isabs(entry) and not any(place.startswith(folder) for folder in real)

    return os.pathsep.join(filter(stays, path.split(os.pathsep))) or os.defpath
