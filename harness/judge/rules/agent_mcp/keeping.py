"""Rules on what add and remove do to what they were not asked to touch.

Of the last three the text says nothing: INFO.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Any, Final

from harness.judge.base import Outcomes, Witness, listen, rule
from harness.judge.rules.shared.mcp_runs import (
    CommandRule,
    Config,
    addition,
    after,
    before,
    config_in,
    cut_off,
    meaning_of,
)
from harness.judge.rules.shared.violations import instead, wrong
from harness.judge.verdict import Level
from harness.protocol.values import text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Run

# The keys of a server that the text names, in its form and in the flat one.
KNOWN: Final = frozenset(
    {"enabled", "transport", "env", "bearer_token_env_var", "command", "args", "url"}
)
CHANGES: Final = (("ended", "add"), ("ended", "remove"))


class Keeping(CommandRule):
    """Judges add and remove of a configuration that was TOML before."""

    @listen(*CHANGES)
    def on_change(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended(frame)
        if run is None or before(run).data is None or not run.words.name:
            return
        for what, kept in self.kept(run, before(run), after(run)):
            if kept:
                yield Witness(run.subject, run.frames)
            else:
                yield wrong(run.subject, run.frames, after(run).where, what)
                return

    def kept(self, run: Run, then: Config, now: Config) -> list[tuple[str, bool]]:
        """Return what must still be there, in words, and whether it is."""
        raise NotImplementedError


@rule(
    "mcp-config.others-kept",
    title="Adding or removing one server leaves the others as they were",
    level=Level.MUST,
    surface="command",
)
class OthersKept(Keeping):
    """Judges the tables of all other servers, by their values, after add and remove.

    What is added is one server, and what is removed is the one that was named. Left open: where in
    their tables the values stand, keys that the text does not name, comments.
    """

    def kept(self, run: Run, then: Config, now: Config) -> list[tuple[str, bool]]:
        return [
            (
                f"the server {name} as it was: {literal(meaning_of(table))}",
                name in now.servers and _includes(meaning_of(now.servers[name]), meaning_of(table)),
            )
            for name, table in self.configured(run).items()
            if name != run.words.name
        ]


@rule(
    "mcp-config.other-keys-kept",
    title="Keys that the text does not name keep their values",
    level=Level.INFO,
    surface="command",
)
class OtherKeysKept(Keeping):
    """Judges all keys outside mcp_servers, and those of other servers, after add and remove.

    The text does not speak of them: our choice.
    """

    def kept(self, run: Run, then: Config, now: Config) -> list[tuple[str, bool]]:
        return [
            (f"{key} as it was: {literal(value)}", _others(now, run.words.name).get(key) == value)
            for key, value in _others(then, run.words.name).items()
        ]


@rule(
    "mcp-config.comments-kept",
    title="The comments of the file are still there",
    level=Level.INFO,
    surface="command",
)
class CommentsKept(Keeping):
    """Judges the comments of config.toml after add, and after remove of no server that is there.

    The text does not speak of them: our choice. What stands at a server that is removed may go.
    """

    def kept(self, run: Run, then: Config, now: Config) -> list[tuple[str, bool]]:
        if run.words.subcommand == "remove" and run.words.name in then.servers:
            return []
        there = comments(text(now.where.value))
        return [
            (f"the comment {literal(one)} is still there", one in there)
            for one in comments(text(then.where.value))
        ]


def _includes(now: dict[str, Any], then: dict[str, Any]) -> bool:
    """Return whether everything that was said is said still."""
    return all(key in now and now[key] == value for key, value in then.items())


def _others(config: Config, but: str) -> dict[str, Any]:
    """The keys that the text does not name, those of servers by their dotted names."""
    found = {key: value for key, value in dict(config.data or {}).items() if key != "mcp_servers"}
    for name, table in config.servers.items():
        for key in table.keys() - KNOWN if name != but else ():
            found[f"mcp_servers.{name}.{key}"] = table[key]
    return found


def comments(written: str) -> list[str]:
    """The comments of a TOML file that stand on lines of their own, without their indentation."""
    stripped = [line.strip() for line in written.splitlines()]
    return [line for line in stripped if line.startswith("#")]


@rule(
    "mcp-config.concurrent",
    title="Of several additions at once none is lost",
    level=Level.INFO,
    surface="command",
)
class Concurrent(CommandRule):
    """Judges additions that ran at the same time, when the last of them has ended.

    Each that ended by itself is in config.toml then. The text does not speak of it: our choice.
    """

    def begin(self) -> None:
        super().begin()
        self._judged: set[str] = set()

    @listen(("ended", "add"))
    def on_add_ended(self, frame: Frame) -> Outcomes:
        """Judge the additions that were made at once, when all of them have ended."""
        runs = self.commands.runs.values()
        if any(run.ended is None for run in runs):
            return
        there: dict[str, Any] = config_in(frame).servers
        for run in runs:
            added = None if run.alone or run.subject in self._judged else addition(run)
            self._judged.add(run.subject)
            if added is None or cut_off(run):
                continue
            proof = (run.asked, frame)
            if added.name in there:
                yield Witness(run.subject, proof)
            else:
                where = config_in(frame).where
                said = f"the server {added.name} too, added at the same time as others"
                yield instead(run.subject, proof, where, f"{where.name}: {said}")
