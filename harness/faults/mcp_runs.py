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

WHY = "the end of a run is no message that a program writes"
Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class McpRun:
    """A run: what was asked, a copy of its end, which an edit changes, and the runs before it."""

    asked: Message
    end: Message
    earlier: tuple["McpRun", ...] = ()

    @property
    def words(self) -> list[str]:
        """The words of the command line behind `mcp`."""
        return [text(one) for one in arr(self.asked.get("argv"))][1:]

    @property
    def command(self) -> str:
        """The first of them: add, remove, list, get, login, logout."""
        return next(iter(self.words), "")

    @property
    def name(self) -> str:
        """The name behind it, "" where there is none."""
        return next((one for one in self.words[1:2] if not one.startswith("-")), "")

    def option(self, flag: str) -> str:
        """The word behind a flag, "" where it was not given."""
        before = self.words[: self.words.index("--")] if "--" in self.words else self.words
        return before[before.index(flag) + 1] if flag in before[:-1] else ""

    @property
    def stdout(self) -> str:
        """Return the standard output of the run."""
        return text(self.end.get("stdout"))

    def print(self, what: str) -> None:
        """Let it have printed something else."""
        self.end["stdout"] = what

    def servers(self, *, before: bool = False) -> dict[str, Message]:
        """The tables of the servers, by name."""
        try:
            data = tomllib.loads(_config(self.asked if before else self.end))
        except tomllib.TOMLDecodeError:
            return {}
        return {name: obj(one) for name, one in obj(data.get("mcp_servers")).items()}

    @property
    def has_credentials(self) -> bool:
        """Return whether credentials were stored before it."""
        return any("holds" in obj(one) for one in arr(self.asked.get("files")))

    def edit_config(self, how: Callable[[str], str]) -> None:
        """Let it have left another config.toml."""
        for file in map(obj, arr(self.end.get("files"))):
            if file.get("path") == "config.toml":
                file["text"] = how(text(file.get("text")))

    def edit_server(self, name: str, how: Callable[[str], str]) -> None:
        """Let it have left another table of a server, with those within it."""
        parts = rf"^\[mcp_servers\.{re.escape(name)}(?:\.[^\]]*)?\]\n(?:(?!\[).*(?:\n|\Z))*"
        self.edit_config(
            lambda whole: re.sub(parts, lambda m: how(m[0]), whole, flags=re.MULTILINE)
        )


# Changes the end of a run, or nothing where it has no place.
RunEdit = Callable[[McpRun], None]


def run_of(command: str, do: RunEdit, what: str) -> StoredOnly:
    """The end of the first run of a command in which the edit has a place; `what` names it."""

    def make(_: FaultSite, trace: Trace) -> Trace:
        for frame, run in _runs(trace):
            if run.command != command:
                continue
            do(run)
            if run.end != frame.json:
                return change(trace, [frame], lambda _, run=run: run.end)
        raise NotApplied(f"no {what}")

    return StoredOnly(WHY, make)


def _runs(trace: Trace) -> Iterator[tuple[Frame, McpRun]]:
    """The ends of runs, each with what was asked."""
    asked: dict[Any, Message] = {}
    earlier: list[McpRun] = []
    for frame in trace.frames:
        message = obj(frame.json)
        if "argv" in message:
            asked[message.get("id")] = message
        elif "stdout" in message and message.get("id") in asked:
            start = asked[message.get("id")]
            run = McpRun(start, copy.deepcopy(message), tuple(earlier))
            earlier.append(McpRun(start, copy.deepcopy(message)))
            yield frame, run


def _config(message: Message) -> str:
    files = [obj(one) for one in arr(message.get("files"))]
    return next((text(one.get("text")) for one in files if one.get("path") == "config.toml"), "")
