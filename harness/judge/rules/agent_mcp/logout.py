"""Rules on `mcp logout`, and on the files that hold credentials."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Outcomes, Witness, listen, rule
from harness.judge.rules.agent_mcp.login import got_token
from harness.judge.rules.shared.mcp_runs import (
    HTTP,
    NAME,
    CommandRule,
    config_after,
    config_before,
    has_name,
    kind_of,
    nonempty_lines,
    printed_members,
)
from harness.judge.rules.shared.violations import (
    Member,
    root_member,
    several,
    unexpected_member,
    wrong,
)
from harness.judge.verdict import Level
from harness.protocol.values import arr, obj
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Run


def token_files(frame: Frame) -> list[Member]:
    """Return the files of the home that hold one of the issued tokens."""
    return [
        root_member(frame, "files", place)
        for place, one in enumerate(arr(obj(frame.json).get("files")))
        if arr(obj(one).get("holds"))
    ]


class LogoutRule(CommandRule):
    """Base of rules on `mcp logout` of a configured HTTP server; `stored`: it has credentials."""

    stored = True

    @listen(("ended", "logout"))
    def on_logout_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended_run(frame)
        if run is None or len(run.words.names) != 1 or not NAME.fullmatch(run.words.name):
            return None
        if kind_of(self.configured_servers(run).get(run.words.name, {})) != HTTP:
            return None
        return self.judge_logout(run) if self._logged_in(run) is self.stored else None

    def _logged_in(self, run: Run) -> bool:
        """Return whether the last run about its credentials was a successful login.

        A token that is still in a file was not removed, whatever ran since.
        """
        if token_files(run.request):
            return True
        auth_runs = [
            earlier_run
            for earlier_run in self.commands.runs_before(run)
            if earlier_run.words.name == run.words.name
            and earlier_run.words.subcommand in ("login", "logout")
        ]
        return (
            bool(auth_runs)
            and auth_runs[-1].words.subcommand == "login"
            and got_token(auth_runs[-1])
        )

    def judge_logout(self, run: Run) -> Outcomes:
        """Judge a run."""
        raise NotImplementedError


@rule(
    "mcp-logout.removes",
    title="After mcp logout no file of the home has the server's tokens",
    level=Level.MUST,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class Removes(LogoutRule):
    """Judges that no file of the agent's home has a token after a logout, if one had it before.

    Where credentials are stored is open: those stored elsewhere, or encoded in a file, cannot be
    seen.
    """

    def judge_logout(self, run: Run) -> Outcomes:
        if not token_files(run.request) or run.end is None:
            return
        files = token_files(run.end)
        if files:
            field = files[0].part("holds")
            yield wrong(run.subject, run.frames, field, "no token of the server")
        else:
            yield Witness(run.subject, run.frames)


@rule(
    "mcp-logout.says-removed",
    title="mcp logout prints a line when it has removed credentials",
    level=Level.MUST,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class SaysRemoved(LogoutRule):
    """Judges that something is printed for a server that was logged in to.

    Left open: the words, the stream, the exit status, and whether the server is named.
    """

    def judge_logout(self, run: Run) -> Outcomes:
        if nonempty_lines(run.output):
            yield Witness(run.subject, run.frames)
            return
        expectations = [(output, "a line that says so") for output in printed_members(run)]
        yield several(run.subject, run.frames, expectations)


@rule(
    "mcp-logout.says-none",
    title="mcp logout without stored credentials prints a line that names the server",
    level=Level.MUST,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class SaysNone(LogoutRule):
    """Judges that a line names the server, for a configured HTTP server without credentials.

    Left open: the words around the name, the stream, the exit status.
    """

    stored = False

    def judge_logout(self, run: Run) -> Outcomes:
        if any(has_name(line, run.words.name) for line in nonempty_lines(run.output)):
            yield Witness(run.subject, run.frames)
            return
        expected = f"a line that says that {run.words.name} has none"
        expectations = [(output, expected) for output in printed_members(run)]
        yield several(run.subject, run.frames, expectations)


@rule(
    "mcp-logout.tells-apart",
    title="mcp logout does not say that it removed credentials where there were none",
    level=Level.MUST,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class TellsApart(LogoutRule):
    """Judges a logout without stored credentials against an earlier one with credentials.

    One prints that they were removed, the other that there are none: the outputs differ, whatever
    the words.
    """

    stored = False

    def judge_logout(self, run: Run) -> Outcomes:
        earlier = [
            earlier_run
            for earlier_run in self.commands.runs_before(run)
            if earlier_run.words.subcommand == "logout" and earlier_run.words.name == run.words.name
        ]
        other = earlier[0] if earlier else None
        if other is None or not self._logged_in(other):
            return
        if nonempty_lines(other.output) != nonempty_lines(run.output):
            yield Witness(run.subject, (*other.frames, *run.frames))
            return
        field = next((output for output in printed_members(run) if output.value), None)
        if field is not None:
            expected = f"{field.name}: something else than {other.subject} printed"
            yield unexpected_member(run.subject, (*other.frames, *run.frames), field, expected)


@rule(
    "mcp-logout.keeps-server",
    title="mcp logout leaves the server configured",
    level=Level.SHOULD,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class KeepsServer(CommandRule):
    """Judges that a configured server is still in config.toml after `mcp logout`.

    Logout removes credentials, as remove removes the server: SHOULD. Left open: how the table looks
    afterwards.
    """

    @listen(("ended", "logout"))
    def on_logout_ended(self, frame: Frame) -> Outcomes:
        run = self.ended_run(frame)
        if run is None or run.words.name not in config_before(run).servers:
            return
        if run.words.name in config_after(run).servers:
            yield Witness(run.subject, run.frames)
        else:
            expected = f"the server {run.words.name} is still there"
            yield wrong(run.subject, run.frames, config_after(run).field, expected)


@rule(
    "mcp-credentials.private",
    title="A file with tokens is readable by its owner alone",
    level=Level.INFO,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class Private(CommandRule):
    """Judges that only its owner may read a file of the home that holds a token after a login.

    The specification does not mention it; this is the project's choice. Not judged on systems
    without file modes.
    """

    @listen(("ended", "login"))
    def on_login_ended(self, frame: Frame) -> Outcomes:
        run = self.ended_run(frame)
        for file in token_files(frame) if run is not None else ():
            mode = str(obj(file.value).get("mode") or "")
            if run is None or not mode:
                continue
            if mode.endswith("00"):
                yield Witness(run.subject, run.frames)
            else:
                field = file.part("mode")
                yield wrong(run.subject, run.frames, field, "no right for group and others")
