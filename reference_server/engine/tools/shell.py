"""The tool `exec_command`: commands as commandExecution items.

Source: session-protocol "Approval sequence", "ThreadItem" (commandExecution), "Enumerations". A
command that fails or is stopped is an output for the model; it never ends the turn.
"""

import os
import shlex
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio

from harness.protocol.wire.item import DeclinableStatus
from reference_server.engine.approvals import CommandAnswer, Decision
from reference_server.engine.calls import CallError, ToolCall
from reference_server.engine.policy import (
    TRUSTING_POLICIES,
    Ruling,
    ruling_on_command,
    ruling_on_denial,
)
from reference_server.engine.tools.base import ToolContext
from reference_server.engine.tools.execution import Execution, Prepared
from reference_server.engine.tools.offered import EXEC_COMMAND
from reference_server.engine.tools.patch import PatchTool
from reference_server.engine.work_items import CommandWork
from reference_server.limits import LimitExceeded, check_path
from reference_server.patch.heredoc import heredoc_patch
from reference_server.sandbox.actions import actions_of
from reference_server.sandbox.probe import SandboxUnavailable
from reference_server.sandbox.process import Finished
from reference_server.sandbox.shell_syntax import MAX_WORD_BYTES, too_long

Fields = dict[str, Any]
V = TypeVar("V", str, bool)

SHOWN = 20_000
"""Characters from the beginning, and as many from the end, of a command's output for the model."""
MAX_TIMEOUT_MS = 1e15
"""Milliseconds of the longest time limit; a larger number is a mistake, and may fit no float."""
DECLINED = "rejected by user"
OUTSIDE = "To run outside the sandbox"
SHORTER = "no system runs that: write it to a script with apply_patch, and run the script"
ASK_AGAIN = "It failed, it seems because of the sandbox. Run it again, outside the sandbox?"
REFUSED = "not run: the approval policy allows no one to be asked about it"


@dataclass(frozen=True, slots=True)
class ShellCall:
    """The arguments. `timeout` is in seconds; `cwd` is absolute."""

    command: str
    cwd: str
    tty: bool
    timeout: float | None
    escalated: bool
    reason: str | None

    @classmethod
    def read(cls, call: ToolCall, cwd: str) -> "ShellCall":
        """Check the arguments of a call. Raises CallError."""
        given = call.arguments()
        command: Any = given.get("cmd")
        if not isinstance(command, str) or not command.strip():
            raise CallError("exec_command: `cmd` must be a command line")
        workdir = _value(given, "workdir", str) or ""
        try:
            check_path(workdir)
        except LimitExceeded as error:
            raise CallError(f"exec_command: `workdir`: {error}") from None
        return cls(
            command=command,
            cwd=os.path.normpath(os.path.join(cwd, workdir)),
            tty=bool(_value(given, "tty", bool)),
            timeout=_seconds(given),
            escalated=_value(given, "sandbox_permissions", str) == "require_escalated",
            reason=_value(given, "justification", str),
        )

    @property
    def question(self) -> str | None:
        """The reason that the client is shown: the model's, and whether it is to run outside."""
        if not self.escalated:
            return self.reason
        return OUTSIDE + (f": {self.reason}" if self.reason else "")

    @property
    def argv(self) -> tuple[str, ...]:
        """The words of the process."""
        return ("bash", "-c", self.command)


class ShellTool:
    """Runs command lines."""

    name = EXEC_COMMAND

    def __init__(self, execution: Execution, patches: PatchTool) -> None:
        self._execution = execution
        self._patches = patches

    async def run(self, call: ToolCall, context: ToolContext) -> str:
        """Carry a call out and return its exit code and output. Raises CallError, OSError."""
        wanted = ShellCall.read(call, context.settings.cwd)
        if found := heredoc_patch(wanted.command):
            text, folder = found
            return await self._patches.apply(text, os.path.join(wanted.cwd, folder or ""), context)
        if too_long(wanted.command):
            raise CallError(f"exec_command: `cmd` is longer than {MAX_WORD_BYTES} bytes; {SHORTER}")
        work = CommandWork(
            context.log, shlex.join(wanted.argv), wanted.cwd, actions_of(wanted.argv)
        )
        return await _CommandRun(self._execution, context, wanted, work).carry_out()


