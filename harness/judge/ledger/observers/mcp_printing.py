"""Output of `agent mcp`: exit statuses, streams, lists, details of a server."""

import re
from collections.abc import Iterator
from typing import Any, Final

from harness.judge.ledger.base import Choice, observes
from harness.judge.ledger.mcp_runs import (
    HTTP,
    STDIO,
    RunObserver,
    config_table,
    end_words,
    kind_of,
    parsed_output,
    servers,
    table_rows,
    token_files,
    value_of,
)
from harness.judge.ledger.words import names, word
from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Run
from harness.trace.surfaces import COMMAND

_JSON: Final = "--json"
_SUBCOMMANDS: Final = ("list", "get", "add", "remove", "login", "logout")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
# A shorter value may occur in a text by chance.
_MIN_SECRET_CHARACTERS: Final = 3


def _form(run: Run) -> str:
    """Return the form of the output: "list" or "list --json"."""
    as_json = _JSON in run.words.options
    return f"{run.words.subcommand} {_JSON}" if as_json else run.words.subcommand


@observes("mcp-command.exit-statuses", "mcp-command.no-subcommand", surface=COMMAND)
class Statuses(RunObserver):
    """Exit statuses of runs, and the streams that they write to."""

    def on_run_ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """Yield the exit status and the streams, by subcommand and configuration."""
        if run.words.subcommand not in _SUBCOMMANDS:
            situation = "an unknown one" if run.words.subcommand else "none"
            yield Choice("mcp-command.no-subcommand", end_words(run), end, situation)
        elif situation := self._situation(run):
            yield Choice("mcp-command.exit-statuses", end_words(run), end, situation)

    def _situation(self, run: Run) -> str:
        """Return the situation of a run in words, "" if another point covers it."""
        words, configured = run.words, servers(run.request)
        if config_table(run.request) is None:
            return ""
        command, table = words.subcommand, configured.get(words.name)
        if command == "list":
            return "list" if configured else ""
        if not words.names:
            return f"{command} without a name"
        if command == "add":
            url, env = "--url" in words.options, words.options.get("--env", ())
            usual = (
                len(words.names) == 1 and (bool(words.after_dashes) != url) and not (url and env)
            )
            if not usual or table is not None or not words.name or not all("=" in e for e in env):
                return ""
            if run.visits:
                return "add that logs in"
            return "add" if _NAME.fullmatch(words.name) else "add with a wrong name"
        if command == "remove":
            return "remove" if table is not None else "remove of an unknown name"
        if table is None:
            return "login to an unknown name" if command == "login" else ""
        if command == "login" and kind_of(table) == STDIO:
            return "login to a stdio server"
        if command == "logout":
            return "logout" if token_files(run.request) else "logout with none stored"
        return command if command == "get" or token_files(run.end or run.request) else ""


@observes("mcp-list.empty", "mcp-get.unknown", surface=COMMAND)
class Nothing(RunObserver):
    """Output for an empty list or an unknown server."""

    def on_run_ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """Yield the form of the output and the exit status."""
        if config_table(run.request) is None:
            return
        configured, words = servers(run.request), run.words
        if words.subcommand == "list" and not configured:
            yield Choice(
                "mcp-list.empty", f"{self._output_form(run)}, {end_words(run)}", end, _form(run)
            )
        elif words.subcommand == "get" and words.name and words.name not in configured:
            named = "names it" if words.name in run.output else "does not name it"
            yield Choice("mcp-get.unknown", f"{named}, {end_words(run)}", end, _form(run))

    def _output_form(self, run: Run) -> str:
        if _JSON in run.words.options:
            value = parsed_output(run)
            return "an empty array" if value == [] else word(value)
        lines = [line for line in run.output.splitlines() if line.strip()]
        if not lines:
            return "nothing"
        if "Name" in lines[0].split():
            return "headings"
        return "a line" if len(lines) == 1 else "lines"


