"""Rules on `mcp remove`: the server is gone, and the command says so."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Outcomes, Witness, listen, rule
from harness.judge.rules.shared.mcp_runs import (
    NAME,
    CommandRule,
    config_after,
    config_before,
    has_name,
    nonempty_lines,
    printed_members,
)
from harness.judge.rules.shared.violations import root_member, several, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Run


class RemovalRule(CommandRule):
    """Base of rules on `mcp remove` of one name, a configured one or not."""

    is_configured = True

    @listen(("ended", "remove"))
    def on_remove_ended(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended_run(frame)
        if run is None or len(run.words.names) != 1 or config_before(run).data is None:
            return None
        if not NAME.fullmatch(run.words.name) or run.words.options:
            return None
        servers = self.configured_servers(run) if self.is_configured else config_before(run).servers
        if (run.words.name in servers) is not self.is_configured:
            return None
        return self.judge_removal(run)

    def judge_removal(self, run: Run) -> Outcomes:
        """Judge a run."""
        raise NotImplementedError


@rule(
    "mcp-remove.removes",
    title="A removed server is no longer in config.toml",
    level=Level.MUST,
    surface="command",
)
class Removes(RemovalRule):
    """Judges config.toml after `mcp remove` of a configured server: TOML without its table.

    Left open: other changes of the file, and credentials.
    """

    def judge_removal(self, run: Run) -> Outcomes:
        config = config_after(run)
        if config.data is not None and run.words.name not in config.servers:
            yield Witness(run.subject, run.frames)
            return
        expected = f"TOML without a table mcp_servers.{run.words.name}"
        also = (root_member(run.request, "argv"),)
        yield wrong(run.subject, run.frames, config.field, expected, also=also)


@rule(
    "mcp-remove.says-removed",
    title="mcp remove says that it removed the server",
    level=Level.MUST,
    surface="command",
)
class SaysRemoved(RemovalRule):
    """Judges that something is printed when a configured server is removed.

    Left open: the words and the stream. A line that neither names the server nor says "removed" is
    SHOULD.
    """

    def judge_removal(self, run: Run) -> Outcomes:
        lines = nonempty_lines(run.output)
        if any(has_name(line, run.words.name) or "remov" in line.lower() for line in lines):
            yield Witness(run.subject, run.frames)
            return
        expectations = [
            (output, "a line that says that it was removed") for output in printed_members(run)
        ]
        level = Level.SHOULD if lines else None
        yield several(run.subject, run.frames, expectations, level=level)


@rule(
    "mcp-remove.says-unknown",
    title="mcp remove of an unknown name prints a line that names it",
    level=Level.MUST,
    surface="command",
)
class SaysUnknown(RemovalRule):
    """Judges that a line names the server if no server of that name is configured.

    Left open: the words around the name, the stream, and the exit status.
    """

    is_configured = False

    def judge_removal(self, run: Run) -> Outcomes:
        if any(has_name(line, run.words.name) for line in nonempty_lines(run.output)):
            yield Witness(run.subject, run.frames)
            return
        name = run.words.name
        expectations = [
            (output, f"a line that says that {name} does not exist")
            for output in printed_members(run)
        ]
        yield several(run.subject, run.frames, expectations)


@rule(
    "mcp-remove.tells-apart",
    title="mcp remove does not say of an unknown server that it was removed",
    level=Level.MUST,
    surface="command",
)
class TellsApart(RemovalRule):
    """Judges a removal of an unknown name against an earlier one of a configured server.

    One prints that the server was removed, the other that it does not exist: the outputs differ,
    whatever the words and the names.
    """

    is_configured = False

    def judge_removal(self, run: Run) -> Outcomes:
        for other in self.commands.runs_before(run):
            words = other.words
            was_removed = (
                words.name in config_before(other).servers
                and words.name not in config_after(other).servers
            )
            if words.subcommand != "remove" or not was_removed or not other.ran_alone:
                continue
            if _anonymous_lines(other) != _anonymous_lines(run):
                yield Witness(run.subject, (*other.frames, *run.frames))
                continue
            field = next((output for output in printed_members(run) if output.value), None)
            if field is None:
                continue
            expected = f"{field.name}: something else than {other.subject} printed"
            yield unexpected_member(run.subject, (*other.frames, *run.frames), field, expected)


def _anonymous_lines(run: Run) -> list[str]:
    return [line.replace(run.words.name, "NAME") for line in nonempty_lines(run.output)]
