"""Rules on `mcp list`, as a table and as JSON."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

from harness.judge.base import Outcome, Outcomes, Witness, listen, rule
from harness.judge.rules.shared.mcp_runs import (
    STDIO,
    CommandRule,
    config_before,
    has_name,
    kind_of,
    nonempty_lines,
    was_cut_off,
)
from harness.judge.rules.shared.violations import Member, root_member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Run

COLUMNS: Final = ("Name", "Command", "Args", "Env", "Cwd", "Status", "Auth")
SEEN_AUTH: Final = ("authenticated", "unsupported")


def parse_stdout(run: Run) -> Any:
    """Return standard output as JSON, None if it is not JSON."""
    try:
        return json.loads(run.stdout)
    except (ValueError, RecursionError):
        return None


def entries_by_name(run: Run) -> dict[str, dict[str, Any]]:
    """Return the objects of `list --json` by name, {} if the output is not a JSON array."""
    entries = [obj(value) for value in arr(parse_stdout(run))]
    return {text(entry.get("name")): entry for entry in entries if entry}


class ListingRule(CommandRule):
    """Base of rules on `mcp list` of a valid configuration, with --json if `as_json`."""

    as_json = False

    @listen(("ended", "list"))
    def on_list_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended_run(frame)
        if run is None or run.words.names or config_before(run).data is None:
            return None
        options = {"--json"} if self.as_json else set[str]()
        if set(run.words.options) != options:
            return None
        return self.judge_listing(run, root_member(frame, "stdout"))

    def judge_listing(self, run: Run, stdout: Member) -> Outcomes:
        """Judge a run by its standard output."""
        raise NotImplementedError


@rule(
    "mcp-list.columns",
    title="The table of mcp list has the seven columns",
    level=Level.MUST,
    surface="command",
)
class Columns(ListingRule):
    """Judges the heading line if a server is configured: all seven names, in their order.

    The order is SHOULD. Left open: further columns, lines between them, the output without servers,
    the content of cells.
    """

    def judge_listing(self, run: Run, stdout: Member) -> Outcomes:
        if not self.configured_servers(run):
            return
        best: list[str] = []
        for line in nonempty_lines(run.stdout):
            words = re.findall(r"[A-Za-z]+", line)
            columns = [column for column in COLUMNS if column in words]
            if len(columns) == len(COLUMNS):
                ordered = sorted(COLUMNS, key=words.index) == list(COLUMNS)
                if ordered:
                    yield Witness(run.subject, run.frames)
                else:
                    in_order = f"the columns {', '.join(COLUMNS)} in this order"
                    yield wrong(run.subject, run.frames, stdout, in_order, level=Level.SHOULD)
                return
            best = max(best, columns, key=len)
        missing = ", ".join(column for column in COLUMNS if column not in best)
        expected = f"a line with the columns {', '.join(COLUMNS)}; no line has {missing} as well"
        yield wrong(run.subject, run.frames, stdout, expected)


@rule(
    "mcp-list.every-server",
    title="mcp list shows every configured server, and none that was removed",
    level=Level.MUST,
    surface="command",
)
class EveryServer(CommandRule):
    """Judges the names in both forms of `mcp list`, as a table and as JSON.

    Left open: built-in servers of the program, which were not removed.
    """

    @listen(("ended", "list"))
    def on_list_ended(self, frame: Frame) -> Outcomes:
        run = self.ended_run(frame)
        if run is None or run.words.names or config_before(run).data is None:
            return
        if set(run.words.options) - {"--json"}:
            return
        as_json, stdout = "--json" in run.words.options, root_member(frame, "stdout")
        configured = self.configured_servers(run)
        for name in configured:
            if self._shows(run, name, as_json=as_json):
                yield Witness(run.subject, run.frames)
            else:
                yield wrong(run.subject, run.frames, stdout, f"the server {name}")
                return
        for name in self._removed_names(run) - set(config_before(run).servers):
            if self._shows(run, name, as_json=as_json):
                expected = f"{stdout.name}: nothing of the server {name}, which was removed"
                yield unexpected_member(run.subject, run.frames, stdout, expected)
                return
            yield Witness(run.subject, run.frames)

    def _removed_names(self, run: Run) -> set[str]:
        earlier = [
            earlier_run
            for earlier_run in self.commands.runs_before(run)
            if earlier_run.words.subcommand == "remove"
        ]
        return {
            earlier_run.words.name
            for earlier_run in earlier
            if earlier_run.words.name in config_before(earlier_run).servers
        }

    def _shows(self, run: Run, name: str, *, as_json: bool) -> bool:
        if as_json:
            return name in entries_by_name(run)
        return any(has_name(line, name) for line in nonempty_lines(run.stdout))


@rule(
    "mcp-list.status",
    title="A server that is switched on is listed as enabled",
    level=Level.SHOULD,
    surface="command",
)
class Status(ListingRule):
    """Judges the row of each configured server whose enabled is true.

    The specification shows the word in that column; that it stands for enabled is derived: SHOULD.
    Left open: other words, and a server whose table has no enabled.
    """

    def judge_listing(self, run: Run, stdout: Member) -> Outcomes:
        for name, table in self.configured_servers(run).items():
            rows = [line for line in nonempty_lines(run.stdout) if has_name(line, name)]
            if table.get("enabled") is not True or not rows:
                continue
            if any(has_name(row, "enabled") for row in rows):
                yield Witness(f"{run.subject}, {name}", run.frames)
            else:
                expected = f"enabled in the row of {name}"
                yield wrong(f"{run.subject}, {name}", run.frames, stdout, expected)


@rule(
    "mcp-list.json-shape",
    title="mcp list --json prints an array of objects with name and auth_status",
    level=Level.MUST,
    surface="command",
)
class JsonShape(ListingRule):
    """Judges standard output as one JSON value; without servers it is an array too.

    name is a string; the type of auth_status is not specified. Left open: further members.
    """

    as_json = True

    def judge_listing(self, run: Run, stdout: Member) -> Outcomes:
        problem = _json_problem(parse_stdout(run))
        if problem:
            yield wrong(run.subject, run.frames, stdout, problem)
        else:
            yield Witness(run.subject, run.frames)


def _json_problem(value: Any) -> str:
    if not isinstance(value, list):
        return "a JSON array of objects, and nothing else"
    for element in cast("list[Any]", value):
        entry = obj(element)
        if not isinstance(entry.get("name"), str) or "auth_status" not in entry:
            return (
                f"an array of objects with name and auth_status; one of them is {literal(element)}"
            )
    return ""


@rule(
    "mcp-list.auth-words",
    title="The auth of a server is one of the words that were seen",
    level=Level.SHOULD,
    surface="command",
)
class AuthWords(ListingRule):
    """Judges auth_status of stdio servers, and of servers after a login.

    A stdio server has no authentication, a server after a login is authenticated: for each the
    specification shows a word, in any case. Left open: the words of other situations.
    """

    as_json = True

    def judge_listing(self, run: Run, stdout: Member) -> Outcomes:
        for name, entry in entries_by_name(run).items():
            table = config_before(run).servers.get(name, {})
            logged_in = self._logged_in(run, name)
            if kind_of(table) != STDIO and not logged_in:
                continue
            yield from _judge_auth(
                run, stdout, name, entry, "authenticated" if logged_in else "unsupported"
            )

    def _logged_in(self, run: Run, name: str) -> bool:
        auth_runs = [
            earlier_run
            for earlier_run in self.commands.runs_before(run)
            if earlier_run.words.name == name
            and earlier_run.words.subcommand in ("login", "logout", "remove")
        ]
        last = auth_runs[-1] if auth_runs else None
        if last is None or last.words.subcommand != "login" or was_cut_off(last):
            return False
        answers = [obj(answer.json) for answer in last.answers]
        return any(
            answer.get("answers") == "token" and answer.get("status") == 200 for answer in answers
        )


def _judge_auth(
    run: Run, stdout: Member, name: str, entry: dict[str, Any], word: str
) -> Iterator[Outcome]:
    subject, auth_status = f"{run.subject}, {name}", entry.get("auth_status")
    if text(auth_status).lower() == word:
        yield Witness(subject, run.frames)
    else:
        expected = f"auth_status {word} of {name}; it is {literal(auth_status)}"
        yield wrong(subject, run.frames, stdout, expected)
