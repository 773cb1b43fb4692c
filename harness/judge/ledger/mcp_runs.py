"""Facts about a run of `agent mcp`: its config.toml, its end, its printed table."""

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
    """An observer of runs: `on_run_ended` handles each that ran alone and was not cut."""

    @property
    def commands(self) -> Commands:
        """The runs so far."""
        view: Commands = self.scene.view
        return view

    @listen(("kind", "event"))
    def on_event(self, frame: Frame) -> Choices:
        """Return the choices in a run that has ended; None if others ran at once or it was cut."""
        run = self.commands.run_of(frame)
        if run is None or run.end is not frame or not run.ran_alone or is_cut(run):
            return None
        return self.on_run_ended(run, frame)

    def on_run_ended(self, run: Run, end: Frame) -> Choices:
        """Return the choices in a run that has ended; subclasses define it."""
        raise NotImplementedError


def is_cut(run: Run) -> bool:
    """Return whether the harness ended the run before it ended by itself."""
    return run.end is not None and obj(run.end.json).get("cut") is True


def config_text(frame: Frame) -> str | None:
    """Return the text of config.toml; "" if the file is missing, None if it is not UTF-8."""
    for file in arr(obj(frame.json).get("files")):
        if obj(file).get("path") == CONFIG:
            content = obj(file).get("text")
            return content if isinstance(content, str) else None
    return ""


def config_table(frame: Frame) -> dict[str, Any] | None:
    """Return config.toml parsed, None if it is not TOML."""
    content = config_text(frame)
    try:
        return None if content is None else tomllib.loads(content)
    except (ValueError, RecursionError):
        return None


def servers(frame: Frame | None) -> dict[str, dict[str, Any]]:
    """Return the tables of the MCP servers in config.toml by name, {} if it cannot be read."""
    tables = obj(obj((config_table(frame) if frame is not None else None) or {}).get("mcp_servers"))
    return {name: obj(table) for name, table in tables.items()}


def value_of(table: dict[str, Any], key: str) -> Any:
    """Return a member of a server's `transport`, or else of the server; None if it is missing."""
    transport = obj(table.get("transport"))
    return transport.get(key, table.get(key))


def kind_of(table: dict[str, Any]) -> str:
    """Return the transport type, `stdio` or `streamable_http`; "" if unknown."""
    kind = text(obj(table.get("transport")).get("type"))
    if kind in (STDIO, HTTP):
        return kind
    if value_of(table, "command") is not None:
        return STDIO
    return HTTP if value_of(table, "url") is not None else ""


def token_files(frame: Frame) -> dict[str, str]:
    """Return the files of the agent's home that contain a token: path to mode, such as "0600"."""
    return {
        text(obj(file).get("path")): text(obj(file).get("mode"))
        for file in arr(obj(frame.json).get("files"))
        if {"access_token", "refresh_token"} & {text(name) for name in arr(obj(file).get("holds"))}
    }


def end_words(run: Run) -> str:
    """Return the exit status and the streams with output: "status 1, standard error"."""
    end = obj(run.end.json) if run.end is not None else {}
    streams = [
        name
        for name, key in (("standard output", "stdout"), ("standard error", "stderr"))
        if text(end.get(key)).strip()
    ]
    return f"{status_words(run)}, {' and '.join(streams) or 'nothing printed'}"


def status_words(run: Run) -> str:
    """Return "status 1", "signal 9" if the status is negative, or "no status"."""
    status = obj(run.end.json).get("status") if run.end is not None else None
    if not isinstance(status, int):
        return "no status"
    return f"signal {-status}" if status < 0 else f"status {status}"


def parsed_output(run: Run) -> Any:
    """Return standard output parsed as JSON, None if it is not JSON."""
    try:
        return json.loads(run.stdout)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of a printed table: its cells by heading."""

    cells: dict[str, str]

    @property
    def name(self) -> str:
        """The name of the MCP server, "" without such a column."""
        return self.cells.get("Name", "")


def table_rows(printed: str) -> Iterator[TableRow]:
    """Yield the rows of the tables of `mcp list`; cells are separated by two spaces or a bar."""
    headings: list[str] = []
    for line in printed.splitlines():
        cells = [cell.strip() for cell in _BETWEEN.split(line.strip().strip("|").strip())]
        if not line.strip():
            headings = []
        elif "Name" in cells and "Status" in cells:
            headings = cells
        elif headings and len(cells) == len(headings):
            yield TableRow(dict(zip(headings, cells, strict=True)))
