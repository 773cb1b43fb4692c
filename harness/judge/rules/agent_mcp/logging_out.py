"""Rules on `mcp logout`, and on the files in which credentials are kept."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Outcomes, Witness, listen, rule
from harness.judge.rules.agent_mcp.logging_in import finished
from harness.judge.rules.shared.mcp_runs import (
    HTTP,
    NAME,
    CommandRule,
    after,
    before,
    kind_of,
    lines_of,
    names,
    printed_members,
)
from harness.judge.rules.shared.violations import Member, instead, several, whole, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, obj
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Run


def holders(frame: Frame) -> list[Member]:
    """The files of the home that hold one of the tokens that were issued."""
    return [
        whole(frame, "files", place)
        for place, one in enumerate(arr(obj(frame.json).get("files")))
        if arr(obj(one).get("holds"))
    ]


class LoggingOut(CommandRule):
    """Judges `mcp logout` of a configured HTTP server, logged in to or not as `stored` says."""

    stored = True

    @listen(("ended", "logout"))
    def on_logout_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended(frame)
        if run is None or len(run.words.names) != 1 or not NAME.fullmatch(run.words.name):
            return None
        if kind_of(self.configured(run).get(run.words.name, {})) != HTTP:
            return None
        return self.judged(run) if self._logged_in(run) is self.stored else None

    def _logged_in(self, run: Run) -> bool:
        """Return whether the last run about its credentials was a login that ended well.

        A token that is still in a file was not removed, whatever ran since.
        """
        if holders(run.asked):
            return True
        of_it = [
            one
            for one in self.commands.before(run)
            if one.words.name == run.words.name and one.words.subcommand in ("login", "logout")
        ]
        return bool(of_it) and of_it[-1].words.subcommand == "login" and finished(of_it[-1])

    def judged(self, run: Run) -> Outcomes:
        """Judge that run."""
        raise NotImplementedError


@rule(
    "mcp-logout.removes",
    title="After mcp logout no file of the home has the server's tokens",
    level=Level.MUST,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class Removes(LoggingOut):
    """Judges the files of the agent's home where they held a token before.

    Where credentials are kept is open: what is kept elsewhere, or hidden in a file, cannot be seen.
    """

    def judged(self, run: Run) -> Outcomes:
        if not holders(run.asked) or run.ended is None:
            return
        left = holders(run.ended)
        if left:
            where = left[0].part("holds")
            yield wrong(run.subject, run.frames, where, "no token of the server")
        else:
            yield Witness(run.subject, run.frames)


@rule(
    "mcp-logout.says-removed",
    title="mcp logout prints a line when it has removed credentials",
    level=Level.MUST,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class SaysRemoved(LoggingOut):
    """Judges that something is printed for a server that was logged in to.

    Left open: the words, the stream, the exit status, and whether the server is named.
    """

    def judged(self, run: Run) -> Outcomes:
        if lines_of(run.printed):
            yield Witness(run.subject, run.frames)
            return
        told = [(one, "a line that says so") for one in printed_members(run)]
        yield several(run.subject, run.frames, told)


@rule(
    "mcp-logout.says-none",
    title="mcp logout without stored credentials prints a line that names the server",
    level=Level.MUST,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class SaysNone(LoggingOut):
    """Judges what is printed for a configured HTTP server that nobody has logged in to.

    Left open: the words around the name, the stream, the exit status.
    """

    stored = False

    def judged(self, run: Run) -> Outcomes:
        if any(names(line, run.words.name) for line in lines_of(run.printed)):
            yield Witness(run.subject, run.frames)
            return
        expected = f"a line that says that there are none of {run.words.name}"
        told = [(one, expected) for one in printed_members(run)]
        yield several(run.subject, run.frames, told)


@rule(
    "mcp-logout.tells-apart",
    title="mcp logout does not say that it removed credentials where there were none",
    level=Level.MUST,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class TellsApart(LoggingOut):
    """Judges a logout with nothing stored against an earlier one of the same server with something.

    One prints that they were removed, the other that there are none: the two say different things,
    whatever the words.
    """

    stored = False

    def judged(self, run: Run) -> Outcomes:
        earlier = [
            one
            for one in self.commands.before(run)
            if one.words.subcommand == "logout" and one.words.name == run.words.name
        ]
        other = earlier[0] if earlier else None
        if other is None or not self._logged_in(other):
            return
        if lines_of(other.printed) != lines_of(run.printed):
            yield Witness(run.subject, (*other.frames, *run.frames))
            return
        where = next((one for one in printed_members(run) if one.value), None)
        if where is not None:
            expected = f"{where.name}: something else than {other.subject} printed"
            yield instead(run.subject, (*other.frames, *run.frames), where, expected)


@rule(
    "mcp-logout.keeps-server",
    title="mcp logout leaves the server configured",
    level=Level.SHOULD,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class KeepsServer(CommandRule):
    """Judges config.toml after `mcp logout` of a configured server.

    It removes credentials, as remove removes the server: SHOULD. Left open: how the table looks
    afterwards.
    """

    @listen(("ended", "logout"))
    def on_logout_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended(frame)
        if run is None or run.words.name not in before(run).servers:
            return
        if run.words.name in after(run).servers:
            yield Witness(run.subject, run.frames)
        else:
            expected = f"the server {run.words.name} is still there"
            yield wrong(run.subject, run.frames, after(run).where, expected)


@rule(
    "mcp-credentials.private",
    title="A file with tokens is readable by its owner alone",
    level=Level.INFO,
    needs=("mcp-command", "mcp-login"),
    surface="command",
)
class Private(CommandRule):
    """Judges the mode of each file of the home that holds a token after a login.

    The text does not speak of it: our choice. Not judged where there are no such modes.
    """

    @listen(("ended", "login"))
    def on_login_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended(frame)
        for file in holders(frame) if run is not None else ():
            mode = str(obj(file.value).get("mode") or "")
            if run is None or not mode:
                continue
            if mode.endswith("00"):
                yield Witness(run.subject, run.frames)
            else:
                where = file.part("mode")
                yield wrong(run.subject, run.frames, where, "no right for group and others")
