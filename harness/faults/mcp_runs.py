"""The runs of `agent mcp` in a stored play, as faults see them: words, files before and after."""

import copy
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from harness.faults.base import NotApplied, StoredOnly
from harness.faults.site import FaultSite
from harness.faults.stored import change
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.trace import Trace

WHY = "the end of a run is not a message of the program"
Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class McpRun:
    """A run: its request, a copy of its end for an edit to change, and the earlier runs."""

    request: Message
    end: Message
    earlier: tuple["McpRun", ...] = ()

    @property
    def words(self) -> list[str]:
        """The words of the command line behind `mcp`."""
        return [text(word) for word in arr(self.request.get("argv"))][1:]

    @property
    def command(self) -> str:
        """The subcommand: add, remove, list, get, login, logout."""
        return next(iter(self.words), "")

    @property
    def name(self) -> str:
        """The name after the subcommand, "" if there is none."""
        return next((word for word in self.words[1:2] if not word.startswith("-")), "")

    def option(self, flag: str) -> str:
        """Return the word behind a flag, "" if it was not given."""
        before = self.words[: self.words.index("--")] if "--" in self.words else self.words
        return before[before.index(flag) + 1] if flag in before[:-1] else ""

    @property
    def stdout(self) -> str:
        """Return the standard output of the run."""
        return text(self.end.get("stdout"))

    def set_stdout(self, output: str) -> None:
        """Set the standard output."""
        self.end["stdout"] = output

    def servers(self, *, before: bool = False) -> dict[str, Message]:
        """Return the tables of the servers, by name."""
        try:
            data = tomllib.loads(_config(self.request if before else self.end))
        except tomllib.TOMLDecodeError:
            return {}
        return {name: obj(table) for name, table in obj(data.get("mcp_servers")).items()}

    @property
    def has_credentials(self) -> bool:
        """Return whether credentials were stored before it."""
        return any("holds" in obj(file) for file in arr(self.request.get("files")))

    def edit_config(self, how: Callable[[str], str]) -> None:
        """Edit config.toml after the run."""
        for file in map(obj, arr(self.end.get("files"))):
            if file.get("path") == "config.toml":
                file["text"] = how(text(file.get("text")))

    def edit_server(self, name: str, how: Callable[[str], str]) -> None:
        """Edit the table of a server, with its subtables, after the run."""
        parts = rf"^\[mcp_servers\.{re.escape(name)}(?:\.[^\]]*)?\]\n(?:(?!\[).*(?:\n|\Z))*"
        self.edit_config(
            lambda whole: re.sub(parts, lambda m: how(m[0]), whole, flags=re.MULTILINE)
        )


# Changes the end of a run, or nothing where it has no place.
RunEdit = Callable[[McpRun], None]


def edit_run(command: str, do: RunEdit, description: str) -> StoredOnly:
    """Return a change of the first run of a command that the edit changes."""

    def make(_: FaultSite, trace: Trace) -> Trace:
        for frame, run in _runs(trace):
            if run.command != command:
                continue
            do(run)
            if run.end != frame.json:
                return change(trace, [frame], lambda _, run=run: run.end)
        raise NotApplied(f"no {description}")

    return StoredOnly(WHY, make)


def _runs(trace: Trace) -> Iterator[tuple[Frame, McpRun]]:
    """Yield the ends of runs, each with its run."""
    requests: dict[Any, Message] = {}
    earlier: list[McpRun] = []
    for frame in trace.frames:
        message = obj(frame.json)
        if "argv" in message:
            requests[message.get("id")] = message
        elif "stdout" in message and message.get("id") in requests:
            start = requests[message.get("id")]
            run = McpRun(start, copy.deepcopy(message), tuple(earlier))
            earlier.append(McpRun(start, copy.deepcopy(message)))
            yield frame, run


def _config(message: Message) -> str:
    files = [obj(file) for file in arr(message.get("files"))]
    return next((text(file.get("text")) for file in files if file.get("path") == "config.toml"), "")
