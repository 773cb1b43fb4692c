"""Approval requests to the client, and its decisions.

`policy` decides when to ask; the tool carries a decision out. Source: session-protocol "Approval
sequence", "Server requests". An error, or an answer that is not one of the decisions, counts as
decline: nothing runs that was not approved.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, cast

from pydantic import ValidationError

from harness.protocol.wire.approval import (
    AcceptWithExecpolicyAmendment,
    ApplyNetworkPolicyAmendment,
    CommandApprovalParams,
    CommandApprovalResult,
    FileChangeApprovalParams,
)
from harness.protocol.wire.base import WireModel
from harness.protocol.wire.item import CommandExecutionItem
from reference_server.brief import brief_value
from reference_server.limits import LimitExceeded, check_lists
from reference_server.session.server_requests import ServerRequests
from reference_server.session.thread import LoadedThread

_log = logging.getLogger(__name__)
Fields = dict[str, Any]


class Decision(Enum):
    """The client's decision about one command or file change."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"
    """Denied, and the turn is to be interrupted."""


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """A decision on a command.

    `keep_rule`: store a rule that allows commands that begin with `prefix` (None: only this command
    in its folder); with `network`, the rule also lets them reach the network.
    """

    decision: Decision
    for_session: bool = False
    keep_rule: bool = False
    prefix: tuple[str, ...] | None = None
    network: bool = False


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """A decision on a file change."""

    decision: Decision
    for_session: bool = False


DENIED = CommandAnswer(Decision.DECLINE)


@dataclass(slots=True)
class Approvals:
    """The approval requests of one turn."""

    thread: LoadedThread
    turn_id: str
    server_requests: ServerRequests = field(repr=False)

    async def ask_about_command(
        self, item: CommandExecutionItem, argv: Sequence[str], reason: str | None
    ) -> CommandAnswer:
        """Ask whether a command may run and wait for the answer; `item/started` was sent before."""
        params = CommandApprovalParams(
            thread_id=self.thread.id,
            turn_id=self.turn_id,
            item_id=item.id,
            command=list(argv),
            cwd=item.cwd,
            command_actions=item.command_actions,
            reason=reason,
        )
        return read_command_answer(await self._ask("item/commandExecution/requestApproval", params))

    async def ask_about_files(self, item_id: str, reason: str | None) -> FileAnswer:
        """Ask whether to change files and wait for the answer; `item/started` was sent before."""
        params = FileChangeApprovalParams(
            thread_id=self.thread.id, turn_id=self.turn_id, item_id=item_id, reason=reason
        )
        return read_file_answer(await self._ask("item/fileChange/requestApproval", params))

    async def _ask(self, method: str, params: WireModel) -> Fields:
        with self.thread.waiting_for("waitingOnApproval"):
            return await self.server_requests.ask(
                self.thread.id, self.thread.subscribers, method, params
            )


def read_command_answer(answer: Fields) -> CommandAnswer:
    """Parse `{id, result: {decision}}`; an error or anything but a decision declines."""
    if "error" in answer:
        return DENIED
    try:
        check_lists(answer.get("result"))
        decision = CommandApprovalResult.parse(answer.get("result")).decision
    except (ValidationError, LimitExceeded):
        _log.warning(
            "not a decision on a command, so declined: %s", brief_value(answer.get("result"))
        )
        return DENIED
    match decision:
        case "accept":
            return CommandAnswer(Decision.ACCEPT)
        case "acceptForSession":
            return CommandAnswer(Decision.ACCEPT, for_session=True)
        case "acceptWithExecpolicyAmendment":
            return CommandAnswer(Decision.ACCEPT, keep_rule=True)
        case AcceptWithExecpolicyAmendment():
            words = decision.accept_with_execpolicy_amendment.execpolicy_amendment
            return CommandAnswer(Decision.ACCEPT, keep_rule=True, prefix=tuple(words))
        case "applyNetworkPolicyAmendment":
            return CommandAnswer(Decision.ACCEPT, keep_rule=True, network=True)
        case ApplyNetworkPolicyAmendment():
            # The sandbox opens the network for all hosts or none: a rule that allows one host
            # allows the network to this command, and a rule that denies one host denies it.
            rule = decision.apply_network_policy_amendment.network_policy_amendment
            allowed = rule.action == "allow"
            return (
                CommandAnswer(Decision.ACCEPT, keep_rule=True, network=True) if allowed else DENIED
            )
        case "decline":
            return DENIED
        case "cancel":
            return CommandAnswer(Decision.CANCEL)


_FILE_ANSWERS = {
    "accept": FileAnswer(Decision.ACCEPT),
    "decline": FileAnswer(Decision.DECLINE),
    # The specification has two decisions on files; the shipping server takes these too, and
    # clients send them.
    "acceptForSession": FileAnswer(Decision.ACCEPT, for_session=True),
    "cancel": FileAnswer(Decision.CANCEL),
}


def read_file_answer(answer: Fields) -> FileAnswer:
    """Parse `{id, result: {decision}}`; an error or anything but a decision declines."""
    result: Any = answer.get("result")
    word = cast("Fields", result).get("decision") if isinstance(result, dict) else None
    if "error" in answer or not isinstance(word, str) or word not in _FILE_ANSWERS:
        _log.warning("not a decision on a file change, so declined: %s", brief_value(answer))
        return _FILE_ANSWERS["decline"]
    return _FILE_ANSWERS[word]
