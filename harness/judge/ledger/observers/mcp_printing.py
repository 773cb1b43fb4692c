"""Output of `agent mcp`: exit statuses, streams, lists, details of a server."""

import re
from collections.abc import Iterator
from typing import Any, Final

from harness.judge.ledger.base import Choice, observes
from harness.judge.ledger.mcp_runs import (
    HTTP,
    STDIO,
    RunObserver,
    config,
    holders,
    kind_of,
    parsed,
    rows,
    servers,
    value_of,
    way,
)
from harness.judge.ledger.words import names, word
from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Run
from harness.trace.surfaces import COMMAND

_JSON: Final = "--json"
_KNOWN: Final = ("list", "get", "add", "remove", "login", "logout")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
# A value that is shorter stands in a text by chance.
_TELLING: Final = 3


def _form(run: Run) -> str:
    """ "list", or "list --json"."""
    as_json = _JSON in run.words.options
    return f"{run.words.subcommand} {_JSON}" if as_json else run.words.subcommand


@observes("mcp-command.exit-statuses", "mcp-command.no-subcommand", surface=COMMAND)
class Statuses(RunObserver):
    """With which status runs end, and on which stream they write."""

    def ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """By what was asked for, and what there was."""
        if run.words.subcommand not in _KNOWN:
            about = "an unknown one" if run.words.subcommand else "none"
            yield Choice("mcp-command.no-subcommand", way(run), end, about)
        elif about := self._situation(run):
            yield Choice("mcp-command.exit-statuses", way(run), end, about)

    def _situation(self, run: Run) -> str:
        """Return the situation in words; "" for one that another point is about."""
        words, known = run.words, servers(run.asked)
        if config(run.asked) is None:
            return ""
        command, table = words.subcommand, known.get(words.name)
        if command == "list":
            return "list" if known else ""
        if not words.names:
            return f"{command} without a name"
        if command == "add":
            url, env = "--url" in words.options, words.options.get("--env", ())
            usual = len(words.names) == 1 and (bool(words.dashed) != url) and not (url and env)
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
            return "logout" if holders(run.asked) else "logout with none stored"
        return command if command == "get" or holders(run.ended or run.asked) else ""


@observes("mcp-list.empty", "mcp-get.unknown", surface=COMMAND)
class Nothing(RunObserver):
    """Output if there is nothing to show."""

    def ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """A list of no server, a server that there is not."""
        if config(run.asked) is None:
            return
        known, words = servers(run.asked), run.words
        if words.subcommand == "list" and not known:
            yield Choice("mcp-list.empty", f"{self._printed(run)}, {way(run)}", end, _form(run))
        elif words.subcommand == "get" and words.name and words.name not in known:
            named = "names it" if words.name in run.printed else "does not name it"
            yield Choice("mcp-get.unknown", f"{named}, {way(run)}", end, _form(run))

    def _printed(self, run: Run) -> str:
        if _JSON in run.words.options:
            value = parsed(run)
            return "an empty array" if value == [] else word(value)
        lines = [line for line in run.printed.splitlines() if line.strip()]
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

    def ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """One list."""
        if run.words.subcommand != "list":
            return
        known = servers(run.asked)
        if _JSON in run.words.options:
            for one in arr(parsed(run)):
                yield from self._entry(run, end, obj(one), known)
            return
        for row in rows(run.printed):
            table = known.get(row.name)
            if table is not None:
                yield from self._row(run, end, row.cells, table)

    def _entry(
        self, run: Run, end: Frame, entry: dict[str, Any], known: dict[str, dict[str, Any]]
    ) -> Iterator[Choice]:
        table = known.get(text(entry.get("name")))
        if table is None:
            return
        about = _login(run, table, _form(run))
        yield Choice("mcp-list.auth-words", word(entry.get("auth_status", MISSING)), end, about)
        if "enabled" not in table and "enabled" in entry:
            said = "enabled" if entry["enabled"] is True else "not enabled"
            yield Choice("mcp-config.enabled-default", said, end)

    def _row(
        self, run: Run, end: Frame, cells: dict[str, str], table: dict[str, Any]
    ) -> Iterator[Choice]:
        about = _login(run, table, "list")
        yield Choice("mcp-list.auth-words", word(cells.get("Auth", MISSING)), end, about)
        on = {True: "enabled", False: "enabled = false"}.get(table.get("enabled", "?"), "no key")
        yield Choice("mcp-list.status-words", word(cells.get("Status", MISSING)), end, on)
        if "enabled" not in table:
            yield Choice("mcp-config.enabled-default", word(cells.get("Status", "")), end, "list")
        url, cwd = text(value_of(table, "url")), text(value_of(table, "cwd"))
        if url:
            shown = [name for name, cell in cells.items() if url in cell]
            yield Choice("mcp-list.url-column", ", ".join(shown) or "not shown", end)
        if "Cwd" in cells:
            cell = cells["Cwd"]
            said = "the folder" if cwd and cwd in cell else word(cell) if cell != "-" else "a dash"
            there = "the file has cwd" if cwd else "the file has no cwd"
            yield Choice("mcp-list.cwd-column", said, end, there)


def _login(run: Run, table: dict[str, Any], form: str) -> str:
    """The situation of a word for the login of a server."""
    kind = kind_of(table)
    if kind != HTTP:
        return f"{form}, {kind or 'of no known kind'}"
    if value_of(table, "bearer_token_env_var"):
        return f"{form}, with a bearer variable"
    return f"{form}, {'logged in' if holders(run.asked) else 'not logged in'}"


@observes("mcp-list.secrets", "mcp-list.json-fields", surface=COMMAND)
class Details(RunObserver):
    """Details of a server: its variables, the members of its JSON."""

    def ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """A list, or one server."""
        known, words = servers(run.asked), run.words
        if words.subcommand not in ("list", "get"):
            return
        shown = known if words.subcommand == "list" else {words.name: known.get(words.name, {})}
        for table in shown.values():
            yield from self._variables(run, end, obj(value_of(table, "env")))
        if _JSON in words.options:
            value = parsed(run)
            for one in arr(value) if isinstance(value, list) else [value]:
                yield from self._members(run, end, one)

    def _variables(self, run: Run, end: Frame, env: dict[str, Any]) -> Iterator[Choice]:
        values = [one for one in map(text, env.values()) if len(one) >= _TELLING]
        if not values:
            return
        if any(one in run.stdout for one in values):
            said = "as they are"
        else:
            said = "masked" if any(name in run.stdout for name in env) else "not shown"
        yield Choice("mcp-list.secrets", said, end, _form(run))

    def _members(self, run: Run, end: Frame, entry: Any) -> Iterator[Choice]:
        if not isinstance(entry, dict):
            return
        yield Choice("mcp-list.json-fields", names(obj(entry)), end, _form(run))
        transport = dig(entry, "transport")
        if isinstance(transport, dict):
            about = f"{_form(run)}, transport {word(dig(transport, 'type'))}"
            yield Choice("mcp-list.json-fields", names(obj(transport)), end, about)
