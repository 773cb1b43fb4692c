"""The tool `apply_patch`: changes of files as fileChange items.

`reference_server.patch` parses and applies patches. Source: session-protocol "Approval sequence",
"ThreadItem" (fileChange), "Events" (turn/diff/updated: "after every fileChange item").
"""

import os
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from harness.protocol.wire.item import DeclinableStatus, FileUpdateChange
from harness.protocol.wire.turn import TurnDiffUpdatedNotification
from reference_server.engine.approvals import Decision
from reference_server.engine.calls import CallError, ToolCall
from reference_server.engine.patch_journal import journal_of
from reference_server.engine.policy import Ruling, ruling_on_file_change
from reference_server.engine.tools.base import ToolContext
from reference_server.engine.tools.tool_definitions import APPLY_PATCH
from reference_server.engine.work_items import FileWork
from reference_server.limits import check_path
from reference_server.patch.apply import PartlyApplied, apply_plan
from reference_server.patch.diff import file_changes
from reference_server.patch.parse import PatchError, parse_patch
from reference_server.patch.plan import Plan, make_plan
from reference_server.sandbox.mounts import Plan as View
from reference_server.sandbox.mounts import Refused
from reference_server.sandbox.permissions import may_read
from reference_server.sandbox.places import is_inside, is_kernel_path
from reference_server.sandbox.sandbox import Sandbox

Fields = dict[str, Any]

DECLINED = "patch rejected by user"
PLANS_AT_ONCE = 4
"""Patches that are planned (their files read and compared) at the same time."""
REFUSED = "not applied: the approval policy allows no one to be asked about it"


class PatchTool:
    """Tool that applies patches; `apply` is also used for those in a command line's heredoc."""

    name = APPLY_PATCH

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        # A separate limiter: an abandoned plan must not take a worker thread from other work.
        self._planning = anyio.CapacityLimiter(PLANS_AT_ONCE)

    async def run(self, call: ToolCall, context: ToolContext) -> str:
        """Carry out a call; a function_call has the patch as `input`. Raises CallError, OSError."""
        text: Any = call.text
        if call.kind == "function_call":
            text = call.arguments().get("input")
        if not isinstance(text, str):
            raise CallError("apply_patch: `input` must be a patch")
        return await self.apply(text, context.settings.cwd, context)

    async def apply(self, text: str, cwd: str, context: ToolContext) -> str:
        """Apply a patch, with paths relative to `cwd`, after the approval that the policy demands.

        Return the output for the model. Raises CallError for a wrong patch, OSError.
        """
        settings = context.settings
        try:
            check_path(cwd)
            view = self._sandbox.view(settings.sandbox, workspace=settings.cwd)
            # Planning only reads, so an interrupt need not wait for it.
            plan, changes = await to_thread.run_sync(
                _plan_patch, text, cwd, view, abandon_on_cancel=True, limiter=self._planning
            )
        except (PatchError, Refused, ValueError) as error:
            raise CallError(f"apply_patch verification failed: {error}") from None
        return await _PatchRun(context, plan, changes, view).carry_out()


def _plan_patch(text: str, cwd: str, view: View | None) -> tuple[Plan, list[FileUpdateChange]]:
    plan = make_plan(parse_patch(text), cwd, partial(_read_refusal, view))
    return plan, file_changes(plan)


