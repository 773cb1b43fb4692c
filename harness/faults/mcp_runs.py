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
    """A run: its request, its earlier runs, and a copy of its end, which edits change in place."""

    request: Message
    end: Message
    earlier: tuple["McpRun", ...] = ()

    @property
    def words(self) -> list[str]:
        """The words of the command line after `mcp`."""
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
        """Return the word after a flag, "" if the flag was not given."""
        before = self.words[: self.words.index("--")] if "--" in self.words else self.words
        return before[before.index(flag) + 1] if flag in before[:-1] else ""

    @property
    def stdout(self) -> str:
        """The standard output of the run."""
        return text(self.end.get("stdout"))

    def set_stdout(self, output: str) -> None:
        """Change the standard output of the run."""
        self.end["stdout"] = output

    def servers(self, *, before: bool = False) -> dict[str, Message]:
        """Return the tables of the servers after the run (or before) by name, {} if not TOML."""
        try:
            data = tomllib.loads(_config(self.request if before else self.end))
        except tomllib.TOMLDecodeError:
            return {}
        return {name: obj(table) for name, table in obj(data.get("mcp_servers")).items()}

    @property
    def has_credentials(self) -> bool:
        """Return whether credentials were stored before the run."""
        return any("holds" in obj(file) for file in arr(self.request.get("files")))

    def edit_config(self, how: Callable[[str], str]) -> None:
        """Replace the text of config.toml after the run by the result of `how`."""
        for file in map(obj, arr(self.end.get("files"))):
            if file.get("path") == "config.toml":
                file["text"] = how(text(file.get("text")))

    def edit_server(self, name: str, how: Callable[[str], str]) -> None:
        """Replace the tables of a server in config.toml after the run by the results of `how`."""
        parts = rf"^\[mcp_servers\.{re.escape(name)}(?:\.[^\]]*)?\]\n(?:(?!\[).*(?:\n|\Z))*"
        self.edit_config(
            lambda whole: re.sub(parts, lambda m: how(m[0]), whole, flags=re.MULTILINE)
        )


# Changes the end of a run in place, or nothing if it has no place there.
RunEdit = Callable[[McpRun], None]


def edit_run(command: str, do: RunEdit, description: str) -> StoredOnly:
    """Return a change of the first run of `command` on which `do` has an effect."""

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
    """Yield the frame of each run's end with the run."""
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
