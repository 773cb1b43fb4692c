"""Choices of `agent mcp` when it changes config.toml."""

from collections.abc import Iterator
from typing import Any

from harness.judge.base import listen
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.mcp_runs import (
    RunObserver,
    config_table,
    config_text,
    end_words,
    is_cut,
    parsed_output,
    servers,
    status_words,
    table_rows,
)
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Commands, Run
from harness.trace.surfaces import COMMAND


def _addition(run: Run) -> str:
    """Return "added", "not added" or "nothing changed", with the exit status: "added, status 0"."""
    name = run.words.name
    is_configured = name in servers(run.end)
    if is_configured and servers(run.end).get(name) == servers(run.request).get(name):
        return f"nothing changed, {status_words(run)}"
    return f"{'added' if is_configured else 'not added'}, {status_words(run)}"


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
    """Runs of `mcp add` that the specification does not describe."""

    def on_run_ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """Yield the outcome of an addition at the point of its first unusual property."""
        words = run.words
        if words.subcommand != "add" or not words.names or config_table(run.request) is None:
            return
        url, env = "--url" in words.options, words.options.get("--env", ())
        if words.names == ("",):
            yield Choice("mcp-name.empty", _addition(run), end)
        elif url and words.after_dashes:
            yield Choice("mcp-add.both-kinds", _addition(run), end, "both")
        elif url and env:
            yield Choice("mcp-config.env-for-http", _addition(run), end)
        elif words.after_dashes is None and not url:
            alone = len(words.names) == 1
            point = "mcp-add.both-kinds" if alone else "mcp-add.without-dashes"
            yield Choice(point, _addition(run), end, "neither" if alone else "")
        elif any("=" not in value for value in env):
            yield Choice("mcp-add.env-form", _addition(run), end)
        elif words.name in servers(run.request):
            same = servers(run.request)[words.name] == servers(run.end).get(words.name)
            former = "the old one is kept" if same else "the new one replaces it"
            yield Choice("mcp-add.existing", f"{former}, {end_words(run)}", end)


@observes(
    "mcp-config.flat-form", "mcp-config.other-keys", "mcp-config.broken-file", surface=COMMAND
)
class TheFile(RunObserver):
    """Forms of config.toml that are read and written, and its other contents."""

    def on_run_ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """Yield the fate of a broken file, the forms of tables, and of other contents."""
        former, current = config_table(run.request), config_table(end)
        if former is None:
            state = "untouched" if config_text(run.request) == config_text(end) else "changed"
            subcommand = run.words.subcommand
            yield Choice(
                "mcp-config.broken-file", f"{end_words(run)}, the file is {state}", end, subcommand
            )
        elif run.words.subcommand == "list":
            yield from self._listed_servers(run, end)
        elif run.words.subcommand == "add" and current is not None:
            name = run.words.name
            if name in servers(end) and name not in servers(run.request):
                yield Choice(
                    "mcp-config.flat-form", _table_form(servers(end)[name]), end, "written"
                )
                yield from self._kept_contents(run, end, former, current)

    def _listed_servers(self, run: Run, end: Frame) -> Iterator[Choice]:
        if "--json" in run.words.options:
            listed = {text(obj(entry).get("name")) for entry in arr(parsed_output(run))}
        else:
            listed = {row.name for row in table_rows(run.output)}
        for name, table in servers(run.request).items():
            value = "shown" if name in listed else f"not shown, {status_words(run)}"
            yield Choice("mcp-config.flat-form", value, end, f"read, {_table_form(table)}")

    def _kept_contents(
        self, run: Run, end: Frame, former: dict[str, Any], current: dict[str, Any]
    ) -> Iterator[Choice]:
        comments = _comments(config_text(run.request) or "")
        pairs = [
            ("comments", comments, comments & _comments(config_text(end) or "")),
            ("other tables", _other_tables(former), _other_tables(current)),
            (
                "tables of other servers",
                servers(run.request),
                _without(servers(end), run.words.name),
            ),
        ]
        for situation, before, after in pairs:
            if before:
                value = "kept" if before == after else "changed or lost"
                yield Choice("mcp-config.other-keys", value, end, situation)


def _table_form(table: dict[str, Any]) -> str:
    return "keys within transport" if "transport" in table else "keys in the table itself"


def _comments(content: str) -> set[str]:
    return {line.strip() for line in content.splitlines() if line.strip().startswith("#")}


def _other_tables(data: dict[str, Any]) -> dict[str, Any]:
    return _without(data, "mcp_servers")


def _without(data: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != name}


@observes("mcp-config.concurrent", surface=COMMAND)
class AtOnce(Observer):
    """Concurrent additions, and whether all of them are kept."""

    @listen(("kind", "event"))
    def on_event(self, frame: Frame) -> Iterator[Choice]:
        """Yield, at the end of the last of several concurrent runs, whether an addition is lost."""
        commands: Commands = self.scene.view
        run = commands.run_of(frame)
        if run is None or run.end is not frame or run.ran_alone:
            return
        beside = [other for other in commands.runs.values() if not other.ran_alone]
        if any(other.end is None for other in beside):
            return
        granted = {
            other.words.name
            for other in beside
            if other.words.subcommand == "add"
            and status_words(other) == "status 0"
            and not is_cut(other)
        }
        if len(granted) > 1:
            lost = granted - servers(frame).keys()
            yield Choice(
                "mcp-config.concurrent", "some are lost" if lost else "none is lost", frame
            )