class _PatchRun:
    """One patch, from its started item to its completed one."""

    def __init__(
        self, context: ToolContext, plan: Plan, changes: list[FileUpdateChange], view: View | None
    ) -> None:
        self._context = context
        self._plan = plan
        self._forbids = partial(_read_refusal, view)
        self._refusal = _write_refusal(plan, view)
        self._work = FileWork(context.log, changes)
        self._journal = journal_of(context.log, self._work.item)

    async def carry_out(self) -> str:
        """Ask if needed, apply, and return the output; a cancelled run completes the item."""
        settings, consents = self._context.settings, self._context.thread.consents
        match ruling_on_file_change(settings.approval_policy, inside=self._refusal is None):
            case Ruling.RUN:
                return await self._apply()
            case Ruling.ASK:
                if consents.has_files(settings.sandbox, self._plan.paths):
                    return await self._apply()
                return await self._ask(
                    self._refusal or _describe_redirects(self._plan, settings.cwd)
                )
            case Ruling.DECLINE:
                await self._complete("declined")
                return REFUSED
            case Ruling.FAIL:
                words = f"{self._refusal}: the sandbox does not allow it"
                self._work.output(words + "\n")
                await self._complete("failed")
                return f"failed: {words}"

    async def _ask(self, reason: str | None) -> str:
        context = self._context
        try:
            answer = await context.approvals.ask_about_files(self._work.item.id, reason)
        except anyio.get_cancelled_exc_class():
            await self._complete("declined")
            raise
        if answer.decision is not Decision.ACCEPT:
            await self._complete("declined")
            if answer.decision is Decision.CANCEL:
                context.interrupt()
            return DECLINED
        if answer.for_session:
            context.thread.consents.accept_files(context.settings.sandbox, self._plan.paths)
        return await self._apply()

    async def _apply(self) -> str:
        try:
            # Not abandoned when cancelled: a patch is applied completely or not at all.
            await to_thread.run_sync(apply_plan, self._plan, self._journal)
        except PatchError as error:
            # Changes that others made to these files meanwhile are not part of the turn's diff.
            if isinstance(error, PartlyApplied):
                self._context.diff.note(self._plan)
            self._work.output(f"{error}\n")
            await self._complete("failed")
            return f"failed: {error}"
        except anyio.get_cancelled_exc_class():
            # Cancelled before the patch was begun.
            await self._complete("failed")
            raise
        self._context.diff.note(self._plan)
        self._work.output(self._plan.summary)
        await self._complete("completed")
        return self._plan.summary

    async def _complete(self, status: DeclinableStatus) -> None:
        context = self._context
        self._work.complete(status)
        if self._journal is not None:
            self._journal.forget()
        # The diff follows every fileChange item, even one that an interrupt ended.
        with anyio.CancelScope(shield=True):
            diff = await to_thread.run_sync(context.diff.text, self._forbids)
            context.thread.subscribers.notify(
                TurnDiffUpdatedNotification(
                    thread_id=context.thread.id, turn_id=context.log.turn_id, diff=diff
                )
            )


def _read_refusal(view: View | None, path: str, status: os.stat_result | None) -> str | None:
    """Return why a file may not be read, whatever the client decides; None if it may.

    Reading is checked because a patch that matches tells the model the file's content.
    """
    if is_kernel_path(path):
        return "is not a file of a disk"
    if view is None or (view.readable(path) and may_read(path, status)):
        return None
    return "the sandbox hides it"


def _write_refusal(plan: Plan, view: View | None) -> str | None:
    """Return which files of a patch the sandbox forbids to write, as a text; None if none."""
    paths = [] if view is None else [path for path in plan.paths if not view.writable(path)]
    if not paths or view is None:
        return None
    outside = [path for path in paths if not any(is_inside(path, root) for root in view.roots)]
    if outside:
        return f"it writes outside the writable folders: {', '.join(outside)}"
    return f"it writes what is protected: {', '.join(paths)}"


def _describe_redirects(plan: Plan, cwd: str) -> str | None:
    """Return which paths of a patch are links to other places, as a text; None if none is.

    The client needs it: an approval request shows the paths as the model wrote them.
    """
    try:
        resolved = os.path.realpath(cwd)
    except OSError:
        # A link was replaced at this moment; at worst a path is listed that is not a link.
        resolved = cwd
    redirects: list[str] = []
    for change in plan.changes:
        for place in filter(None, (change.place, change.moved_place)):
            # A link to the thread's own folder is not reported.
            relative = os.path.relpath(place.path, cwd)
            expected = (
                os.path.join(resolved, relative) if is_inside(place.path, cwd) else place.path
            )
            if expected != place.real:
                redirects.append(f"{place.path} is {place.real}")
    return f"links lead it elsewhere: {', '.join(redirects)}" if redirects else None
