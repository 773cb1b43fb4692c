"""Rules on `mcp get`, as text and as JSON."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Outcomes, Witness, listen, rule
from harness.judge.rules.agent_mcp.list_servers import parse_stdout
from harness.judge.rules.shared.mcp_runs import STDIO, CommandRule, kind_of, value_of
from harness.judge.rules.shared.violations import Member, root_member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Run


class GetRule(CommandRule):
    """Base of rules on `mcp get` of a configured server, with --json if `as_json`."""

    as_json = False

    @listen(("ended", "get"))
    def on_get_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended_run(frame)
        if run is None or len(run.words.names) != 1:
            return None
        table = self.configured_servers(run).get(run.words.name)
        options = {"--json"} if self.as_json else set[str]()
        if table is None or set(run.words.options) != options:
            return None
        return self.judge_output(run, root_member(frame, "stdout"), table)

    def judge_output(self, run: Run, stdout: Member, table: dict[str, object]) -> Outcomes:
        """Judge a run by its standard output; `table` is the server's table in config.toml."""
        raise NotImplementedError


@rule(
    "mcp-get.json-transport",
    title="mcp get --json prints an object whose transport has the server's type",
    level=Level.MUST,
    surface="command",
)
class JsonTransport(GetRule):
    """Judges standard output as one JSON value, with the kind of server as transport.type.

    Left open: further members, and how the values of variables are shown.
    """

    as_json = True

    def judge_output(self, run: Run, stdout: Member, table: dict[str, object]) -> Outcomes:
        kind = kind_of(table)
        transport_type = obj(obj(parse_stdout(run)).get("transport")).get("type")
        if kind and transport_type == kind:
            yield Witness(run.subject, run.frames)
        elif kind:
            expected = (
                f"a JSON object whose transport.type is {kind}; it is {literal(transport_type)}"
            )
            yield wrong(run.subject, run.frames, stdout, expected)


@rule(
    "mcp-get.shows",
    title="mcp get shows enabled, transport, command, args, env, and how to remove the server",
    level=Level.MUST,
    surface="command",
)
class Shows(GetRule):
    """Judges the text that is printed for an enabled server.

    It has the words enabled and remove, and the word transport or the server's kind. For a stdio
    server it shows the command, each argument and the name of each variable; their values may be
    hidden. Left open: upper and lower case, disabled servers, the layout.
    """

    def judge_output(self, run: Run, stdout: Member, table: dict[str, object]) -> Outcomes:
        if table.get("enabled", True) is not True:
            return
        words = ["enabled", "remove"]
        if kind_of(table) == STDIO:
            env = obj(value_of(table, "env"))
            words += [text(value_of(table, "command")), *map(text, arr(value_of(table, "args")))]
            words += env
        printed = "".join(run.stdout.lower().split())
        missing = [word for word in words if "".join(word.lower().split()) not in printed]
        if not any(word in printed for word in ("transport", kind_of(table))):
            missing.append("transport")
        if missing:
            expected = f"all of {', '.join(words)}; not there: {', '.join(missing)}"
            yield wrong(run.subject, run.frames, stdout, expected)
        else:
            yield Witness(run.subject, run.frames)


@rule(
    "mcp-get.name-needed",
    title="mcp get shows no server when no name is given",
    level=Level.MUST,
    surface="command",
)
class NameNeeded(CommandRule):
    """Judges `mcp get` and `mcp get --json` without a name, if servers are configured.

    Left open: the output, such as the usage, and the exit status.
    """

    @listen(("ended", "get"))
    def on_get_ended(self, frame: Frame) -> Outcomes:
        run = self.ended_run(frame)
        servers = self.configured_servers(run) if run is not None else {}
        if run is None or run.words.names or run.words.after_dashes or not servers:
            return
        for name, table in servers.items():
            values = [value_of(table, "command"), value_of(table, "url")]
            for value_text in (text(value) for value in values):
                if len(value_text) > 3 and value_text in run.stdout:
                    field = root_member(frame, "stdout")
                    expected = f"{field.name}: no server, since none was named; it shows {name}"
                    yield unexpected_member(run.subject, run.frames, field, expected)
                    return
        yield Witness(run.subject, run.frames)
