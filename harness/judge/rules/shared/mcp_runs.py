"""Runs of `agent mcp` for rules: whether a run can be judged, and its config.toml."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from harness.judge.base import Monitor
from harness.judge.rules.shared.violations import Member, root_member
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Commands, Run

CONFIG: Final = "config.toml"
STDIO, HTTP = "stdio", "streamable_http"
# Names as the specification describes them; whether other alphabets count is not said.
NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_BEARER: Final = "bearer_token_env_var"
_ENTRY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)


class CommandRule(Monitor):
    """Base of rules on the `agent mcp` runs of a play."""

    def begin(self) -> None:
        """Set up `commands`, the view of the runs."""
        self.commands = cast("Commands", self.conversation)

    def configured_servers(self, run: Run) -> dict[str, dict[str, Any]]:
        """Return the tables of the servers that were configured right before a run, by name.

        Without tables that no earlier run added and whose transport has no type: the specification
        does not say which other forms are read.
        """
        added = {
            earlier_run.words.name
            for earlier_run in self.commands.runs_before(run)
            if earlier_run.words.subcommand == "add"
            and earlier_run.words.name in config_after(earlier_run).servers
        }
        return {
            name: table
            for name, table in config_before(run).servers.items()
            if name in added or text(obj(table.get("transport")).get("type"))
        }

    def ended_run(self, frame: Frame) -> Run | None:
        """Return the run that exited by itself with this frame.

        None if the frame ends no run, the harness ended it, or another run was in parallel.
        """
        run = self.commands.run_of(frame)
        if run is None or run.end is not frame or not run.ran_alone or was_cut_off(run):
            return None
        return run


def was_cut_off(run: Run) -> bool:
    """Return whether the harness ended the run."""
    return run.end is not None and obj(run.end.json).get("cut") is True


@dataclass(frozen=True, slots=True)
class Config:
    """State of config.toml at a message.

    `data` is None if the file is not TOML, {} if it is missing.
    """

    field: Member
    data: Mapping[str, Any] | None

    @property
    def servers(self) -> dict[str, dict[str, Any]]:
        """Return the tables of MCP servers, by name."""
        tables = obj(obj(dict(self.data or {})).get("mcp_servers"))
        return {name: obj(table) for name, table in tables.items()}


def file_in(frame: Frame, path: str) -> Member | None:
    """Return a file of the home as a member of a message, None if it does not exist."""
    for place, file in enumerate(arr(obj(frame.json).get("files"))):
        if obj(file).get("path") == path:
            return root_member(frame, "files", place)
    return None


def config_in(frame: Frame) -> Config:
    """Return config.toml as of a message."""
    file = file_in(frame, CONFIG)
    if file is None:
        return Config(root_member(frame, "files"), {})
    field = file.part("text")
    if not isinstance(field.value, str):
        return Config(field, None)
    try:
        return Config(field, tomllib.loads(field.value))
    except (ValueError, RecursionError):
        return Config(field, None)


def config_before(run: Run) -> Config:
    """Return config.toml as of the start of a run."""
    return config_in(run.request)


def config_after(run: Run) -> Config:
    """Return config.toml as of the end of a run."""
    return config_in(run.request if run.end is None else run.end)


def value_of(table: Mapping[str, Any], key: str) -> Any:
    """Return a member of a server's transport, or of its table if the transport lacks it.

    None if both lack it. A rule of its own judges in which of the two it is.
    """
    transport = obj(table.get("transport"))
    return transport[key] if key in transport else table.get(key)


def kind_of(table: Mapping[str, Any]) -> str:
    """Return "stdio" or "streamable_http", or another type of transport; "" if it is unknown.

    Without a type, the kind is derived from the members of the table.
    """
    kind = text(obj(table.get("transport")).get("type"))
    if kind:
        return kind
    if value_of(table, "command") is not None:
        return STDIO
    return HTTP if value_of(table, "url") is not None else ""


def normalize_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the normalized table of a server; tables with equal meaning are equal."""
    meaning: dict[str, Any] = {"kind": kind_of(table)}
    if "enabled" in table:
        meaning["enabled"] = table["enabled"]
    for key in ("command", "args", "url", "env", _BEARER):
        meaning[key] = value_of(table, key) or None
    return meaning


@dataclass(frozen=True, slots=True)
class Addition:
    """A run of `mcp add` as the specification describes it: a new name in one of two forms."""

    run: Run
    name: str
    command: tuple[str, ...]
    url: str
    env: Mapping[str, str]
    variable: str

    @property
    def kind(self) -> str:
        """Return the kind of server that it adds: "stdio" if it has a command, else HTTP."""
        return STDIO if self.command else HTTP


def parse_addition(run: Run) -> Addition | None:
    """Return the server that a run adds, None if the specification does not describe such a run.

    Not described: an invalid or existing name, both forms at once, an option of the other form, a
    variable that is not KEY=VALUE, a file that was not TOML before.
    """
    words, config = run.words, config_before(run)
    usual = words.subcommand == "add" and len(words.names) == 1 and NAME.fullmatch(words.name)
    if not usual or config.data is None or words.name in config.servers:
        return None
    options = set(words.options)
    if words.after_dashes:
        entries = words.options.get("--env", ())
        if options - {"--env"} or not all(_ENTRY.fullmatch(entry) for entry in entries):
            return None
        env = dict(entry.split("=", 1) for entry in entries)
        return Addition(run, words.name, words.after_dashes, "", env, "")
    url, variable = words.last("--url"), words.last("--bearer-token-env-var")
    if words.after_dashes is not None or not url or options - {"--url", "--bearer-token-env-var"}:
        return None
    return Addition(run, words.name, (), url, {}, variable or "")


def nonempty_lines(output: str) -> list[str]:
    """Return the nonempty lines of an output, without control sequences for colours."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output)
    return [line for line in plain.splitlines() if line.strip()]


def has_name(line: str, name: str) -> bool:
    """Return whether a line has a server's name as a word of its own."""
    return re.search(rf"(?<![A-Za-z0-9_-]){re.escape(name)}(?![A-Za-z0-9_-])", line) is not None


def printed_members(run: Run) -> tuple[Member, ...]:
    """Return stdout and stderr of a run as members of its last frame, () if it has not ended."""
    if run.end is None:
        return ()
    return (root_member(run.end, "stdout"), root_member(run.end, "stderr"))
