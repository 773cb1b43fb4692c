"""The tool `exec_command`: commands as commandExecution items.

Source: session-protocol "Approval sequence", "ThreadItem" (commandExecution), "Enumerations". A
failed or stopped command gives an output for the model and never ends the turn.
"""

import os
import shlex
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio

from harness.protocol.wire.item import DeclinableStatus
from harness.protocol.wire.settings import ReadOnly
from reference_server.engine.approvals import CommandAnswer, Decision
from reference_server.engine.calls import CallError, ToolCall
from reference_server.engine.policy import (
    TRUSTING_POLICIES,
    Ruling,
    ruling_on_command,
    ruling_on_denial,
)
from reference_server.engine.tools.base import ToolContext
from reference_server.engine.tools.execution import Execution, PreparedCommand
from reference_server.engine.tools.patch import PatchTool
from reference_server.engine.tools.tool_definitions import EXEC_COMMAND
from reference_server.engine.work_items import CommandWork
from reference_server.limits import LimitExceeded, check_path
from reference_server.patch.heredoc import heredoc_patch
from reference_server.sandbox.actions import actions_of
from reference_server.sandbox.probe import SandboxUnavailable
from reference_server.sandbox.process import Finished
from reference_server.sandbox.shell_syntax import MAX_WORD_BYTES, is_too_long

Fields = dict[str, Any]
V = TypeVar("V", str, bool)

SHOWN_CHARACTERS = 20_000
"""Characters of a command's output that the model gets from its beginning, and from its end."""
MAX_TIMEOUT_MS = 1e15
"""Upper bound of time limits; a larger number is a mistake, and may not fit a float."""
DECLINED = "rejected by user"
OUTSIDE = "To run outside the sandbox"
SHORTER = "no system runs that: write it to a script with apply_patch, and run the script"
ASK_AGAIN = "It failed, it seems because of the sandbox. Run it again, outside the sandbox?"
REFUSED = "not run: the approval policy allows no one to be asked about it"


@dataclass(frozen=True, slots=True)
class ShellCall:
    """Arguments of a call. `timeout` is in seconds; `cwd` is absolute."""

    command: str
    cwd: str
    tty: bool
    timeout: float | None
    is_escalated: bool
    reason: str | None

    @classmethod
    def read(cls, call: ToolCall, cwd: str) -> "ShellCall":
        """Parse the arguments, `workdir` relative to `cwd`. Raises CallError for an invalid one."""
        arguments = call.arguments()
        command: Any = arguments.get("cmd")
        if not isinstance(command, str) or not command.strip():
            raise CallError("exec_command: `cmd` must be a command line")
        workdir = _value(arguments, "workdir", str) or ""
        try:
            check_path(workdir)
        except LimitExceeded as error:
            raise CallError(f"exec_command: `workdir`: {error}") from None
        return cls(
            command=command,
            cwd=os.path.normpath(os.path.join(cwd, workdir)),
            tty=bool(_value(arguments, "tty", bool)),
            timeout=_timeout_seconds(arguments),
            is_escalated=_value(arguments, "sandbox_permissions", str) == "require_escalated",
            reason=_value(arguments, "justification", str),
        )

    @property
    def question(self) -> str | None:
        """The reason shown to the client: the model's, and that it is to run outside, if so."""
        if not self.is_escalated:
            return self.reason
        return OUTSIDE + (f": {self.reason}" if self.reason else "")

    @property
    def argv(self) -> tuple[str, ...]:
        """The argv of the process."""
        return ("bash", "-c", self.command)


