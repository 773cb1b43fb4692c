"""Rules on `mcp login`: the address, the scopes, the last line, servers without OAuth.

They are judged against an authorization server of the harness, whose requests and answers are in
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
    kind_of,
    nonempty_lines,
    printed_members,
    was_cut_off,
)
from harness.judge.rules.shared.violations import (
    Member,
    root_member,
    several,
    unexpected_member,
    wrong,
)
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Run

ADDRESS: Final = re.compile(r"https?://[^\s\x1b\"'<>`]+")


def find_addresses(printed: str) -> list[str]:
    """Return the http and https addresses in an output."""
    return ADDRESS.findall(printed)


def got_token(run: Run) -> bool:
    """Return whether the authorization server gave this run a token."""
    answers = [obj(answer.json) for answer in run.answers]
    return any(
        answer.get("answers") == "token" and answer.get("status") == 200 for answer in answers
    )


class LoginRule(CommandRule):
    """Base of rules on `mcp login` of a configured streamable HTTP server that offers OAuth.

    It does if the record of the run has `offers`, the address of the authorization endpoint.
    """

    @listen(("ended", "login"))
    def on_login_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.commands.run_of(frame)
        if run is None or run.end is not frame or not run.ran_alone or len(run.words.names) != 1:
            return None
        table = self.configured_servers(run).get(run.words.name, {})
        offered = text(obj(run.request.json).get("offers"))
        if kind_of(table) != HTTP or not offered:
            return None
        return self.judge_login(run, offered)

    def judge_login(self, run: Run, endpoint: str) -> Outcomes:
        """Judge a run; `endpoint` is the address of the authorization endpoint."""
        raise NotImplementedError


def authorization_query(run: Run, endpoint: str) -> dict[str, list[str]] | None:
    """Return the query of the address that was printed or visited, None if there is none."""
    visited = [text(obj(visit.json).get("visits")) for visit in run.visits]
    for address in (*find_addresses(run.output), *visited):
        if address.startswith(endpoint):
            return parse_qs(urlsplit(address).query)
    return None


@rule(
    "mcp-login.address",
    title="mcp login prints the address to visit",
    level=Level.MUST,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class Address(LoginRule):
    """Judges that the authorization endpoint's address is printed, with a client's request in it.

    An interactive OAuth flow begins there: response_type is code and there is a client_id. Left
    open: the stream and the words around it, and what else a browser shows.
    """

    def judge_login(self, run: Run, endpoint: str) -> Outcomes:
        query = next(
            (
                parse_qs(urlsplit(address).query)
                for address in find_addresses(run.output)
                if address.startswith(endpoint)
            ),
            None,
        )
        if query is not None and query.get("response_type") == ["code"] and query.get("client_id"):
            yield Witness(run.subject, run.frames)
            return
        expected = f"the address {endpoint} with response_type=code and a client_id"
        yield several(
            run.subject, run.frames, [(output, expected) for output in printed_members(run)]
        )


@rule(
    "mcp-login.success-line",
    title="mcp login prints a line after the flow has ended well",
    level=Level.MUST,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class SuccessLine(LoginRule):
    """Judges that a run which got its token exits, and prints something after the address.

    Left open: the words. The address and the line may go to different streams.
    """

    def judge_login(self, run: Run, endpoint: str) -> Outcomes:
        if not got_token(run):
            return
        later_lines = [_lines_after_address(output, endpoint) for output in printed_members(run)]
        if not was_cut_off(run) and any(later_lines):
            yield Witness(run.subject, run.frames)
            return
        expected = "a line that says that the login succeeded, after the address"
        yield several(
            run.subject, run.frames, [(output, expected) for output in printed_members(run)]
        )


def _lines_after_address(printed: Member, endpoint: str) -> list[str]:
    """Return the lines after the address; all lines of a stream without an address."""
    lines = nonempty_lines(text(printed.value))
    places = [place for place, line in enumerate(lines) if endpoint in line]
    return lines[places[-1] + 1 :] if places else lines


@rule(
    "mcp-login.scopes",
    title="mcp login requests the given scopes",
    level=Level.MUST,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class Scopes(LoginRule):
    """Judges the scope of the address against --scopes, a comma-separated list.

    Each given scope is requested; OAuth separates them by spaces. Left open: further scopes, and
    the request without --scopes.
    """

    def judge_login(self, run: Run, endpoint: str) -> Outcomes:
        words = [word.strip() for word in (run.words.last("--scopes") or "").split(",")]
        scopes = [word for word in words if word]
        query = authorization_query(run, endpoint)
        if not scopes or query is None:
            return
        requested = " ".join(query.get("scope", [])).split()
        missing = [scope for scope in scopes if scope not in requested]
        if not missing:
            yield Witness(run.subject, run.frames)
            return
        field = next(
            (output for output in printed_members(run) if endpoint in text(output.value)), None
        )
        argv = root_member(run.request, "argv")
        expected = f"scope has {' '.join(scopes)}; not there: {' '.join(missing)}"
        yield wrong(run.subject, run.frames, field or argv, expected, also=(argv,))


@rule(
    "mcp-login.proof-key",
    title="The OAuth flow has a state and a proof key",
    level=Level.INFO,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class ProofKey(LoginRule):
    """Judges state and code_challenge (S256) of the address.

    The specification says only OAuth; those of OAuth and MCP demand both. This is the project's
    choice.
    """

    def judge_login(self, run: Run, endpoint: str) -> Outcomes:
        query = authorization_query(run, endpoint)
        if query is None:
            return
        method = query.get("code_challenge_method")
        if query.get("state") and query.get("code_challenge") and method == ["S256"]:
            yield Witness(run.subject, run.frames)
            return
        field = next(
            (output for output in printed_members(run) if endpoint in text(output.value)), None
        )
        expected = "an address with state, code_challenge and code_challenge_method=S256"
        yield wrong(run.subject, run.frames, field or root_member(run.request, "argv"), expected)


@rule(
    "mcp-login.http-only",
    title="mcp login does not begin for a stdio server",
    level=Level.MUST,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class HttpOnly(CommandRule):
    """Judges `mcp login` of a configured stdio server, and without a name.

    No address to visit is printed, and no server gets a request. Left open: the words, and the exit
    status.
    """

    @listen(("ended", "login"))
    def on_login_ended(self, frame: Frame) -> Outcomes:
        run = self.ended_run(frame)
        if run is None:
            return
        table = self.configured_servers(run).get(run.words.name, {})
        if run.words.names and kind_of(table) != STDIO:
            return
        if run.web:
            request = run.web[0]
            yield unexpected_member(
                run.subject,
                (*run.frames, request),
                root_member(request, "web"),
                "no request to a server, since this one has no OAuth",
            )
            return
        printed_addresses = [
            output
            for output in printed_members(run)
            if any("response_type" in address for address in find_addresses(text(output.value)))
        ]
        if printed_addresses:
            expected = f"{printed_addresses[0].name}: no address to visit"
            yield unexpected_member(run.subject, run.frames, printed_addresses[0], expected)
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

    The specification calls it unsupported; that the user gets a message follows: SHOULD.
    """

    @listen(("ended", "login"))
    def on_login_ended(self, frame: Frame) -> Outcomes:
        run = self.ended_run(frame)
        if run is None or kind_of(self.configured_servers(run).get(run.words.name, {})) != STDIO:
            return
        if nonempty_lines(run.output):
            yield Witness(run.subject, run.frames)
            return
        expectations = [(output, "a line that says so") for output in printed_members(run)]
        yield several(run.subject, run.frames, expectations)
