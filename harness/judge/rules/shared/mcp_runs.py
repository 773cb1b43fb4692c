"""Runs of `agent mcp` for rules: whether one can be judged, what config.toml said."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from harness.judge.base import Monitor
from harness.judge.rules.shared.violations import Member, whole
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Commands, Run

CONFIG: Final = "config.toml"
STDIO, HTTP = "stdio", "streamable_http"
# What the text lets a name consist of. Whether other alphabets have letters too it does not say.
NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_BEARER: Final = "bearer_token_env_var"
_ENTRY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)


class CommandRule(Monitor):
    """A rule on the runs of a play."""

    def begin(self) -> None:
        """The view of this surface."""
        self.commands = cast("Commands", self.conversation)

    def configured(self, run: Run) -> dict[str, dict[str, Any]]:
        """The tables of the servers that were configured right before a run.

        A table that has not the form of the text, and was not made by an earlier run, need not be
        one: whether other forms are read is open.
        """
        added = {
            one.words.name
            for one in self.commands.before(run)
            if one.words.subcommand == "add" and one.words.name in after(one).servers
        }
        return {
            name: table
            for name, table in before(run).servers.items()
            if name in added or text(obj(table.get("transport")).get("type"))
        }

    def ended(self, frame: Frame) -> Run | None:
        """The run that ended with this frame by itself, with no other run beside it."""
        run = self.commands.of(frame)
        if run is None or run.ended is not frame or not run.alone or cut_off(run):
            return None
        return run


def cut_off(run: Run) -> bool:
    """Return whether the harness ended it."""
    return run.ended is not None and obj(run.ended.json).get("cut") is True


@dataclass(frozen=True, slots=True)
class Config:
    """config.toml at one moment. `data` is None where it is not TOML, {} where it is not there."""

    where: Member
    data: Mapping[str, Any] | None

    @property
    def servers(self) -> dict[str, dict[str, Any]]:
        """The tables of MCP servers, by name."""
        tables = obj(obj(dict(self.data or {})).get("mcp_servers"))
        return {name: obj(table) for name, table in tables.items()}


def file_in(frame: Frame, path: str) -> Member | None:
    """The file of the home with that path, as a member of a message; None where it is not there."""
    for place, one in enumerate(arr(obj(frame.json).get("files"))):
        if obj(one).get("path") == path:
            return whole(frame, "files", place)
    return None


def config_in(frame: Frame) -> Config:
    """config.toml as it was when the message was written."""
    file = file_in(frame, CONFIG)
    if file is None:
        return Config(whole(frame, "files"), {})
    where = file.part("text")
    if not isinstance(where.value, str):
        return Config(where, None)
    try:
        return Config(where, tomllib.loads(where.value))
    except (ValueError, RecursionError):
        return Config(where, None)


def before(run: Run) -> Config:
    """config.toml right before a run."""
    return config_in(run.asked)


def after(run: Run) -> Config:
    """config.toml right after a run that has ended."""
    return config_in(run.asked if run.ended is None else run.ended)


def value_of(table: Mapping[str, Any], key: str) -> Any:
    """A member of a server's transport, looked for beside it too where a program has it there.

    Only the rule on the form of transport judges where it stands.
    """
    transport = obj(table.get("transport"))
    return transport[key] if key in transport else table.get(key)


def kind_of(table: Mapping[str, Any]) -> str:
    """The kind of a server: by its transport's type, or else by what it has."""
    kind = text(obj(table.get("transport")).get("type"))
    if kind:
        return kind
    if value_of(table, "command") is not None:
        return STDIO
    return HTTP if value_of(table, "url") is not None else ""


def meaning_of(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the meaning of a server's table: two that mean the same give the same."""
    said: dict[str, Any] = {"kind": kind_of(table)}
    if "enabled" in table:
        said["enabled"] = table["enabled"]
    for key in ("command", "args", "url", "env", _BEARER):
        said[key] = value_of(table, key) or None
    return said


@dataclass(frozen=True, slots=True)
class Addition:
    """A run of `mcp add` that the text describes: a new name, and one of its two forms."""

    run: Run
    name: str
    command: tuple[str, ...]
    url: str
    env: Mapping[str, str]
    variable: str

    @property
    def kind(self) -> str:
        """The kind of server that it adds."""
        return STDIO if self.command else HTTP


def addition(run: Run) -> Addition | None:
    """Return the server that a run adds, None if the text does not describe it.

    That is another name, one that is configured already, both forms at once, an option of the other
    form, a variable that is not KEY=VALUE, a file that was not TOML before.
    """
    words, config = run.words, before(run)
    usual = words.subcommand == "add" and len(words.names) == 1 and NAME.fullmatch(words.name)
    if not usual or config.data is None or words.name in config.servers:
        return None
    options = set(words.options)
    if words.dashed:
        entries = words.options.get("--env", ())
        if options - {"--env"} or not all(_ENTRY.fullmatch(one) for one in entries):
            return None
        env = dict(one.split("=", 1) for one in entries)
        return Addition(run, words.name, words.dashed, "", env, "")
    url, variable = words.last("--url"), words.last("--bearer-token-env-var")
    if words.dashed is not None or not url or options - {"--url", "--bearer-token-env-var"}:
        return None
    return Addition(run, words.name, (), url, {}, variable or "")


def lines_of(printed: str) -> list[str]:
    """The lines that say something, without control sequences for colours."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed)
    return [line for line in plain.splitlines() if line.strip()]


def names(line: str, name: str) -> bool:
    """Return whether a line has a server's name as a word of its own."""
    return re.search(rf"(?<![A-Za-z0-9_-]){re.escape(name)}(?![A-Za-z0-9_-])", line) is not None


def printed_members(run: Run) -> tuple[Member, ...]:
    """Return the output of a run as members of its end: standard output first."""
    if run.ended is None:
        return ()
    return (whole(run.ended, "stdout"), whole(run.ended, "stderr"))
