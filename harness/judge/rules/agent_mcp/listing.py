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
    before,
    cut_off,
    kind_of,
    lines_of,
    names,
)
from harness.judge.rules.shared.violations import Member, instead, whole, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Run

COLUMNS: Final = ("Name", "Command", "Args", "Env", "Cwd", "Status", "Auth")
SEEN_AUTH: Final = ("authenticated", "unsupported")


def parsed(run: Run) -> Any:
    """Standard output as JSON, None where it is none."""
    try:
        return json.loads(run.stdout)
    except (ValueError, RecursionError):
        return None


def entries(run: Run) -> dict[str, dict[str, Any]]:
    """The objects of `list --json` by name."""
    found = [obj(one) for one in arr(parsed(run))]
    return {text(one.get("name")): one for one in found if one}


class Listing(CommandRule):
    """Judges `mcp list` and `mcp list --json` of a configuration that is TOML."""

    as_json = False

    @listen(("ended", "list"))
    def on_list_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended(frame)
        if run is None or run.words.names or before(run).data is None:
            return None
        wanted = {"--json"} if self.as_json else set[str]()
        if set(run.words.options) != wanted:
            return None
        return self.judged(run, whole(frame, "stdout"))

    def judged(self, run: Run, where: Member) -> Outcomes:
        """Judge that run; `where` is its standard output."""
        raise NotImplementedError


@rule(
    "mcp-list.columns",
    title="The table of mcp list has the seven columns",
    level=Level.MUST,
    surface="command",
)
class Columns(Listing):
    """Judges the line of headings where a server is configured: all seven names, in their order.

    That they stand in the order of the text is SHOULD. Left open: further columns, lines between
    them, what is printed where there is no server, what a cell shows.
    """

    def judged(self, run: Run, where: Member) -> Outcomes:
        if not self.configured(run):
            return
        best: list[str] = []
        for line in lines_of(run.stdout):
            words = re.findall(r"[A-Za-z]+", line)
            found = [one for one in COLUMNS if one in words]
            if len(found) == len(COLUMNS):
                ordered = sorted(COLUMNS, key=words.index) == list(COLUMNS)
                if ordered:
                    yield Witness(run.subject, run.frames)
                else:
                    said = f"the columns {', '.join(COLUMNS)} in this order"
                    yield wrong(run.subject, run.frames, where, said, level=Level.SHOULD)
                return
            best = max(best, found, key=len)
        missing = ", ".join(one for one in COLUMNS if one not in best)
        expected = f"a line with the columns {', '.join(COLUMNS)}; no line has {missing} as well"
        yield wrong(run.subject, run.frames, where, expected)


@rule(
    "mcp-list.every-server",
    title="mcp list shows every configured server, and none that was removed",
    level=Level.MUST,
    surface="command",
)
class EveryServer(CommandRule):
    """Judges the names in both forms of `mcp list`.

    Left open: servers that the program has by itself, which are nobody's that was removed.
    """

    @listen(("ended", "list"))
    def on_list_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended(frame)
        if run is None or run.words.names or before(run).data is None:
            return
        if set(run.words.options) - {"--json"}:
            return
        as_json, where = "--json" in run.words.options, whole(frame, "stdout")
        configured = self.configured(run)
        for name in configured:
            if self._shows(run, name, as_json=as_json):
                yield Witness(run.subject, run.frames)
            else:
                yield wrong(run.subject, run.frames, where, f"the server {name}")
                return
        for name in self._removed(run) - set(before(run).servers):
            if self._shows(run, name, as_json=as_json):
                expected = f"{where.name}: nothing of the server {name}, which was removed"
                yield instead(run.subject, run.frames, where, expected)
                return
            yield Witness(run.subject, run.frames)

    def _removed(self, run: Run) -> set[str]:
        earlier = [one for one in self.commands.before(run) if one.words.subcommand == "remove"]
        return {one.words.name for one in earlier if one.words.name in before(one).servers}

    def _shows(self, run: Run, name: str, *, as_json: bool) -> bool:
        if as_json:
            return name in entries(run)
        return any(names(line, name) for line in lines_of(run.stdout))


@rule(
    "mcp-list.status",
    title="A server that is switched on is listed as enabled",
    level=Level.SHOULD,
    surface="command",
)
class Status(Listing):
    """Judges the row of each configured server whose enabled is true.

    The word was seen for the column; that it is the one for enabled follows: SHOULD. Left open:
    other words, and a server whose table has no enabled.
    """

    def judged(self, run: Run, where: Member) -> Outcomes:
        for name, table in self.configured(run).items():
            rows = [line for line in lines_of(run.stdout) if names(line, name)]
            if table.get("enabled") is not True or not rows:
                continue
            if any(names(row, "enabled") for row in rows):
                yield Witness(f"{run.subject}, {name}", run.frames)
            else:
                expected = f"enabled in the row of {name}"
                yield wrong(f"{run.subject}, {name}", run.frames, where, expected)


@rule(
    "mcp-list.json-shape",
    title="mcp list --json prints an array of objects with name and auth_status",
    level=Level.MUST,
    surface="command",
)
class JsonShape(Listing):
    """Judges standard output as one JSON value; without servers it is an array too.

    name is a string; of what type auth_status is the text does not say. Further members are open.
    """

    as_json = True

    def judged(self, run: Run, where: Member) -> Outcomes:
        problem = _problem(parsed(run))
        if problem:
            yield wrong(run.subject, run.frames, where, problem)
        else:
            yield Witness(run.subject, run.frames)


def _problem(value: Any) -> str:
    if not isinstance(value, list):
        return "a JSON array of objects, and nothing else"
    for one in cast("list[Any]", value):
        entry = obj(one)
        if not isinstance(entry.get("name"), str) or "auth_status" not in entry:
            return f"an array of objects with name and auth_status; one of them is {literal(one)}"
    return ""


@rule(
    "mcp-list.auth-words",
    title="The auth of a server is one of the words that were seen",
    level=Level.SHOULD,
    surface="command",
)
class AuthWords(Listing):
    """Judges auth_status of stdio servers, and of servers that somebody has logged in to.

    For the one there is no authentication, the other is authenticated: each has a word among those
    that the text has seen, in whatever letters. Words of other situations are open.
    """

    as_json = True

    def judged(self, run: Run, where: Member) -> Outcomes:
        for name, entry in entries(run).items():
            table = before(run).servers.get(name, {})
            logged_in = self._logged_in(run, name)
            if kind_of(table) != STDIO and not logged_in:
                continue
            yield from _auth(
                run, where, name, entry, "authenticated" if logged_in else "unsupported"
            )

    def _logged_in(self, run: Run, name: str) -> bool:
        about = [
            one
            for one in self.commands.before(run)
            if one.words.name == name and one.words.subcommand in ("login", "logout", "remove")
        ]
        last = about[-1] if about else None
        if last is None or last.words.subcommand != "login" or cut_off(last):
            return False
        answers = [obj(one.json) for one in last.answers]
        return any(one.get("answers") == "token" and one.get("status") == 200 for one in answers)


def _auth(
    run: Run, where: Member, name: str, entry: dict[str, Any], word: str
) -> Iterator[Outcome]:
    subject, found = f"{run.subject}, {name}", entry.get("auth_status")
    if text(found).lower() == word:
        yield Witness(subject, run.frames)
    else:
        expected = f"auth_status {word} of {name}; it is {literal(found)}"
        yield wrong(subject, run.frames, where, expected)
