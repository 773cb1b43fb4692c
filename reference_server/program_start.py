"""A start of a program that a stage has written: its variables, and the first line to the stage."""

import json
from collections.abc import Sequence
from typing import Any

PROGRAM_SOCKET = "AGENT_PROGRAM_SOCKET"
"""The variable with the path of the stage's socket; set by the program alone."""
DIALECT = "AGENT_DIALECT"
"""The variable with the dialect of the stage, which `--version` of the program speaks too."""
_SETTINGS = "settings"


def first_line(settings: Sequence[str]) -> bytes:
    """Return the line that begins a connection, with settings as `key=value`."""
    return json.dumps({_SETTINGS: list(settings)}).encode() + b"\n"


def settings_of(line: bytes) -> tuple[str, ...]:
    """Return the settings of a first line."""
    members: dict[str, Any] = json.loads(line)
    return tuple(members[_SETTINGS])
