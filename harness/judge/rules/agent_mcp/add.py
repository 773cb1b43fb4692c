"""Rules on `mcp add`: the added server in config.toml."""
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
    config_after,
    config_in,
    file_in,
    kind_of,
    parse_addition,
    printed_members,
    value_of,
)
from harness.judge.rules.shared.violations import root_member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, obj
from harness.trace.difference import literal
from harness.trace.frame import Frame


class AdditionRule(CommandRule):
    """Base of rules on additions in one of the forms that the specification describes."""

    @listen(("ended", "add"))
    def on_add_ended(self, frame: Frame) -> Outcomes:
        """Judge a finished run of `mcp add`."""
        run = self.ended_run(frame)
        addition_made = parse_addition(run) if run is not None else None
        if run is None or addition_made is None:
            return
        config = config_after(run)
        table = config.servers.get(addition_made.name)
        if table is not None and kind_of(table) == addition_made.kind:
            yield from self.judge_table(addition_made, config, table)
        else:
            yield from self.judge_missing(addition_made, config)

    def judge_table(
        self, added: Addition, config: Config, table: Mapping[str, Any]
    ) -> Iterator[Outcome]:
        """Judge the table of the added server."""
        raise NotImplementedError

    def judge_missing(self, added: Addition, config: Config) -> Iterator[Outcome]:
        """Judge that the server is missing or of another kind; one rule overrides this."""
        return iter(())

    def compare_value(
        self, added: Addition, config: Config, label: str, expected: Any, actual: Any
    ) -> Outcome:
        """Return a witness if a value of the table is as `mcp add` gave it, else a violation."""
        run = added.run
        if actual == expected:
            return Witness(run.subject, run.frames)
        requirement = f"{label} of {added.name} is {literal(expected)}"
        argv = root_member(run.request, "argv")
        shown_value = "missing" if actual is None else literal(actual)
        message = f"{requirement}, as the command said; it is {shown_value}"
        return wrong(run.subject, run.frames, config.field, message, also=(argv,))


@rule(
    "mcp-add.configured",
    title="A server that was added is in config.toml",
    level=Level.MUST,
    surface="command",
)
class Configured(AdditionRule):
    """Judges each `mcp add` of a new name in one of the two specified forms.

    Afterwards config.toml has a table of that name below mcp_servers, for a server of that kind.
    Left open: a name that is configured already, the exit status, where in the table values stand.
    """

    def judge_table(
        self, added: Addition, config: Config, table: Mapping[str, Any]
    ) -> Iterator[Outcome]:
        yield Witness(added.run.subject, added.run.frames)

    def judge_missing(self, added: Addition, config: Config) -> Iterator[Outcome]:
        expected = f"TOML with a table mcp_servers.{added.name} of a {added.kind} server"
        also = (root_member(added.run.request, "argv"),)
        clauses = ("mcp-add.stdio" if added.kind == STDIO else "mcp-add.http",)
        run = added.run
        yield wrong(run.subject, run.frames, config.field, expected, also=also, clauses=clauses)


@rule(
    "mcp-add.verbatim",
    title="The words after the double dash are the server's command and arguments",
    level=Level.MUST,
    surface="command",
)
class Verbatim(AdditionRule):
    """Judges command and args of a stdio server that was added.

    The first word is the command, the others are args, unchanged and in their order, also words
    that look like options of mcp add. Left open: whether args is there when it is empty.
    """

    def judge_table(
        self, added: Addition, config: Config, table: Mapping[str, Any]
    ) -> Iterator[Outcome]:
        if added.kind == STDIO:
            words = [value_of(table, "command"), *arr(value_of(table, "args"))]
            expected = list(added.command)
            yield self.compare_value(
                added, config, "the command with its arguments", expected, words
            )


