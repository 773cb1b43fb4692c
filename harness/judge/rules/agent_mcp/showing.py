"""Rules on `mcp get`, as text and as JSON."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Outcomes, Witness, listen, rule
from harness.judge.rules.agent_mcp.listing import parsed
from harness.judge.rules.shared.mcp_runs import STDIO, CommandRule, kind_of, value_of
from harness.judge.rules.shared.violations import Member, instead, whole, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Run


class Showing(CommandRule):
    """Judges `mcp get` of a configured server that is not switched off."""

    as_json = False

    @listen(("ended", "get"))
    def on_get_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended(frame)
        if run is None or len(run.words.names) != 1:
            return None
        table = self.configured(run).get(run.words.name)
        wanted = {"--json"} if self.as_json else set[str]()
        if table is None or set(run.words.options) != wanted:
            return None
        return self.judged(run, whole(frame, "stdout"), table)

    def judged(self, run: Run, where: Member, table: dict[str, object]) -> Outcomes:
        """Judge that run; `where` is its standard output, `table` the server's in the file."""
        raise NotImplementedError


@rule(
    "mcp-get.json-transport",
    title="mcp get --json prints an object whose transport has the server's type",
    level=Level.MUST,
    surface="command",
)
class JsonTransport(Showing):
    """Judges standard output as one JSON value, with the kind of server as transport.type.

    Left open: further members, and what the values of variables look like.
    """

    as_json = True

    def judged(self, run: Run, where: Member, table: dict[str, object]) -> Outcomes:
        kind = kind_of(table)
        found = obj(obj(parsed(run)).get("transport")).get("type")
        if kind and found == kind:
            yield Witness(run.subject, run.frames)
        elif kind:
            expected = f"a JSON object whose transport.type is {kind}; it is {literal(found)}"
            yield wrong(run.subject, run.frames, where, expected)


@rule(
    "mcp-get.shows",
    title="mcp get shows enabled, transport, command, args, env, and how to remove the server",
    level=Level.MUST,
    surface="command",
)
class Shows(Showing):
    """Judges the text that is printed for a server that is on.

    It has the words enabled and remove, and the word transport or the server's kind. Of a stdio
    server it shows the command, each of the arguments and the name of each variable; their values
    may be hidden. Left open: small and capital letters, a server that is switched off, the layout.
    """

    def judged(self, run: Run, where: Member, table: dict[str, object]) -> Outcomes:
        if table.get("enabled", True) is not True:
            return
        wanted = ["enabled", "remove"]
        if kind_of(table) == STDIO:
            env = obj(value_of(table, "env"))
            wanted += [text(value_of(table, "command")), *map(text, arr(value_of(table, "args")))]
            wanted += env
        shown = "".join(run.stdout.lower().split())
        missing = [one for one in wanted if "".join(one.lower().split()) not in shown]
        if not any(one in shown for one in ("transport", kind_of(table))):
            missing.append("transport")
        if missing:
            expected = f"all of {', '.join(wanted)}; not there: {', '.join(missing)}"
            yield wrong(run.subject, run.frames, where, expected)
        else:
            yield Witness(run.subject, run.frames)


@rule(
    "mcp-get.name-needed",
    title="mcp get shows no server when no name is given",
    level=Level.MUST,
    surface="command",
)
class NameNeeded(CommandRule):
    """Judges `mcp get` and `mcp get --json` without a name, where servers are configured.

    Left open: what is printed instead, such as the usage, and the exit status.
    """

    @listen(("ended", "get"))
    def on_get_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended(frame)
        servers = self.configured(run) if run is not None else {}
        if run is None or run.words.names or run.words.dashed or not servers:
            return
        for name, table in servers.items():
            said = [value_of(table, "command"), value_of(table, "url")]
            for one in (text(one) for one in said):
                if len(one) > 3 and one in run.stdout:
                    where = whole(frame, "stdout")
                    expected = f"{where.name}: no server, since none was named; it shows {name}"
                    yield instead(run.subject, run.frames, where, expected)
                    return
        yield Witness(run.subject, run.frames)