class ShellTool:
    """Tool that runs command lines."""

    name = EXEC_COMMAND

    def __init__(self, execution: Execution, patches: PatchTool) -> None:
        self._execution = execution
        self._patches = patches

    async def run(self, call: ToolCall, context: ToolContext) -> str:
        """Run a command, or apply the patch that it holds, and return the text for the model.

        For a command that is its exit code and output, or why it was not run. Raises CallError,
        OSError.
        """
        shell_call = ShellCall.read(call, context.settings.cwd)
        if patch := heredoc_patch(shell_call.command):
            text, folder = patch
            return await self._patches.apply(
                text, os.path.join(shell_call.cwd, folder or ""), context
            )
        if is_too_long(shell_call.command):
            raise CallError(f"exec_command: `cmd` is longer than {MAX_WORD_BYTES} bytes; {SHORTER}")
        work = CommandWork(
            context.log, shlex.join(shell_call.argv), shell_call.cwd, actions_of(shell_call.argv)
        )
        return await _CommandRun(self._execution, context, shell_call, work).carry_out()


class _CommandRun:
    """One command, from its started item to its completed one."""

    def __init__(
        self, execution: Execution, context: ToolContext, shell_call: ShellCall, work: CommandWork
    ) -> None:
        self._execution = execution
        self._context = context
        self._call = shell_call
        self._work = work
        self._by_trust = False
        self._is_accepted = False
        """True if the client has accepted this command with its reason, now or for the session."""

    async def carry_out(self) -> str:
        """Ask if needed, run, and return the output; a cancelled run completes the item."""
        shell_call, settings = self._call, self._context.settings
        standing = self._execution.rule_coverage(shell_call.argv, shell_call.cwd, settings.cwd)
        network = standing.network and not shell_call.is_escalated
        ruling = ruling_on_command(
            settings.approval_policy,
            allowed=standing.is_allowed,
            trusted=standing.is_trusted,
            escalated=shell_call.is_escalated,
        )
        match ruling:
            case Ruling.RUN:
                self._by_trust = (
                    settings.approval_policy in TRUSTING_POLICIES and not standing.is_allowed
                )
                return await self._run(outside=False, network=network)
            case Ruling.ASK:
                if self._was_accepted(outside=shell_call.is_escalated):
                    self._is_accepted = self._context.thread.consents.has_question(
                        settings.sandbox, shell_call.argv, shell_call.cwd, shell_call.question
                    )
                    return await self._run(outside=shell_call.is_escalated, network=network)
                answer = await self._ask(shell_call.question, outside=shell_call.is_escalated)
                if answer.decision is not Decision.ACCEPT:
                    return self._decline(answer.decision)
                self._is_accepted = True
                return await self._run(
                    outside=shell_call.is_escalated, network=answer.network or network
                )
            case Ruling.DECLINE | Ruling.FAIL:
                self._work.complete("declined")
                return REFUSED

    def _was_accepted(self, *, outside: bool) -> bool:
        """Return whether the client has accepted the same command for the session."""
        shell_call = self._call
        return self._context.thread.consents.has_command(
            self._context.settings.sandbox, shell_call.argv, shell_call.cwd, outside=outside
        )

    async def _ask(self, reason: str | None, *, outside: bool) -> CommandAnswer:
        shell_call = self._call
        try:
            answer = await self._context.approvals.ask_about_command(
                self._work.item, shell_call.argv, reason
            )
            if answer.keep_rule:
                await self._execution.keep_rule(shell_call.argv, shell_call.cwd, answer)
        except anyio.get_cancelled_exc_class():
            self._work.complete("declined")
            raise
        # A lasting rule never lets a command run outside the sandbox, so the command is accepted
        # for the session instead.
        if answer.for_session or (answer.keep_rule and outside):
            self._context.thread.consents.accept_command(
                self._context.settings.sandbox,
                shell_call.argv,
                shell_call.cwd,
                outside=outside,
                reason=reason,
            )
        return answer

    async def _run(self, *, outside: bool, network: bool = False) -> str:
        prepared = await self._prepare(outside=outside, network=network)
        finished = await self._execute(prepared)
        ruling = self._ruling_on_denial()
        # If the client is not asked again, a hidden file, such as a secret of the user, is no
        # reason for a second run: the earlier approval was not about that file.
        asks = ruling is Ruling.ASK
        if not prepared.was_denied(finished, forbidden_files=asks):
            ruling = Ruling.FAIL
        if ruling is not Ruling.FAIL:
            self._work.add_earlier_output(finished.output)
            if ruling is Ruling.ASK and not self._was_accepted(outside=True):
                answer = await self._ask(ASK_AGAIN, outside=True)
                if answer.decision is not Decision.ACCEPT:
                    return self._decline(answer.decision)
            prepared = await self._prepare(outside=True, network=True)
            finished = await self._execute(prepared)
        return self._finish(finished, prepared)

    def _ruling_on_denial(self) -> Ruling:
        # If commands may write, an earlier one could have changed the effect of this one since the
        # client accepted it.
        settings = self._context.settings
        accepted = self._is_accepted and isinstance(settings.sandbox, ReadOnly)
        return ruling_on_denial(settings.approval_policy, accepted=accepted)

    async def _prepare(self, *, outside: bool, network: bool) -> PreparedCommand:
        """Prepare the command in its sandbox. Raises CallError, after completing the item."""
        shell_call = self._call
        try:
            return await self._execution.prepare(
                shell_call.argv,
                shell_call.cwd,
                self._context.settings,
                tty=shell_call.tty,
                timeout=shell_call.timeout,
                outside=outside,
                network=network,
                by_trust=self._by_trust,
            )
        except SandboxUnavailable as error:
            self._work.complete("failed", output=str(error))
            raise CallError(f"failed: not run: {error}") from None
        except anyio.get_cancelled_exc_class():
            self._work.complete("failed")
            raise

    async def _execute(self, prepared: PreparedCommand) -> Finished:
        """Run the command to its end; if cancelled, end all its processes and complete the item."""
        try:
            return await prepared.process.run(self._work.output)
        except BaseException:
            if finished := prepared.process.finished:
                self._complete("failed", finished, prepared)
            else:
                self._work.complete("failed")
            raise

    def _decline(self, decision: Decision) -> str:
        self._work.complete("declined")
        if decision is Decision.CANCEL:
            self._context.interrupt()
        return DECLINED

    def _finish(self, finished: Finished, prepared: PreparedCommand) -> str:
        self._complete("completed" if finished.exit_code == 0 else "failed", finished, prepared)
        if failure := finished.failure or prepared.sandbox_failure(finished):
            return f"failed: not run: {failure}"
        return _model_output(finished)

    def _complete(
        self, status: DeclinableStatus, finished: Finished, prepared: PreparedCommand
    ) -> None:
        running = prepared.process
        self._work.complete(
            status,
            output=finished.output or finished.failure or "",
            exit_code=finished.exit_code,
            duration_ms=finished.duration_ms,
            process_id=str(running.pid) if self._call.tty and running.pid else None,
        )


def _model_output(finished: Finished) -> str:
    """Return the output for the model: exit code, a note if it timed out, shortened output."""
    head = [f"Exit code: {finished.exit_code}"]
    if finished.timed_out:
        head.append("The command took too long and was ended.")
    return "\n".join([*head, "Output:", _shorten(finished.output)])


def _shorten(output: str) -> str:
    """Return an output for the model, without the middle of a long one; clients have all of it."""
    cut = len(output) - 2 * SHOWN_CHARACTERS
    if cut <= 0:
        return output
    return (
        f"{output[:SHOWN_CHARACTERS]}\n[... {cut} characters cut ...]\n{output[-SHOWN_CHARACTERS:]}"
    )


def _value(arguments: Fields, name: str, kind: type[V]) -> V | None:
    value = arguments.get(name)
    if value is None or (
        isinstance(value, kind) and not (kind is not bool and isinstance(value, bool))
    ):
        return value
    raise CallError(f"exec_command: `{name}` must be a {kind.__name__}")


def _timeout_seconds(arguments: Fields) -> float | None:
    value = arguments.get("timeout_ms")
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 < value < MAX_TIMEOUT_MS
    ):
        raise CallError("exec_command: `timeout_ms` must be a positive number")
    return value / 1000
