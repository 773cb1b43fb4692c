"""A start of a program that a stage has written: its variables, and the first line to the stage."""

import json
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

PROGRAM_SOCKET = "AGENT_PROGRAM_SOCKET"
"""The variable with the path of the stage's socket; set by the program alone."""
DIALECT = "AGENT_DIALECT"
"""The variable with the dialect of the stage, which `--version` of the program speaks too."""
PROGRAM_SCENARIO = "AGENT_PROGRAM_SCENARIO"
"""The variable with the one scenario of the stage, which `exec` of the program plays too."""
_SETTINGS = "settings"
_COMMAND = "command"


def first_line(settings: Sequence[str]) -> bytes:
    """Return the line that begins a connection, with settings as `key=value`."""
    return json.dumps({_SETTINGS: list(settings)}).encode() + b"\n"


def parse_first_line(line: bytes) -> tuple[tuple[str, ...], str]:
    """Return the settings of a first line, and the command that is not a connection or ""."""
    members: dict[str, Any] = json.loads(line)
    return tuple(members.get(_SETTINGS, ())), members.get(_COMMAND, "")


def exec_options(environment: Mapping[str, str]) -> list[str]:
    """Return the options of `exec` for the stage's scenario, and tell the stage of the start.

    [] if the program's stage has several scenarios or none.
    """
    scenario = environment.get(PROGRAM_SCENARIO)
    if scenario is None:
        return []
    with socket.socket(socket.AF_UNIX) as stage, suppress(OSError):
        # A stage that has ended counts no start; the scenario is played all the same.
        stage.connect(environment[PROGRAM_SOCKET])
        stage.sendall(json.dumps({_COMMAND: "exec"}).encode() + b"\n")
    return [f"--scenario={scenario}"]
