"""Rules on `mcp login`: the address, the scopes, the line at the end, servers that it is not for.

They are judged against an authorization server of the harness, whose requests and answers stand in
the trace.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import re
from typing import Final
from urllib.parse import parse_qs, urlsplit

from harness.judge.base import Outcomes, Witness, listen, rule
from harness.judge.rules.shared.mcp_runs import (
    HTTP,
    STDIO,
    CommandRule,
    cut_off,
    kind_of,
    lines_of,
    printed_members,
)
from harness.judge.rules.shared.violations import Member, instead, several, whole, wrong
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Run

ADDRESS: Final = re.compile(r"https?://[^\s\x1b\"'<>`]+")


def addresses(printed: str) -> list[str]:
    """The addresses in what was printed; one that a terminal's width broke is put together."""
    return ADDRESS.findall(printed)


def finished(run: Run) -> bool:
    """Return whether the authorization server gave this run a token."""
    answers = [obj(one.json) for one in run.answers]
    return any(one.get("answers") == "token" and one.get("status") == 200 for one in answers)


class LoggingIn(CommandRule):
    """Judges `mcp login` of a configured streamable HTTP server that offers OAuth.

    That it does is shown by the mark of the play: the run carries `offers`, the address of the
    authorization endpoint.
    """

    @listen(("ended", "login"))
    def on_login_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.commands.of(frame)
        if run is None or run.ended is not frame or not run.alone or len(run.words.names) != 1:
            return None
        table = self.configured(run).get(run.words.name, {})
        offered = text(obj(run.asked.json).get("offers"))
        if kind_of(table) != HTTP or not offered:
            return None
        return self.judged(run, offered)

    def judged(self, run: Run, offered: str) -> Outcomes:
        """Judge that run; `offered` is the address of the authorization endpoint."""
        raise NotImplementedError


def asked_for(run: Run, offered: str) -> dict[str, list[str]] | None:
    """The query of the address that was printed or visited, None where there is none."""
    visited = [text(obj(one.json).get("visits")) for one in run.visits]
    for address in (*addresses(run.printed), *visited):
        if address.startswith(offered):
            return parse_qs(urlsplit(address).query)
    return None


@rule(
    "mcp-login.address",
    title="mcp login prints the address to visit",
    level=Level.MUST,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class Address(LoggingIn):
    """Judges that the authorization endpoint's address is printed, with a client's request in it.

    An OAuth flow that a person goes through begins there: response_type is code and there is a
    client_id. The stream and the words around it are open, and what else a browser is told.
    """

    def judged(self, run: Run, offered: str) -> Outcomes:
        query = next(
            (
                parse_qs(urlsplit(one).query)
                for one in addresses(run.printed)
                if one.startswith(offered)
            ),
            None,
        )
        if query is not None and query.get("response_type") == ["code"] and query.get("client_id"):
            yield Witness(run.subject, run.frames)
            return
        expected = f"the address {offered} with response_type=code and a client_id"
        yield several(run.subject, run.frames, [(one, expected) for one in printed_members(run)])


@rule(
    "mcp-login.success-line",
    title="mcp login prints a line after the flow has ended well",
    level=Level.MUST,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class SuccessLine(LoggingIn):
    """Judges that a run which got its token ends by itself, and prints something after the address.

    In which words is open. The address and the line may go to different streams.
    """

    def judged(self, run: Run, offered: str) -> Outcomes:
        if not finished(run):
            return
        after = [_after_address(one, offered) for one in printed_members(run)]
        if not cut_off(run) and any(after):
            yield Witness(run.subject, run.frames)
            return
        expected = "a line that says that the login succeeded, after the address"
        yield several(run.subject, run.frames, [(one, expected) for one in printed_members(run)])


def _after_address(where: Member, offered: str) -> list[str]:
    """The lines after the address; of a stream that has no address all lines."""
    lines = lines_of(text(where.value))
    places = [place for place, line in enumerate(lines) if offered in line]
    return lines[places[-1] + 1 :] if places else lines


@rule(
    "mcp-login.scopes",
    title="mcp login asks for the scopes that were given",
    level=Level.MUST,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class Scopes(LoggingIn):
    """Judges the scope of the address against --scopes, a list with commas.

    Each scope that was given is asked for; OAuth puts spaces between them. Left open: further
    scopes, and what is asked for without --scopes.
    """

    def judged(self, run: Run, offered: str) -> Outcomes:
        given = [one.strip() for one in (run.words.last("--scopes") or "").split(",")]
        wanted = [one for one in given if one]
        query = asked_for(run, offered)
        if not wanted or query is None:
            return
        found = " ".join(query.get("scope", [])).split()
        missing = [one for one in wanted if one not in found]
        if not missing:
            yield Witness(run.subject, run.frames)
            return
        where = next((one for one in printed_members(run) if offered in text(one.value)), None)
        told = whole(run.asked, "argv")
        expected = f"scope has {' '.join(wanted)}; not there: {' '.join(missing)}"
        yield wrong(
            run.subject, run.frames, where or whole(run.asked, "argv"), expected, also=(told,)
        )


@rule(
    "mcp-login.proof-key",
    title="The OAuth flow has a state and a proof key",
    level=Level.INFO,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class ProofKey(LoggingIn):
    """Judges state and code_challenge (S256) of the address.

    The text says OAuth and no more; those who specify OAuth and MCP demand both: our choice.
    """

    def judged(self, run: Run, offered: str) -> Outcomes:
        query = asked_for(run, offered)
        if query is None:
            return
        method = query.get("code_challenge_method")
        if query.get("state") and query.get("code_challenge") and method == ["S256"]:
            yield Witness(run.subject, run.frames)
            return
        where = next((one for one in printed_members(run) if offered in text(one.value)), None)
        expected = "an address with state, code_challenge and code_challenge_method=S256"
        yield wrong(run.subject, run.frames, where or whole(run.asked, "argv"), expected)


@rule(
    "mcp-login.http-only",
    title="mcp login does not begin for a stdio server",
    level=Level.MUST,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class HttpOnly(CommandRule):
    """Judges `mcp login` of a configured stdio server, and without a name.

    No address to visit is printed, and no server is asked for anything. Left open: what is said,
    and the exit status.
    """

    @listen(("ended", "login"))
    def on_login_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended(frame)
        if run is None:
            return
        table = self.configured(run).get(run.words.name, {})
        if run.words.names and kind_of(table) != STDIO:
            return
        if run.web:
            asked = run.web[0]
            yield instead(
                run.subject,
                (*run.frames, asked),
                whole(asked, "web"),
                "nothing is asked of a server, since there is no OAuth for this one",
            )
            return
        begun = [
            one
            for one in printed_members(run)
            if any("response_type" in found for found in addresses(text(one.value)))
        ]
        if begun:
            expected = f"{begun[0].name}: no address to visit"
            yield instead(run.subject, run.frames, begun[0], expected)
        else:
            yield Witness(run.subject, run.frames)


@rule(
    "mcp-login.says-unsupported",
    title="mcp login says something for a stdio server",
    level=Level.SHOULD,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class SaysUnsupported(CommandRule):
    """Judges that something is printed when a stdio server cannot be logged in to.

    It is unsupported by the text; that somebody is told follows: SHOULD.
    """

    @listen(("ended", "login"))
    def on_login_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended(frame)
        if run is None or kind_of(self.configured(run).get(run.words.name, {})) != STDIO:
            return
        if lines_of(run.printed):
            yield Witness(run.subject, run.frames)
            return
        told = [(one, "a line that says so") for one in printed_members(run)]
        yield several(run.subject, run.frames, told)