@rule(
    "mcp-add.environment",
    title="The variables of --env are the server's env",
    level=Level.MUST,
    surface="command",
)
class Environment(AdditionRule):
    """Judges env of a stdio server that was added: the given variables, and no others.

    A value may hold further equals signs. Left open: whether env exists when none were given.
    """

    def judge_table(
        self, added: Addition, config: Config, table: Mapping[str, Any]
    ) -> Iterator[Outcome]:
        if added.kind == STDIO:
            variables = obj(value_of(table, "env"))
            yield self.compare_value(added, config, "env", dict(added.env), variables)


@rule(
    "mcp-add.address",
    title="The server that --url adds has that address",
    level=Level.MUST,
    surface="command",
)
class Address(AdditionRule):
    """Judges url of a streamable HTTP server that was added: the word after --url.

    Left open: an invalid address, and what is served there.
    """

    def judge_table(
        self, added: Addition, config: Config, table: Mapping[str, Any]
    ) -> Iterator[Outcome]:
        if added.kind == HTTP:
            yield self.compare_value(added, config, "url", added.url, value_of(table, "url"))


@rule(
    "mcp-add.bearer-variable",
    title="bearer_token_env_var is the variable that was named, and only for HTTP servers",
    level=Level.MUST,
    surface="command",
)
class BearerVariable(AdditionRule):
    """Judges bearer_token_env_var of each server that was added: its name, or none.

    A stdio server has none, and so has a server for which none was given. Left open: an empty
    string, which names no variable.
    """

    def judge_table(
        self, added: Addition, config: Config, table: Mapping[str, Any]
    ) -> Iterator[Outcome]:
        variable = value_of(table, "bearer_token_env_var") or None
        yield self.compare_value(
            added, config, "bearer_token_env_var", added.variable or None, variable
        )


@rule(
    "mcp-add.token-not-kept",
    title="The token itself never gets into config.toml",
    level=Level.MUST,
    surface="command",
)
class TokenNotKept(CommandRule):
    """Judges config.toml after each `mcp add` that names a variable which is set.

    The file holds the name of that variable, and not its value, the token. Left open: other files,
    and printed output, which mcp-add.token-not-shown judges.
    """

    @listen(("ended", "add"))
    def on_add_ended(self, frame: Frame) -> Outcomes:
        run = self.ended_run(frame)
        variable = run.words.last("--bearer-token-env-var") if run is not None else None
        token = run.env.get(variable or "", "") if run is not None else ""
        if run is None or not token:
            return
        file = file_in(frame, "config.toml")
        field = file.part("text") if file is not None else root_member(frame, "files")
        if token in str(field.value):
            expected = f"the name {variable} and not the value of that variable"
            yield unexpected_member(run.subject, run.frames, field, f"{field.name}: {expected}")
        else:
            yield Witness(run.subject, run.frames)


@rule(
    "mcp-add.token-not-shown",
    title="The token itself is not printed",
    level=Level.INFO,
    surface="command",
)
class TokenNotShown(CommandRule):
    """Judges the output of each run while a bearer token's variable is set.

    The specification speaks of the configuration only; this is the project's choice.
    """

    @listen(*(("ended", name) for name in ("add", "list", "get", "remove", "login", "logout")))
    def on_run_ended(self, frame: Frame) -> Outcomes:
        run = self.ended_run(frame)
        if run is None:
            return
        tokens = [
            run.env[variable] for variable in _bearer_variables(run.frames) if run.env.get(variable)
        ]
        if not tokens:
            return
        for field in printed_members(run):
            if any(token in str(field.value) for token in tokens):
                expected = f"{field.name}: nothing of the token"
                yield unexpected_member(run.subject, run.frames, field, expected)
                return
        yield Witness(run.subject, run.frames)


def _bearer_variables(frames: tuple[Frame, ...]) -> set[str]:
    """Return the variables that config.toml names for bearer tokens, before and after a run."""
    tables = [table for frame in frames for table in config_in(frame).servers.values()]
    variables = {value_of(table, "bearer_token_env_var") for table in tables}
    return {variable for variable in variables if isinstance(variable, str)}
