"""Rules on `mcp add`: the server that was added, in config.toml."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator, Mapping
from typing import Any

from harness.judge.base import Outcome, Outcomes, Witness, listen, rule
from harness.judge.rules.shared.mcp_runs import (
    HTTP,
    STDIO,
    Addition,
    CommandRule,
    Config,
    addition,
    after,
    config_in,
    file_in,
    kind_of,
    printed_members,
    value_of,
)
from harness.judge.rules.shared.violations import instead, whole, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, obj
from harness.trace.difference import literal
from harness.trace.frame import Frame


class Added(CommandRule):
    """Judges additions that the text describes and after which the server is there."""

    @listen(("ended", "add"))
    def on_add_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended(frame)
        added = addition(run) if run is not None else None
        if run is None or added is None:
            return
        config = after(run)
        table = config.servers.get(added.name)
        if table is not None and kind_of(table) == added.kind:
            yield from self.there(added, config, table)
        else:
            yield from self.missing(added, config)

    def there(self, added: Addition, config: Config, table: Mapping[str, Any]) -> Iterator[Outcome]:
        """Judge the table of the server that was added."""
        raise NotImplementedError

    def missing(self, added: Addition, config: Config) -> Iterator[Outcome]:
        """Judge that there is none, or one of another kind; one rule does."""
        return iter(())

    def compared(
        self, added: Addition, config: Config, what: str, expected: Any, found: Any
    ) -> Outcome:
        """That a value of the table is the one that was given."""
        run = added.run
        if found == expected:
            return Witness(run.subject, run.frames)
        wanted = f"{what} of {added.name} is {literal(expected)}"
        told = whole(run.asked, "argv")
        shown = "missing" if found is None else literal(found)
        said = f"{wanted}, as the command said; it is {shown}"
        return wrong(run.subject, run.frames, config.where, said, also=(told,))


@rule(
    "mcp-add.configured",
    title="A server that was added is in config.toml",
    level=Level.MUST,
    surface="command",
)
class Configured(Added):
    """Judges each `mcp add` of a new name in one of the two forms of the text.

    Afterwards config.toml has a table of that name below mcp_servers, of a server of that kind.
    Left open: a name that is configured already, the exit status, where in the table values stand.
    """

    def there(self, added: Addition, config: Config, table: Mapping[str, Any]) -> Iterator[Outcome]:
        yield Witness(added.run.subject, added.run.frames)

    def missing(self, added: Addition, config: Config) -> Iterator[Outcome]:
        expected = f"TOML with a table mcp_servers.{added.name} of a {added.kind} server"
        also = (whole(added.run.asked, "argv"),)
        yield wrong(added.run.subject, added.run.frames, config.where, expected, also=also)


@rule(
    "mcp-add.verbatim",
    title="The words after the double dash are the server's command and arguments",
    level=Level.MUST,
    surface="command",
)
class Verbatim(Added):
    """Judges command and args of a stdio server that was added.

    The first word is the command, the others are args, unchanged and in their order, also words
    that look like options of mcp add. Left open: whether args is there when it is empty.
    """

    def there(self, added: Addition, config: Config, table: Mapping[str, Any]) -> Iterator[Outcome]:
        if added.kind == STDIO:
            found = [value_of(table, "command"), *arr(value_of(table, "args"))]
            expected = list(added.command)
            yield self.compared(added, config, "the command with its arguments", expected, found)


@rule(
    "mcp-add.environment",
    title="What --env gives is the server's env",
    level=Level.MUST,
    surface="command",
)
class Environment(Added):
    """Judges env of a stdio server that was added: the variables that were given, and no others.

    A value may hold further equals signs. Left open: whether env is there when none were given.
    """

    def there(self, added: Addition, config: Config, table: Mapping[str, Any]) -> Iterator[Outcome]:
        if added.kind == STDIO:
            found = obj(value_of(table, "env"))
            yield self.compared(added, config, "env", dict(added.env), found)


@rule(
    "mcp-add.address",
    title="The server that --url adds has that address",
    level=Level.MUST,
    surface="command",
)
class Address(Added):
    """Judges url of a streamable HTTP server that was added: the words that followed --url.

    Left open: an address that is none, and what is answered there.
    """

    def there(self, added: Addition, config: Config, table: Mapping[str, Any]) -> Iterator[Outcome]:
        if added.kind == HTTP:
            yield self.compared(added, config, "url", added.url, value_of(table, "url"))


@rule(
    "mcp-add.bearer-variable",
    title="bearer_token_env_var is the variable that was named, and only for HTTP servers",
    level=Level.MUST,
    surface="command",
)
class BearerVariable(Added):
    """Judges bearer_token_env_var of each server that was added: its name, or none.

    Of a stdio server and of one for which none was given there is none. Left open: an empty string,
    which names no variable.
    """

    def there(self, added: Addition, config: Config, table: Mapping[str, Any]) -> Iterator[Outcome]:
        found = value_of(table, "bearer_token_env_var") or None
        yield self.compared(added, config, "bearer_token_env_var", added.variable or None, found)


@rule(
    "mcp-add.token-not-kept",
    title="The token itself never gets into config.toml",
    level=Level.MUST,
    surface="command",
)
class TokenNotKept(CommandRule):
    """Judges config.toml after each `mcp add` that names a variable which is set.

    The key holds the name of the variable that holds the token. Left open: other files, and what is
    printed, which mcp-add.token-not-shown judges.
    """

    @listen(("ended", "add"))
    def on_add_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended(frame)
        variable = run.words.last("--bearer-token-env-var") if run is not None else None
        token = run.env.get(variable or "", "") if run is not None else ""
        if run is None or not token:
            return
        file = file_in(frame, "config.toml")
        where = file.part("text") if file is not None else whole(frame, "files")
        if token in str(where.value):
            expected = f"the name {variable} and not the value of that variable"
            yield instead(run.subject, run.frames, where, f"{where.name}: {expected}")
        else:
            yield Witness(run.subject, run.frames)


@rule(
    "mcp-add.token-not-shown",
    title="The token itself is not printed",
    level=Level.INFO,
    surface="command",
)
class TokenNotShown(CommandRule):
    """Judges what each run prints while a variable is set that is named as a bearer token's.

    The text speaks of the configuration only: our choice.
    """

    @listen(*(("ended", one) for one in ("add", "list", "get", "remove", "login", "logout")))
    def on_run_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended(frame)
        if run is None:
            return
        tokens = [run.env[one] for one in _variables(run.frames) if run.env.get(one)]
        if not tokens:
            return
        for where in printed_members(run):
            if any(token in str(where.value) for token in tokens):
                expected = f"{where.name}: nothing of the token"
                yield instead(run.subject, run.frames, where, expected)
                return
        yield Witness(run.subject, run.frames)


def _variables(frames: tuple[Frame, ...]) -> set[str]:
    """The variables that config.toml names for bearer tokens, before and after a run."""
    tables = [table for frame in frames for table in config_in(frame).servers.values()]
    named = {value_of(table, "bearer_token_env_var") for table in tables}
    return {one for one in named if isinstance(one, str)}
