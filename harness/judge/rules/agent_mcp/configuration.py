"""Rules on what `agent mcp` writes to config.toml: the form of a server's table, its name."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator, Mapping
from typing import Any

from harness.judge.base import Outcome, Outcomes, Witness, listen, rule
from harness.judge.rules.agent_mcp.adding import Added
from harness.judge.rules.shared.mcp_runs import (
    HTTP,
    NAME,
    Addition,
    CommandRule,
    Config,
    after,
    before,
)
from harness.judge.rules.shared.violations import whole, wrong
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
class Transport(Added):
    """Judges transport of each server that was added.

    It is a table whose type is stdio, with command and args, or streamable_http, with url. Left
    open: args that is left out where there are none, further keys, how the table is laid out.
    """

    def there(self, added: Addition, config: Config, table: Mapping[str, Any]) -> Iterator[Outcome]:
        run = added.run
        transport = table.get("transport", MISSING)
        problem = _problem(added, transport)
        if not problem:
            yield Witness(run.subject, run.frames)
            return
        shown = "missing" if transport is MISSING else literal(transport)
        expected = f"the transport of {added.name} {problem}; it is {shown}"
        yield wrong(run.subject, run.frames, config.where, expected)


def _problem(added: Addition, transport: Any) -> str:
    """Return the problem of a transport, "" if there is none."""
    values = obj(transport)
    if values.get("type") != added.kind:
        return f"is a table whose type is {added.kind}"
    if added.kind == HTTP:
        return "" if isinstance(values.get("url"), str) else "has a url, a string"
    if not isinstance(values.get("command"), str):
        return "has a command, a string"
    args = values.get("args", [])
    strings = isinstance(args, list) and all(isinstance(one, str) for one in arr(args))
    missing = "args" not in values and len(added.command) > 1
    return "" if strings and not missing else "has args, an array of strings"


@rule(
    "mcp-config.member-types",
    title="enabled is a boolean, env a table of strings, bearer_token_env_var a string",
    level=Level.MUST,
    surface="command",
)
class MemberTypes(Added):
    """Judges the types of the members of a server that was added, where they are there.

    Left open: whether they are there, which other keys there are, and what those hold.
    """

    def there(self, added: Addition, config: Config, table: Mapping[str, Any]) -> Iterator[Outcome]:
        run = added.run
        for key, expected, clause in (
            ("enabled", "a boolean", "mcp-config.enabled"),
            ("env", "a table of strings", "mcp-config.env"),
            ("bearer_token_env_var", "a string", "mcp-config.bearer-variable"),
        ):
            if key not in table:
                continue
            if _is(table[key], key):
                yield Witness(run.subject, run.frames)
                continue
            told = f"{key} of {added.name} is {expected}; it is {literal(table[key])}"
            yield wrong(run.subject, run.frames, config.where, told, clauses=(clause,))


def _is(value: Any, key: str) -> bool:
    if key == "enabled":
        return isinstance(value, bool)
    if key == "env":
        return isinstance(value, dict) and all(isinstance(one, str) for one in obj(value).values())
    return isinstance(value, str)


class BadName(CommandRule):
    """Judges `mcp add` with a name that has another character than the text allows.

    Left open: an empty name, letters of other alphabets, a name that begins like an option.
    """

    @listen(("ended", "add"))
    def on_add_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended(frame)
        if run is None or len(run.words.names) != 1 or before(run).data is None:
            return
        name = run.words.name
        if NAME.fullmatch(name) or not name.isascii() or not name:
            return
        problem = self.problem(before(run), after(run))
        if not problem:
            yield Witness(run.subject, run.frames)
            return
        told = (whole(run.asked, "argv"),)
        yield wrong(run.subject, run.frames, after(run).where, problem, also=told)

    def problem(self, then: Config, now: Config) -> str:
        """Return the problem of the configuration afterwards, "" if there is none."""
        raise NotImplementedError


@rule(
    "mcp-name.characters",
    title="No server gets a name with other characters",
    level=Level.MUST,
    surface="command",
)
class NameCharacters(BadName):
    """Judges that no server of config.toml has got a name that the text does not allow.

    A name has letters, digits, hyphens and underscores only. It is asked after a `mcp add` with
    another one. Left open: an empty name, letters of other alphabets.
    """

    def problem(self, then: Config, now: Config) -> str:
        new = [one for one in now.servers if one not in then.servers]
        wrong_ones = [one for one in new if not NAME.fullmatch(one)]
        return f"no server named {literal(wrong_ones[0])}" if wrong_ones else ""


@rule(
    "mcp-name.refused",
    title="mcp add with a wrong name leaves the configuration as it was",
    level=Level.SHOULD,
    surface="command",
)
class NameRefused(BadName):
    """Judges that config.toml says the same after a `mcp add` with such a name as before.

    That the command is refused follows from the characters of a name: SHOULD.
    """

    def problem(self, then: Config, now: Config) -> str:
        return "" if now.data == then.data else "what it said before the command"
