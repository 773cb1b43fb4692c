"""Environment variables of a command.

They are a short list of the server's own, with the additions of config.toml. No other variable of
the server's environment is passed on, whatever its name.
"""

import os
from collections.abc import Iterable, Mapping, Set
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import NamedTuple

PASSED_VARIABLES = (
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TMPDIR",
    "TZ",
    "USER",
)
"""Names of the server's variables that every command gets; `*` stands for any characters."""


class CommandVariables(NamedTuple):
    """Additions by `[command_environment]` of config.toml.

    `passed_names`: further names or patterns of the server's variables. `set_values`: variables
    with their values. `withheld_names`: names that hold a key of a model's provider; no pattern
    passes them.
    """

    passed_names: tuple[str, ...] = ()
    set_values: Mapping[str, str] = MappingProxyType({})
    withheld_names: Set[str] = frozenset()


def command_environment(
    environment: Mapping[str, str], variables: CommandVariables, *, tty: bool
) -> dict[str, str]:
    """Return the environment of one command, made from the server's own.

    Without a terminal, TERM is `dumb` and pagers are `cat`, so that no program waits for a key.
    """
    patterns = (*PASSED_VARIABLES, *variables.passed_names)
    result = {
        name: value
        for name, value in environment.items()
        if name not in variables.withheld_names and any(fnmatchcase(name, one) for one in patterns)
    }
    if tty:
        result["TERM"] = environment.get("TERM", "xterm-256color")
    else:
        result |= {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat"}
    return {**result, **variables.set_values}


def path_without(path: str, folders: Iterable[str]) -> str:
    """Return a PATH without relative entries and entries in these folders; never empty."""
    real = [os.path.join(os.path.realpath(folder), "") for folder in folders]

    def stays(entry: str) -> bool:
        place = os.path.join(os.path.realpath(entry), "")
        return os.path.isabs(entry) and not any(place.startswith(folder) for folder in real)

    return os.pathsep.join(filter(stays, path.split(os.pathsep))) or os.defpath