@observes(
    "mcp-list.auth-words",
    "mcp-list.status-words",
    "mcp-list.url-column",
    "mcp-list.cwd-column",
    "mcp-config.enabled-default",
    surface=COMMAND,
)
class Lists(RunObserver):
    """The table and the JSON array of `mcp list`, for each server."""

    def on_run_ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """Yield the words for login and status, the URL and the cwd of each listed server."""
        if run.words.subcommand != "list":
            return
        configured = servers(run.request)
        if _JSON in run.words.options:
            for entry in arr(parsed_output(run)):
                yield from self._entry(run, end, obj(entry), configured)
            return
        for row in table_rows(run.output):
            table = configured.get(row.name)
            if table is not None:
                yield from self._row(run, end, row.cells, table)

    def _entry(
        self, run: Run, end: Frame, entry: dict[str, Any], configured: dict[str, dict[str, Any]]
    ) -> Iterator[Choice]:
        table = configured.get(text(entry.get("name")))
        if table is None:
            return
        situation = _login_situation(run, table, _form(run))
        yield Choice("mcp-list.auth-words", word(entry.get("auth_status", MISSING)), end, situation)
        if "enabled" not in table and "enabled" in entry:
            value = "enabled" if entry["enabled"] is True else "not enabled"
            yield Choice("mcp-config.enabled-default", value, end)

    def _row(
        self, run: Run, end: Frame, cells: dict[str, str], table: dict[str, Any]
    ) -> Iterator[Choice]:
        situation = _login_situation(run, table, "list")
        yield Choice("mcp-list.auth-words", word(cells.get("Auth", MISSING)), end, situation)
        on = {True: "enabled", False: "enabled = false"}.get(table.get("enabled", "?"), "no key")
        yield Choice("mcp-list.status-words", word(cells.get("Status", MISSING)), end, on)
        if "enabled" not in table:
            yield Choice("mcp-config.enabled-default", word(cells.get("Status", "")), end, "list")
        url, cwd = text(value_of(table, "url")), text(value_of(table, "cwd"))
        if url:
            columns = [name for name, cell in cells.items() if url in cell]
            yield Choice("mcp-list.url-column", ", ".join(columns) or "not shown", end)
        if "Cwd" in cells:
            cell = cells["Cwd"]
            value = "the folder" if cwd and cwd in cell else word(cell) if cell != "-" else "a dash"
            cwd_situation = "the file has cwd" if cwd else "the file has no cwd"
            yield Choice("mcp-list.cwd-column", value, end, cwd_situation)


def _login_situation(run: Run, table: dict[str, Any], form: str) -> str:
    """Return the form of the output and the login of a server: "list, logged in"."""
    kind = kind_of(table)
    if kind != HTTP:
        return f"{form}, {kind or 'of no known kind'}"
    if value_of(table, "bearer_token_env_var"):
        return f"{form}, with a bearer variable"
    return f"{form}, {'logged in' if token_files(run.request) else 'not logged in'}"


@observes("mcp-list.secrets", "mcp-list.json-fields", surface=COMMAND)
class Details(RunObserver):
    """Details of a server: its variables, the members of its JSON."""

    def on_run_ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """Yield whether values of variables are printed, and the members of JSON output."""
        configured, words = servers(run.request), run.words
        if words.subcommand not in ("list", "get"):
            return
        tables = (
            configured
            if words.subcommand == "list"
            else {words.name: configured.get(words.name, {})}
        )
        for table in tables.values():
            yield from self._variables(run, end, obj(value_of(table, "env")))
        if _JSON in words.options:
            value = parsed_output(run)
            for entry in arr(value) if isinstance(value, list) else [value]:
                yield from self._members(run, end, entry)

    def _variables(self, run: Run, end: Frame, env: dict[str, Any]) -> Iterator[Choice]:
        values = [
            secret for secret in map(text, env.values()) if len(secret) >= _MIN_SECRET_CHARACTERS
        ]
        if not values:
            return
        if any(secret in run.stdout for secret in values):
            value = "as they are"
        else:
            value = "masked" if any(name in run.stdout for name in env) else "not shown"
        yield Choice("mcp-list.secrets", value, end, _form(run))

    def _members(self, run: Run, end: Frame, entry: Any) -> Iterator[Choice]:
        if not isinstance(entry, dict):
            return
        yield Choice("mcp-list.json-fields", names(obj(entry)), end, _form(run))
        transport = dig(entry, "transport")
        if isinstance(transport, dict):
            situation = f"{_form(run)}, transport {word(dig(transport, 'type'))}"
            yield Choice("mcp-list.json-fields", names(obj(transport)), end, situation)
