"""Choices of `agent mcp` when it changes config.toml, or is asked to."""

from collections.abc import Iterator
from typing import Any

from harness.judge.base import listen
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.mcp_runs import (
    RunObserver,
    config,
    is_cut,
    parsed,
    rows,
    servers,
    status,
    way,
    written,
)
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Commands, Run
from harness.trace.surfaces import COMMAND


def _added(run: Run) -> str:
    """Return whether a server came of it: "added, status 0"."""
    name = run.words.name
    there = name in servers(run.ended)
    if there and servers(run.ended).get(name) == servers(run.asked).get(name):
        return f"nothing changed, {status(run)}"
    return f"{'added' if there else 'not added'}, {status(run)}"


@observes(
    "mcp-name.empty",
    "mcp-add.existing",
    "mcp-add.env-form",
    "mcp-add.without-dashes",
    "mcp-add.both-kinds",
    "mcp-config.env-for-http",
    surface=COMMAND,
)
class Unusual(RunObserver):
    """Additions that the text does not describe."""

    def ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """One addition; it has one thing that is unusual."""
        words = run.words
        if words.subcommand != "add" or not words.names or config(run.asked) is None:
            return
        url, env = "--url" in words.options, words.options.get("--env", ())
        if words.names == ("",):
            yield Choice("mcp-name.empty", _added(run), end)
        elif url and words.dashed:
            yield Choice("mcp-add.both-kinds", _added(run), end, "both")
        elif url and env:
            yield Choice("mcp-config.env-for-http", _added(run), end)
        elif words.dashed is None and not url:
            alone = len(words.names) == 1
            point = "mcp-add.both-kinds" if alone else "mcp-add.without-dashes"
            yield Choice(point, _added(run), end, "neither" if alone else "")
        elif any("=" not in one for one in env):
            yield Choice("mcp-add.env-form", _added(run), end)
        elif words.name in servers(run.asked):
            same = servers(run.asked)[words.name] == servers(run.ended).get(words.name)
            said = "the old one is kept" if same else "the new one replaces it"
            yield Choice("mcp-add.existing", f"{said}, {way(run)}", end)


@observes(
    "mcp-config.flat-form", "mcp-config.other-keys", "mcp-config.broken-file", surface=COMMAND
)
class TheFile(RunObserver):
    """Forms of the file that are read and written, and its other contents."""

    def ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """One run."""
        said, now = config(run.asked), config(end)
        if said is None:
            kept = "untouched" if written(run.asked) == written(end) else "changed"
            about = run.words.subcommand
            yield Choice("mcp-config.broken-file", f"{way(run)}, the file is {kept}", end, about)
        elif run.words.subcommand == "list":
            yield from self._read(run, end)
        elif run.words.subcommand == "add" and now is not None:
            name = run.words.name
            if name in servers(end) and name not in servers(run.asked):
                yield Choice("mcp-config.flat-form", _form(servers(end)[name]), end, "written")
                yield from self._kept(run, end, said, now)

    def _read(self, run: Run, end: Frame) -> Iterator[Choice]:
        if "--json" in run.words.options:
            shown = {text(obj(one).get("name")) for one in arr(parsed(run))}
        else:
            shown = {row.name for row in rows(run.printed)}
        for name, table in servers(run.asked).items():
            seen = "shown" if name in shown else f"not shown, {status(run)}"
            yield Choice("mcp-config.flat-form", seen, end, f"read, {_form(table)}")

    def _kept(
        self, run: Run, end: Frame, said: dict[str, Any], now: dict[str, Any]
    ) -> Iterator[Choice]:
        comments = _comments(written(run.asked) or "")
        pairs = [
            ("comments", comments, comments & _comments(written(end) or "")),
            ("other tables", _others(said), _others(now)),
            ("tables of other servers", servers(run.asked), _but(servers(end), run.words.name)),
        ]
        for about, before, after in pairs:
            if before:
                said_of = "kept" if before == after else "changed or lost"
                yield Choice("mcp-config.other-keys", said_of, end, about)


def _form(table: dict[str, Any]) -> str:
    return "keys within transport" if "transport" in table else "keys in the table itself"


def _comments(said: str) -> set[str]:
    return {line.strip() for line in said.splitlines() if line.strip().startswith("#")}


def _others(data: dict[str, Any]) -> dict[str, Any]:
    return _but(data, "mcp_servers")


def _but(data: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != name}


@observes("mcp-config.concurrent", surface=COMMAND)
class AtOnce(Observer):
    """Additions at the same time, and which of them are there in the end."""

    @listen(("kind", "event"))
    def on_event(self, frame: Frame) -> Iterator[Choice]:
        """The last of several that ran at once."""
        commands: Commands = self.scene.view
        run = commands.of(frame)
        if run is None or run.ended is not frame or run.alone:
            return
        beside = [one for one in commands.runs.values() if not one.alone]
        if any(one.ended is None for one in beside):
            return
        granted = {
            one.words.name
            for one in beside
            if one.words.subcommand == "add" and status(one) == "status 0" and not is_cut(one)
        }
        if len(granted) > 1:
            lost = granted - servers(frame).keys()
            yield Choice(
                "mcp-config.concurrent", "some are lost" if lost else "none is lost", frame
            )
