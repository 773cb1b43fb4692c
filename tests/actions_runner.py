"""Parser of the commands that the GitHub Actions runner finds in the output of a step.

As for the runner, a line is a command if it begins with `::` after blanks, or has `##[` anywhere,
and names a known command. After `::stop-commands::TOKEN` only `::TOKEN::` is a command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

KNOWN = {
    *("add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup", "error", "group"),
    *("internal-set-repo-path", "notice", "remove-matcher", "save-state", "set-env", "set-output"),
    *("stop-commands", "warning"),
}
_V2 = re.compile(r"\s*::([^\s:]+)(?: (.*?))?::(.*)", re.S)
_V1 = re.compile(r"##\[([^\s\]]+)(?: ([^\]]*))?\](.*)", re.S)


@dataclass(frozen=True, slots=True)
class Command:
    """One command to the runner."""

    name: str
    data: str
    properties: dict[str, str] = field(default_factory=dict[str, str])


def commands(lines: Iterable[str]) -> list[Command]:
    """Return the commands in the output of a step, without `stop-commands` and its TOKEN."""
    found: list[Command] = []
    token = ""
    for line in lines:
        one = _parsed(line, {*KNOWN, *([token] if token else [])})
        if one is None:
            continue
        if token:
            token = "" if one.name == token else token
        elif one.name == "stop-commands":
            token = one.data.lower()
        else:
            found.append(one)
    assert not token, "the step ended with its commands stopped"
    return found


def _parsed(line: str, known: set[str]) -> Command | None:
    for pattern, split, colons in ((_V2, ",", True), (_V1, ";", False)):
        read = pattern.match(line) if colons else pattern.search(line)
        if read and read[1].lower() in known:
            pairs = (one.split("=", 1) for one in (read[2] or "").strip().split(split) if one)
            given = {pair[0]: _unescaped(pair[1], ":,") for pair in pairs if len(pair) == 2}
            return Command(read[1].lower(), _unescaped(read[3], ""), given)
    return None


def _unescaped(text: str, more: str) -> str:
    for character in f"\r\n{more}%":
        text = text.replace(f"%{ord(character):02X}", character)
    return text
