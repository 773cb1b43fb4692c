"""Facts about a run of `agent mcp`: what config.toml said, how it ended, its table."""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from harness.judge.base import listen
from harness.judge.ledger.base import Choices, Observer
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Commands, Run

CONFIG: Final = "config.toml"
STDIO, HTTP = "stdio", "streamable_http"
_BETWEEN: Final = re.compile(r"\s{2,}|\s*\|\s*")


class RunObserver(Observer):
    """Follows the runs of a play: `ended` is asked of each that ended by itself, with none beside
    it.
    """

    @property
    def commands(self) -> Commands:
        """The runs so far."""
        found: Commands = self.scene.view
        return found

    @listen(("kind", "event"))
    def on_event(self, frame: Frame) -> Choices:
        """A run has ended, or asked a server of ours for something."""
        run = self.commands.of(frame)
        if run is None or run.ended is not frame or not run.alone or is_cut(run):
            return None
        return self.ended(run, frame)

    def ended(self, run: Run, end: Frame) -> Choices:
        """Return the choices that the run shows."""
        raise NotImplementedError


def is_cut(run: Run) -> bool:
    """Return whether the harness ended it."""
    return run.ended is not None and obj(run.ended.json).get("cut") is True


def written(frame: Frame) -> str | None:
    """The text of config.toml at a moment; "" where it is not there, None where it is no text."""
    for file in arr(obj(frame.json).get("files")):
        if obj(file).get("path") == CONFIG:
            found = obj(file).get("text")
            return found if isinstance(found, str) else None
    return ""


def config(frame: Frame) -> dict[str, Any] | None:
    """config.toml as a mapping, None where it is not TOML."""
    said = written(frame)
    try:
        return None if said is None else tomllib.loads(said)
    except (ValueError, RecursionError):
        return None


def servers(frame: Frame | None) -> dict[str, dict[str, Any]]:
    """The tables of the MCP servers in it, by name."""
    tables = obj(obj((config(frame) if frame is not None else None) or {}).get("mcp_servers"))
    return {name: obj(table) for name, table in tables.items()}


def value_of(table: dict[str, Any], key: str) -> Any:
    """A member of a server's transport, wherever in its table; None where it is not there."""
    transport = obj(table.get("transport"))
    return transport.get(key, table.get(key))


def kind_of(table: dict[str, Any]) -> str:
    """`stdio` or `streamable_http`, "" where neither can be told."""
    kind = text(obj(table.get("transport")).get("type"))
    if kind in (STDIO, HTTP):
        return kind
    if value_of(table, "command") is not None:
        return STDIO
    return HTTP if value_of(table, "url") is not None else ""


def holders(frame: Frame) -> dict[str, str]:
    """The files of the home that hold a token: their modes by their paths."""
    return {
        text(obj(file).get("path")): text(obj(file).get("mode"))
        for file in arr(obj(frame.json).get("files"))
        if {"access_token", "refresh_token"} & {text(one) for one in arr(obj(file).get("holds"))}
    }


def way(run: Run) -> str:
    """Return the end of a run, and where it wrote: "status 1, standard error"."""
    end = obj(run.ended.json) if run.ended is not None else {}
    streams = [
        name
        for name, key in (("standard output", "stdout"), ("standard error", "stderr"))
        if text(end.get(key)).strip()
    ]
    return f"{status(run)}, {' and '.join(streams) or 'nothing printed'}"


def status(run: Run) -> str:
    """The exit status in words; a signal has a negative number."""
    found = obj(run.ended.json).get("status") if run.ended is not None else None
    if not isinstance(found, int):
        return "no status"
    return f"signal {-found}" if found < 0 else f"status {found}"


def parsed(run: Run) -> Any:
    """Standard output as JSON, None where it is none."""
    try:
        return json.loads(run.stdout)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class Shown:
    """One row of a printed table: its cells by the headings."""

    cells: dict[str, str]

    @property
    def name(self) -> str:
        """The server."""
        return self.cells.get("Name", "")


def rows(printed: str) -> Iterator[Shown]:
    """The rows of the tables of `mcp list`: cells are two spaces or a bar apart."""
    headings: list[str] = []
    for line in printed.splitlines():
        cells = [one.strip() for one in _BETWEEN.split(line.strip().strip("|").strip())]
        if not line.strip():
            headings = []
        elif "Name" in cells and "Status" in cells:
            headings = cells
        elif headings and len(cells) == len(headings):
            yield Shown(dict(zip(headings, cells, strict=True)))
