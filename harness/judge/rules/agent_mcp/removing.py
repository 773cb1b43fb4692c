"""Rules on `mcp remove`: the server is gone, and what is said."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Outcomes, Witness, listen, rule
from harness.judge.rules.shared.mcp_runs import (
    NAME,
    CommandRule,
    after,
    before,
    lines_of,
    names,
    printed_members,
)
from harness.judge.rules.shared.violations import instead, several, whole, wrong
from harness.judge.verdict import Level
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Run


class Removing(CommandRule):
    """Judges `mcp remove` of one name; `known` says of which."""

    known = True

    @listen(("ended", "remove"))
    def on_remove_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended(frame)
        if run is None or len(run.words.names) != 1 or before(run).data is None:
            return None
        if not NAME.fullmatch(run.words.name) or run.words.options:
            return None
        there = self.configured(run) if self.known else before(run).servers
        if (run.words.name in there) is not self.known:
            return None
        return self.judged(run)

    def judged(self, run: Run) -> Outcomes:
        """Judge that run."""
        raise NotImplementedError


@rule(
    "mcp-remove.removes",
    title="A server that was removed is in config.toml no more",
    level=Level.MUST,
    surface="command",
)
class Removes(Removing):
    """Judges config.toml after `mcp remove` of a configured server: TOML without its table.

    Left open: what else of the file changes, and what becomes of credentials.
    """

    def judged(self, run: Run) -> Outcomes:
        config = after(run)
        if config.data is not None and run.words.name not in config.servers:
            yield Witness(run.subject, run.frames)
            return
        expected = f"TOML without a table mcp_servers.{run.words.name}"
        also = (whole(run.asked, "argv"),)
        yield wrong(run.subject, run.frames, config.where, expected, also=also)


@rule(
    "mcp-remove.says-removed",
    title="mcp remove says that it removed the server",
    level=Level.MUST,
    surface="command",
)
class SaysRemoved(Removing):
    """Judges that something is printed for a server that was there.

    In which words, and on which stream, is open; that the line names the server or says the word
    removed is what its reader expects: SHOULD.
    """

    def judged(self, run: Run) -> Outcomes:
        lines = lines_of(run.printed)
        if any(names(line, run.words.name) or "remov" in line.lower() for line in lines):
            yield Witness(run.subject, run.frames)
            return
        told = [(one, "a line that says that it was removed") for one in printed_members(run)]
        level = Level.SHOULD if lines else None
        yield several(run.subject, run.frames, told, level=level)


@rule(
    "mcp-remove.says-unknown",
    title="mcp remove of an unknown name prints a line that names it",
    level=Level.MUST,
    surface="command",
)
class SaysUnknown(Removing):
    """Judges what is printed for a name that is not configured.

    Left open: the words around the name, the stream, and the exit status.
    """

    known = False

    def judged(self, run: Run) -> Outcomes:
        if any(names(line, run.words.name) for line in lines_of(run.printed)):
            yield Witness(run.subject, run.frames)
            return
        name = run.words.name
        told = [(one, f"a line that says that there is no {name}") for one in printed_members(run)]
        yield several(run.subject, run.frames, told)


@rule(
    "mcp-remove.tells-apart",
    title="mcp remove does not say of an unknown server that it was removed",
    level=Level.MUST,
    surface="command",
)
class TellsApart(Removing):
    """Judges a removal of an unknown name against an earlier one of a server that was there.

    One prints that the server was removed, the other that none of that name exists: the two say
    different things, whatever the words and the names.
    """

    known = False

    def judged(self, run: Run) -> Outcomes:
        for other in self.commands.before(run):
            words = other.words
            there = words.name in before(other).servers and words.name not in after(other).servers
            if words.subcommand != "remove" or not there or not other.alone:
                continue
            if _said(other) != _said(run):
                yield Witness(run.subject, (*other.frames, *run.frames))
                continue
            where = next((one for one in printed_members(run) if one.value), None)
            if where is None:
                continue
            expected = f"{where.name}: something else than {other.subject} printed"
            yield instead(run.subject, (*other.frames, *run.frames), where, expected)


def _said(run: Run) -> list[str]:
    return [line.replace(run.words.name, "NAME") for line in lines_of(run.printed)]
