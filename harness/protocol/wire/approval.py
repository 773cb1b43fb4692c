"""Approvals: the server's request, the client's decision, and its resolution.

Source: session-protocol "Approval sequence", "Server requests", "Events".

In the document each decision is a word. Clients of the shipping server send the two amendments as
objects with their content; a server that accepts both forms serves both kinds of clients.
"""

from typing import Literal

from pydantic import ConfigDict

from harness.protocol.wire.base import WireModel
from harness.protocol.wire.item import CommandAction
from harness.protocol.wire.rpc import RequestId


class CommandApprovalParams(WireModel):
    """Params of `item/commandExecution/requestApproval`; `command` is the list of its words."""

    thread_id: str
    turn_id: str
    item_id: str
    command: list[str]
    cwd: str
    command_actions: list[CommandAction] | None = None
    reason: str | None = None


CommandDecisionWord = Literal[
    "accept",
    "acceptForSession",
    "acceptWithExecpolicyAmendment",
    "applyNetworkPolicyAmendment",
    "decline",
    "cancel",
]


class _SnakeCase(WireModel):
    """Members of an amendment, which the shipping server writes in snake_case."""

    model_config = ConfigDict(alias_generator=None)


class ExecpolicyAmendment(_SnakeCase):
    """The words that commands may begin with from now on."""

    execpolicy_amendment: list[str]


class NetworkRule(WireModel):
    """A host to which connections are allowed, or denied, from now on."""

    host: str
    action: Literal["allow", "deny"]


class NetworkPolicyAmendment(_SnakeCase):
    """The rule about a host that the client wants the server to keep."""

    network_policy_amendment: NetworkRule


class AcceptWithExecpolicyAmendment(WireModel):
    """The decision `acceptWithExecpolicyAmendment` with the words to accept from now on."""

    accept_with_execpolicy_amendment: ExecpolicyAmendment


class ApplyNetworkPolicyAmendment(WireModel):
    """The decision `applyNetworkPolicyAmendment` with its rule about a host."""

    apply_network_policy_amendment: NetworkPolicyAmendment


CommandDecision = CommandDecisionWord | AcceptWithExecpolicyAmendment | ApplyNetworkPolicyAmendment


class CommandApprovalResult(WireModel):
    """The client's answer to `item/commandExecution/requestApproval`."""

    decision: CommandDecision


class FileChangeApprovalParams(WireModel):
    """Params of `item/fileChange/requestApproval`; the changes are those of the item."""

    thread_id: str
    turn_id: str
    item_id: str
    reason: str | None = None


FileChangeDecision = Literal["accept", "decline"]


class FileChangeApprovalResult(WireModel):
    """The client's answer to `item/fileChange/requestApproval`."""

    decision: FileChangeDecision


class ServerRequestResolvedNotification(WireModel):
    """Params of `serverRequest/resolved`; not shown in the document, the shipping server's."""

    thread_id: str
    request_id: RequestId
