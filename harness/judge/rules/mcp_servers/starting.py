"""Rules on how an MCP server is started and reached, by its configuration.

Servers may be started early or late, several times, and asked for their tools as often as an agent
likes: each start and each request is judged by itself.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Outcome, Outcomes, Violation, Witness, listen, rule
from harness.judge.rules.shared.mcp_servers import TURN_ENDS, OfServers, Played, before
from harness.judge.verdict import Level
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall
from harness.trace.mcp_marks import Held, McpStarted
from harness.trace.surfaces import EXEC

_HELD = {Held.OTHER: "has another value", Held.NONE: "is not there"}


class _Starts(OfServers):
    """Judges each start of a program of the play when a turn has ended."""

    @listen(*TURN_ENDS)
    def on_turn_end(self, frame: Frame) -> Outcomes:
        played = self.played(frame)
        if played is None:
            return
        count: dict[str, int] = {}
        for start in (one for one in played.started if one.server in played.configured):
            count[start.server] = count.get(start.server, 0) + 1
            subject = f"start {count[start.server]} of {start.server}"
            yield from self.judge(subject, frame, start, played)

    def judge(
        self, subject: str, frame: Frame, start: McpStarted, played: Played
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
class Arguments(_Starts):
    """Judges that a program of the play got the arguments of its configuration, and no others.

    An argument with spaces in it, or an empty one, is one argument.
    """

    def judge(
        self, subject: str, frame: Frame, start: McpStarted, played: Played
    ) -> Iterator[Outcome]:
        wanted = played.configured[start.server].args
        if start.args == wanted:
            yield Witness(subject, (frame,))
            return
        expected = f"the arguments of its configuration: {literal(list(wanted))}"
        yield Violation(subject, (frame,), expected, literal(list(start.args)))


@rule(
    "mcp-server.environment",
    title="The program of a stdio MCP server has the configured environment",
    level=Level.MUST,
    needs=("mcp-tools",),
    also_on=(EXEC,),
)
class Environment(_Starts):
    """Judges that a program of the play has each variable of the `env` of its configuration.

    What else is in its environment is left open here.
    """

    def judge(
        self, subject: str, frame: Frame, start: McpStarted, played: Played
    ) -> Iterator[Outcome]:
        if not start.variables:
            return
        lacking = [one for one in start.variables if one.held is not Held.SAME]
        if not lacking:
            yield Witness(subject, (frame,))
            return
        names = ", ".join(one.name for one in start.variables)
        actual = "; ".join(f"{one.name} {_HELD[one.held]}" for one in lacking)
        yield Violation(subject, (frame,), f"the variables of its env: {names}", actual)


@rule(
    "mcp-server.no-credentials",
    title="The program of a stdio MCP server gets no credentials but in its env",
    level=Level.MUST,
    needs=("mcp-tools",),
    also_on=(EXEC,),
)
class NoCredentials(_Starts):
    """Judges that a program of the play does not have the bearer token of another server.

    That token is a credential for sure, and stands in the agent's own environment. Which other
    values there a server could use as credentials nobody knows.
    """

    def judge(
        self, subject: str, frame: Frame, start: McpStarted, played: Played
    ) -> Iterator[Outcome]:
        tokens = sorted({one.token for one in played.configured.values() if one.token})
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
class BearerToken(OfServers):
    """Judges that an MCP server with bearer_token_env_var gets the token of that variable.

    An agent may ask first without it and send it when it was refused, also after the turn: so of
    the requests of one method one must have it, and that all came without any is judged at the end.
    """

    def begin(self) -> None:
        self._end: Frame | None = None

    @listen(*TURN_ENDS)
    def on_turn_end(self, frame: Frame) -> Outcomes:
        self._end = frame
        for subject, variable, tokens in self._requests(frame):
            if Held.SAME in tokens:
                yield Witness(subject, (frame,))
            elif Held.OTHER in tokens:
                yield Violation(subject, (frame,), _token_of(variable), "another token")

    def finish(self) -> Outcomes:
        if self._end is None:
            return
        for subject, variable, tokens in self._requests(None):
            if {*tokens} == {Held.NONE}:
                actual = f"no token, in {len(tokens)} requests"
                yield Violation(subject, (self._end,), _token_of(variable), actual)

    def _requests(self, frame: Frame | None) -> Iterator[tuple[str, str, list[Held]]]:
        """Give the tokens of the requests of each method, for each server that wants one."""
        played = self.played(frame)
        came: dict[tuple[str, str], list[Held]] = {}
        for one in played.requests if played is not None else ():
            came.setdefault((one.server, one.method), []).append(one.token)
        for (server, method), tokens in came.items():
            assert played is not None
            variable = played.configured[server].token if server in played.configured else ""
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
class EnabledOnly(OfServers):
    """Judges that a model that is offered tools of the play gets none of a server with enabled off.

    What enabled means the text does not say, so SHOULD. Left open: whether such a server is started
    or reached, and calls that offer no tool of the play at all.
    """

    @listen(*TURN_ENDS)
    def on_turn_end(self, frame: Frame) -> Outcomes:
        played = self.played(frame)
        if played is None:
            return
        off = [name for name, one in played.configured.items() if not one.enabled]
        calls = [mark.body for mark in before(self.trace, frame, ModelCall) if mark.body.offered]
        for name in off if calls else ():
            subject = f"tools of {name}"
            told = sorted({o.tool for one in calls for o in one.offered if o.server == name})
            if not told:
                yield Witness(subject, (frame,))
                continue
            expected = f"no tool of {name} for the model, which is not enabled"
            yield Violation(subject, (frame,), expected, f"{', '.join(told)} of {name}")
