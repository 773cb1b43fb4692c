"""Bugs about approval policies: missing and needless questions, actions without an approval."""

from __future__ import annotations

import dataclasses
import subprocess
from typing import Any

from tests.conformance.bugs.planting import Message, received, swap
from tests.conformance.bugs.registry import bug

SHELL = "reference_server.engine.tools.shell"
PATCH = "reference_server.engine.tools.patch"


def rulings(place: str, change: Any) -> None:
    """Let `change(policy, ruling)` replace the ruling of a policy."""

    def rule(original: Any) -> Any:
        def changed(policy: str, **facts: Any) -> Any:
            return change(policy, original(policy, **facts))

        return changed

    swap(place, rule)


def ruled(place: str, policy: str, before: str, after: str) -> None:
    """Let one ruling of a policy be another."""
    from reference_server.engine.policy import Ruling

    def change(asked: str, ruling: Any) -> Any:
        return Ruling[after] if (asked, ruling) == (policy, Ruling[before]) else ruling

    rulings(place, change)


ON_COMMAND, ON_DENIAL = f"{SHELL}:ruling_on_command", f"{SHELL}:ruling_on_denial"
ON_FILES = f"{PATCH}:ruling_on_file_change"


@bug(reds={"approvals/always-asked": "approval.always-asked"})
def what_the_sandbox_allows_is_not_asked_about() -> None:
    """Under on-request a command runs unasked where it wants no more rights."""
    ruled(ON_COMMAND, "on-request", "ASK", "RUN")


@bug(reds={"approvals/always-asked-reading": "approval.always-asked"})
def who_only_reads_is_not_asked_about() -> None:
    """Under on-request a command that can only read runs unasked."""

    def standing(original: Any) -> Any:
        def trusting(*of: Any) -> Any:
            found = original(*of)
            return dataclasses.replace(found, is_allowed=found.is_allowed or found.is_trusted)

        return trusting

    swap("reference_server.engine.tools.execution:Execution.rule_coverage", standing)


@bug(
    reds={
        "approvals/never-asked": "approval.never-asked",
        "approvals/asked-by-the-turn": "scenario.timeout: step answer",
    }
)
def the_policy_of_a_turn_is_not_heeded() -> None:
    """A turn runs under the approval policy of its thread instead of its own."""

    def receive(method: str, message: Message) -> Message:
        if method == "turn/start":
            message["params"].pop("approvalPolicy", None)
        return message

    received(receive)


@bug(reds={"approvals/never-file-change-outside": "scenario.expectation: notes.txt: line"})
def under_never_every_file_change_is_made() -> None:
    """Under never a file change is made, also where the sandbox does not allow it."""
    ruled(ON_FILES, "never", "FAIL", "RUN")


@bug(reds={"approvals/never-file-change": "approval.never-asked"})
def under_never_every_file_change_is_asked_about() -> None:
    """Under never, a file change that the sandbox allows needs an approval."""
    ruled(ON_FILES, "never", "RUN", "ASK")


@bug(reds={"approvals/never-in-the-sandbox": "approval.never-asked"})
def under_never_a_failure_is_asked_about() -> None:
    """Under never, a command that the sandbox has stopped needs an approval."""
    ruled(ON_DENIAL, "never", "FAIL", "ASK")


@bug(reds={"approvals/never-more-rights": "scenario.expectation: made.txt exists"})
def who_asks_for_more_rights_has_them() -> None:
    """A command for which the model wants more rights runs outside the sandbox, unasked."""

    def run(original: Any) -> Any:
        async def outside(command: Any, **how: Any) -> Any:
            how["outside"] = how["outside"] or command._call.is_escalated
            return await original(command, **how)

        return outside

    swap(f"{SHELL}:_CommandRun._prepare", run)


@bug(reds={"approvals/on-failure-goes-well": "approval.failure-first"})
def under_on_failure_is_asked_beforehand() -> None:
    """Under on-failure, a command needs an approval before its first run."""
    ruled(ON_COMMAND, "on-failure", "RUN", "ASK")


@bug(reds={"approvals/reject": "scenario.expectation: made.txt exists"})
def under_reject_everything_is_done() -> None:
    """Under reject, a command is reported as declined, but run."""

    def complete(original: Any) -> Any:
        def run(work: Any, status: str, **known: Any) -> None:
            if status == "declined":
                subprocess.run(work.item.command, shell=True, cwd=work.item.cwd, check=False)
            original(work, status, **known)

        return run

    swap("reference_server.engine.work_items:CommandWork.complete", complete)


@bug(reds={"approvals/reject-command": "approval.rejected"})
def under_reject_more_rights_are_asked_for() -> None:
    """Under reject, the client can approve more rights for a command."""
    ruled(ON_COMMAND, "reject", "DECLINE", "ASK")


@bug(reds={"approvals/reject-file-change": "scenario.expectation: notes.txt is absent"})
def under_reject_every_file_change_is_made() -> None:
    """Under reject a file change that would need approval is made."""
    ruled(ON_FILES, "reject", "DECLINE", "RUN")


@bug(reds={"approvals/reject-harmless-command": "approval.rejected"})
def under_reject_who_only_reads_is_asked_about() -> None:
    """Under reject, a command that can only read needs an approval."""
    ruled(ON_COMMAND, "reject", "RUN", "ASK")