class _CommandRun:
    """One command, from its started item to its completed one."""

    def __init__(
        self, execution: Execution, context: ToolContext, wanted: ShellCall, work: CommandWork
    ) -> None:
        self._execution = execution
        self._context = context
        self._wanted = wanted
        self._work = work
        self._by_trust = False

    async def carry_out(self) -> str:
        """Return the output for the model. When cancelled, the item is completed first."""
        wanted, settings = self._wanted, self._context.settings
        standing = self._execution.standing(wanted.argv, wanted.cwd, settings.cwd)
        network = standing.network and not wanted.escalated
        ruling = ruling_on_command(
            settings.approval_policy,
            allowed=standing.allowed,
            trusted=standing.trusted,
            escalated=wanted.escalated,
        )
        match ruling:
            case Ruling.RUN:
                self._by_trust = (
                    settings.approval_policy in TRUSTING_POLICIES and not standing.allowed
                )
                return await self._run(outside=False, network=network)
            case Ruling.ASK:
                if self._was_accepted(outside=wanted.escalated):
                    return await self._run(outside=wanted.escalated, network=network)
                answer = await self._ask(wanted.question, outside=wanted.escalated)
                if answer.decision is not Decision.ACCEPT:
                    return self._denied(answer.decision)
                return await self._run(outside=wanted.escalated, network=answer.network or network)
            case Ruling.DECLINE | Ruling.FAIL:
                self._work.complete("declined")
                return REFUSED

    def _was_accepted(self, *, outside: bool) -> bool:
        """Return whether the client has accepted the same command for the session."""
        wanted = self._wanted
        return self._context.thread.consents.has_command(
            self._context.settings.sandbox, wanted.argv, wanted.cwd, outside=outside
        )

    async def _ask(self, reason: str | None, *, outside: bool) -> CommandAnswer:
        wanted = self._wanted
        try:
            answer = await self._context.approvals.ask_about_command(
                self._work.item, wanted.argv, reason
            )
            if answer.keep_rule:
                await self._execution.keep_rule(wanted.argv, wanted.cwd, answer)
        except anyio.get_cancelled_exc_class():
            self._work.complete("declined")
            raise
        # A lasting rule never lets a command run outside the sandbox: so it is accepted for the
        # session.
        if answer.for_session or (answer.keep_rule and outside):
            self._context.thread.consents.accept_command(
                self._context.settings.sandbox, wanted.argv, wanted.cwd, outside=outside
            )
        return answer

    async def _run(self, *, outside: bool, network: bool = False) -> str:
        prepared = await self._prepare(outside=outside, network=network)
        finished = await self._execute(prepared)
        policy = self._context.settings.approval_policy
        if prepared.was_denied(finished) and ruling_on_denial(policy) is Ruling.ASK:
            self._work.runs_again(finished.output)
            if not self._was_accepted(outside=True):
                answer = await self._ask(ASK_AGAIN, outside=True)
                if answer.decision is not Decision.ACCEPT:
                    return self._denied(answer.decision)
            prepared = await self._prepare(outside=True, network=True)
            finished = await self._execute(prepared)
        return self._finish(finished, prepared)

    async def _prepare(self, *, outside: bool, network: bool) -> Prepared:
        """Put the command into its sandbox. Raises CallError if that fails; the item fails too."""
        wanted = self._wanted
        try:
            return await self._execution.prepare(
                wanted.argv,
                wanted.cwd,
                self._context.settings,
                tty=wanted.tty,
                timeout=wanted.timeout,
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

    async def _execute(self, prepared: Prepared) -> Finished:
        """Run the command to its end; when cancelled, all its processes are ended first."""
        try:
            return await prepared.running.run(self._work.output)
        except BaseException:
            if finished := prepared.running.finished:
                self._complete("failed", finished, prepared)
            else:
                self._work.complete("failed")
            raise

    def _denied(self, decision: Decision) -> str:
        self._work.complete("declined")
        if decision is Decision.CANCEL:
            self._context.interrupt()
        return DECLINED

    def _finish(self, finished: Finished, prepared: Prepared) -> str:
        self._complete("completed" if finished.exit_code == 0 else "failed", finished, prepared)
        if failure := finished.failure or prepared.never_ran(finished):
            return f"failed: not run: {failure}"
        return _told(finished)

    def _complete(self, status: DeclinableStatus, finished: Finished, prepared: Prepared) -> None:
        running = prepared.running
        self._work.complete(
            status,
            output=finished.output or finished.failure or "",
            exit_code=finished.exit_code,
            duration_ms=finished.duration_ms,
            process_id=str(running.pid) if self._wanted.tty and running.pid else None,
        )


def _told(finished: Finished) -> str:
    """Return the output for the model: exit code, whether it took too long, what was written."""
    head = [f"Exit code: {finished.exit_code}"]
    if finished.timed_out:
        head.append("The command took too long and was ended.")
    return "\n".join([*head, "Output:", _shortened(finished.output)])


def _shortened(output: str) -> str:
    """Leave out the middle of a long output, which the client has as a whole."""
    cut = len(output) - 2 * SHOWN
    if cut <= 0:
        return output
    return f"{output[:SHOWN]}\n[... {cut} characters cut ...]\n{output[-SHOWN:]}"


def _value(given: Fields, name: str, kind: type[V]) -> V | None:
    value = given.get(name)
    if value is None or (
        isinstance(value, kind) and not (kind is not bool and isinstance(value, bool))
    ):
        return value
    raise CallError(f"exec_command: `{name}` must be a {kind.__name__}")


def _seconds(given: Fields) -> float | None:
    value = given.get("timeout_ms")
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 < value < MAX_TIMEOUT_MS
    ):
        raise CallError("exec_command: `timeout_ms` must be a positive number")
    return value / 1000
