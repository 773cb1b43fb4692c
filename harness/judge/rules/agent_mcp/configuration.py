"""Rules on the server tables that `agent mcp` writes to config.toml: their form and names."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator, Mapping
from typing import Any

from harness.judge.base import Outcome, Outcomes, Witness, listen, rule
from harness.judge.rules.agent_mcp.add import AdditionRule
from harness.judge.rules.shared.mcp_runs import (
    HTTP,
    NAME,
    Addition,
    CommandRule,
    Config,
    config_after,
    config_before,
)
from harness.judge.rules.shared.violations import root_member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import MISSING, arr, obj
from harness.trace.difference import literal
from harness.trace.frame import Frame


@rule(
    "mcp-config.transport",
    title="The transport of a server has the form of its type",
    level=Level.MUST,
    surface="command",
)
class Transport(AdditionRule):
    """Judges transport of each server that was added.

    It is a table whose type is stdio, with command and args, or streamable_http, with url. Left
    open: args omitted when there are none, further keys, how the table is laid out.
    """

    def judge_table(
        self, added: Addition, config: Config, table: Mapping[str, Any]
    ) -> Iterator[Outcome]:
        run = added.run
        transport = table.get("transport", MISSING)
        problem = _transport_problem(added, transport)
        if not problem:
            yield Witness(run.subject, run.frames)
            return
        actual = "missing" if transport is MISSING else literal(transport)
        expected = f"the transport of {added.name} {problem}; it is {actual}"
        yield wrong(run.subject, run.frames, config.field, expected)


def _transport_problem(added: Addition, transport: Any) -> str:
    """Return the problem of a transport, "" if there is none."""
    values = obj(transport)
    if values.get("type") != added.kind:
        return f"is a table whose type is {added.kind}"
    if added.kind == HTTP:
        return "" if isinstance(values.get("url"), str) else "has a url, a string"
    if not isinstance(values.get("command"), str):
        return "has a command, a string"
    args = values.get("args", [])
    strings = isinstance(args, list) and all(isinstance(arg, str) for arg in arr(args))
    missing = "args" not in values and len(added.command) > 1
    return "" if strings and not missing else "has args, an array of strings"


@rule(
    "mcp-config.member-types",
    title="enabled is a boolean, env a table of strings, bearer_token_env_var a string",
    level=Level.MUST,
    surface="command",
)
class MemberTypes(AdditionRule):
    """Judges the types of the members of a server that was added, if they exist.

    Left open: whether they exist, which other keys there are, and their values.
    """

    def judge_table(
        self, added: Addition, config: Config, table: Mapping[str, Any]
    ) -> Iterator[Outcome]:
        run = added.run
        for key, expected, clause in (
            ("enabled", "a boolean", "mcp-config.enabled"),
            ("env", "a table of strings", "mcp-config.env"),
            ("bearer_token_env_var", "a string", "mcp-config.bearer-variable"),
        ):
            if key not in table:
                continue
            if _has_type(table[key], key):
                yield Witness(run.subject, run.frames)
                continue
            message = f"{key} of {added.name} is {expected}; it is {literal(table[key])}"
            yield wrong(run.subject, run.frames, config.field, message, clauses=(clause,))


def _has_type(value: Any, key: str) -> bool:
    if key == "enabled":
        return isinstance(value, bool)
    if key == "env":
        return isinstance(value, dict) and all(
            isinstance(item, str) for item in obj(value).values()
        )
    return isinstance(value, str)


class BadNameRule(CommandRule):
    """Base of rules on `mcp add` with a name that has a character that is not allowed.

    Left open: an empty name, letters of other alphabets, a name that begins like an option.
    """

    @listen(("ended", "add"))
    def on_add_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended_run(frame)
        if run is None or len(run.words.names) != 1 or config_before(run).data is None:
            return
        name = run.words.name
        if NAME.fullmatch(name) or not name.isascii() or not name:
            return
        problem = self.problem(config_before(run), config_after(run))
        if not problem:
            yield Witness(run.subject, run.frames)
            return
        argv = (root_member(run.request, "argv"),)
        yield wrong(run.subject, run.frames, config_after(run).field, problem, also=argv)

    def problem(self, old: Config, config: Config) -> str:
        """Return the problem of the configuration afterwards, "" if there is none."""
        raise NotImplementedError


@rule(
    "mcp-name.characters",
    title="No server gets a name with other characters",
    level=Level.MUST,
    surface="command",
)
class NameCharacters(BadNameRule):
    """Judges that no server of config.toml has got a name with characters that are not allowed.

    A name has letters, digits, hyphens and underscores only. Judged after each `mcp add` with
    another name. Left open: an empty name, letters of other alphabets.
    """

    def problem(self, old: Config, config: Config) -> str:
        new = [name for name in config.servers if name not in old.servers]
        wrong_ones = [name for name in new if not NAME.fullmatch(name)]
        return f"no server named {literal(wrong_ones[0])}" if wrong_ones else ""


@rule(
    "mcp-name.refused",
    title="mcp add with a wrong name leaves the configuration as it was",
    level=Level.SHOULD,
    surface="command",
)
class NameRefused(BadNameRule):
    """Judges that an `mcp add` with a name that is not allowed leaves config.toml unchanged.

    Its content is compared, not its bytes. That the command is refused follows from the characters
    of a name: SHOULD.
    """

    def problem(self, old: Config, config: Config) -> str:
        return "" if config.data == old.data else "what it said before the command"
