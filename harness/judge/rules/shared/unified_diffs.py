"""The old side of unified diffs: the lines of each file before its changes."""

import re
from dataclasses import dataclass, field
from typing import Final

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NOTHING: Final = "/dev/null"


@dataclass(slots=True)
class OldFile:
    """The known lines of a file before its changes, by number from 1; none if it was created."""

    is_created: bool = False
    lines: dict[int, str] = field(default_factory=dict[int, str])

    def disagrees_with(self, other: "OldFile") -> bool:
        """Return whether the two cannot be the same file at the same time."""
        if (self.is_created and other.lines) or (other.is_created and self.lines):
            return True
        return any(other.lines.get(number, line) != line for number, line in self.lines.items())


def old_files(diff: str) -> dict[str, OldFile]:
    """Return the files of a unified diff by name; {} if it cannot be read."""
    files: dict[str, OldFile] = {}
    file: OldFile | None = None
    before, number, old_left, new_left = "", 0, 0, 0
    for line in diff.splitlines():
        if old_left or new_left:
            mark = line[:1] or " "
            if mark not in " +-\\" or file is None:
                return {}
            if mark in " -":
                file.lines[number] = line[1:]
                number, old_left = number + 1, old_left - 1
            new_left -= mark in " +"
            if old_left < 0 or new_left < 0:
                return {}
        elif line.startswith("--- "):
            before, file = _name_in(line), None
        elif line.startswith("+++ "):
            after = _name_in(line)
            name = before if after == _NOTHING else after
            file = files[name] = OldFile(is_created=before == _NOTHING)
        elif hunk := _HUNK.match(line):
            number, old, new = (int(count) if count else 1 for count in hunk.groups())
            old_left, new_left = old, new
    return {} if old_left or new_left else files


def _name_in(header: str) -> str:
    """Return the name in a header line, without the prefix `a/` or `b/`, and without a time."""
    name = header[4:].split("\t")[0].strip()
    return name[2:] if name.startswith(("a/", "b/")) else name
