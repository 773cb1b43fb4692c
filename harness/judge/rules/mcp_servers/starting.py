"""Rules on how an MCP server is started and reached, by its configuration.

An agent may start servers early or late, several times, and list their tools as often as it likes:
each start and each request is judged by itself.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Outcome, Outcomes, Violation, Witness, listen, rule
from harness.judge.rules.shared.mcp_servers import TURN_ENDS, ServerNotes, ServerRule, marks_before
from harness.judge.verdict import Level
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall
from harness.trace.mcp_marks import McpStarted, Possession
from harness.trace.surfaces import EXEC

_HELD_WORDS = {Possession.OTHER: "has another value", Possession.NONE: "is not there"}


class _StartRule(ServerRule):
    """Base of rules on each start of an MCP server's program, judged at the end of a turn."""

    @listen(*TURN_ENDS)
    def on_turn_end(self, frame: Frame) -> Outcomes:
        played = self.notes_before(frame)
        if played is None:
            return
        count: dict[str, int] = {}
        for start in (
            server_start for server_start in played.starts if server_start.server in played.servers
        ):
            count[start.server] = count.get(start.server, 0) + 1
            subject = f"start {count[start.server]} of {start.server}"
            yield from self.judge_start(subject, frame, start, played)

    def judge_start(
        self, subject: str, frame: Frame, start: McpStarted, played: ServerNotes
    ) -> Iterator[Outcome]:
        """Judge one start."""
        raise NotImplementedError


@rule(
    "mcp-server.arguments",
    title="The program of a stdio MCP server gets the configured arguments",
    level=Level.MUST,
    needs=("mcp-tools",),
    also_on=(EXEC,),
)
class Arguments(_StartRule):
    """Judges that the program of an MCP server got the configured arguments, and no others.

    An argument with spaces in it, or an empty one, is one argument.
    """

    def judge_start(
        self, subject: str, frame: Frame, start: McpStarted, played: ServerNotes
    ) -> Iterator[Outcome]:
        arguments = played.servers[start.server].args
        if start.args == arguments:
            yield Witness(subject, (frame,))
            return
        expected = f"the arguments of its configuration: {literal(list(arguments))}"
        yield Violation(subject, (frame,), expected, literal(list(start.args)))


@rule(
    "mcp-server.environment",
    title="The program of a stdio MCP server has the configured environment",
    level=Level.MUST,
    needs=("mcp-tools",),
    also_on=(EXEC,),
)
class Environment(_StartRule):
    """Judges that the program of an MCP server has each variable of the `env` of its configuration.

    Left open: its other variables.
    """

    def judge_start(
        self, subject: str, frame: Frame, start: McpStarted, played: ServerNotes
    ) -> Iterator[Outcome]:
        if not start.variables:
            return
        wrong_variables = [
            variable for variable in start.variables if variable.held is not Possession.SAME
        ]
        if not wrong_variables:
            yield Witness(subject, (frame,))
            return
        names = ", ".join(variable.name for variable in start.variables)
        actual = "; ".join(
            f"{variable.name} {_HELD_WORDS[variable.held]}" for variable in wrong_variables
        )
        yield Violation(subject, (frame,), f"the variables of its env: {names}", actual)


@rule(
    "mcp-server.no-credentials",
    title="The program of a stdio MCP server gets no credentials but in its env",
    level=Level.MUST,
    needs=("mcp-tools",),
    also_on=(EXEC,),
)
class NoCredentials(_StartRule):
    """Judges that the program of an MCP server does not have the bearer token of another server.

    That token certainly is a credential, and is in the agent's own environment. Left open: other
    values there that a server could use as credentials.
    """

    def judge_start(
        self, subject: str, frame: Frame, start: McpStarted, played: ServerNotes
    ) -> Iterator[Outcome]:
        tokens = sorted({server.token for server in played.servers.values() if server.token})
        if not tokens:
            return
        if not start.tokens:
            yield Witness(subject, (frame,))
            return
        expected = f"an environment without the tokens of other servers: {', '.join(tokens)}"
        yield Violation(subject, (frame,), expected, f"the value of {', '.join(start.tokens)}")


@rule(
    "mcp-server.bearer-token",
    title="A bearer token is read from the configured variable, and sent",
    level=Level.MUST,
    needs=("mcp-tools",),
    also_on=(EXEC,),
)
class BearerToken(ServerRule):
    """Judges that an MCP server with bearer_token_env_var gets the token of that variable.

    An agent may send a request without it first and add it once refused, even after the turn. So of
    the requests of one method at least one must have it; if all lack it, that is judged at the end.
    """

    def begin(self) -> None:
        self._end: Frame | None = None

    @listen(*TURN_ENDS)
    def on_turn_end(self, frame: Frame) -> Outcomes:
        self._end = frame
        for subject, variable, tokens in self._tokens_by_method(frame):
            if Possession.SAME in tokens:
                yield Witness(subject, (frame,))
            elif Possession.OTHER in tokens:
                yield Violation(subject, (frame,), _token_of(variable), "another token")

    def finish(self) -> Outcomes:
        if self._end is None:
            return
        for subject, variable, tokens in self._tokens_by_method(None):
            if {*tokens} == {Possession.NONE}:
                actual = f"no token, in {len(tokens)} requests"
                yield Violation(subject, (self._end,), _token_of(variable), actual)

    def _tokens_by_method(self, frame: Frame | None) -> Iterator[tuple[str, str, list[Possession]]]:
        """Yield the tokens of the requests of each method, for each server that needs one."""
        played = self.notes_before(frame)
        tokens_by_method: dict[tuple[str, str], list[Possession]] = {}
        for request in played.requests if played is not None else ():
            tokens_by_method.setdefault((request.server, request.method), []).append(request.token)
        for (server, method), tokens in tokens_by_method.items():
            assert played is not None
            variable = played.servers[server].token if server in played.servers else ""
            if variable:
                yield f"{method} to {server}", variable, tokens


def _token_of(variable: str) -> str:
    return f"the bearer token that {variable} holds"


@rule(
    "mcp-server.enabled-only",
    title="Tools of an MCP server that is not enabled are not offered",
    level=Level.SHOULD,
    needs=("mcp-tools",),
    also_on=(EXEC,),
)
class EnabledOnly(ServerRule):
    """Judges that the model is offered no tool of an MCP server whose `enabled` is false.

    The specification does not define enabled, so SHOULD. Left open: whether such a server is
    started or reached, and calls that offer no tool of the harness's MCP servers at all.
    """

    @listen(*TURN_ENDS)
    def on_turn_end(self, frame: Frame) -> Outcomes:
        played = self.notes_before(frame)
        if played is None:
            return
        off = [name for name, one in played.servers.items() if not one.enabled]
        calls = [
            mark.body for mark in marks_before(self.trace, frame, ModelCall) if mark.body.offered
        ]
        for name in off if calls else ():
            subject = f"tools of {name}"
            offered = sorted(
                {tool.tool for call in calls for tool in call.offered if tool.server == name}
            )
            if not offered:
                yield Witness(subject, (frame,))
                continue
            expected = f"no tool of {name} for the model, which is not enabled"
            yield Violation(subject, (frame,), expected, f"{', '.join(offered)} of {name}")
