"""The method table: one row per request and notification.

Routers, clients, docs and the agreement test read the rows, which have no behaviour. Source:
session-protocol "Endpoints", "Server requests", "Events". A row names its models, whose module is
imported on first use: a process that never lists skills never imports the models of skills.
"""

from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import NamedTuple

from harness.protocol.wire.base import WireModel


class Direction(StrEnum):
    """The sender of a message, and whether the message is answered."""

    CLIENT_REQUEST = "client-request"
    CLIENT_NOTIFICATION = "client-notification"
    SERVER_REQUEST = "server-request"
    SERVER_NOTIFICATION = "server-notification"


class Scope(StrEnum):
    """The earlier requests that must be handled before a request."""

    CONNECTION = "connection"
    """Handled before any later request of its connection."""
    THREAD = "thread"
    """Handled in order of arrival among the requests of its `threadId`."""
    NONE = "none"
    """Handled at once; the scope of every notification too."""


class Stability(StrEnum):
    """The document's support for a method ("Versioning")."""

    STABLE = "stable"
    EXPERIMENTAL = "experimental"
    UNDER_DEVELOPMENT = "under-development"
    SILENT = "silent"
    """The text does not name the method, but needs it for something that it names."""


class MethodSpec(NamedTuple):
    """One row; a model is named as `module.Class` below `harness.protocol.wire`."""

    method: str
    direction: Direction
    params_name: str
    result_name: str | None = None
    scope: Scope = Scope.NONE
    stability: Stability = Stability.STABLE

    @property
    def params(self) -> type[WireModel]:
        """The model of the params."""
        return _model(self.params_name)

    @property
    def result(self) -> type[WireModel] | None:
        """The model of the result; None for a notification."""
        return None if self.result_name is None else _model(self.result_name)


@cache
def _model(name: str) -> type[WireModel]:
    module, _, attribute = name.partition(".")
    return getattr(import_module(f"harness.protocol.wire.{module}"), attribute)


def _request(
    method: str,
    params: str,
    result: str,
    scope: Scope = Scope.THREAD,
    stability: Stability = Stability.STABLE,
) -> MethodSpec:
    return MethodSpec(method, Direction.CLIENT_REQUEST, params, result, scope, stability)


def _server_request(
    method: str, params: str, result: str, stability: Stability = Stability.STABLE
) -> MethodSpec:
    return MethodSpec(method, Direction.SERVER_REQUEST, params, result, stability=stability)


def _event(method: str, params: str, stability: Stability = Stability.STABLE) -> MethodSpec:
    return MethodSpec(method, Direction.SERVER_NOTIFICATION, params, stability=stability)


_CONNECTION = Scope.CONNECTION
_NO_QUEUE = Scope.NONE
_EMPTY = "rpc.Empty"
_SILENT = Stability.SILENT
_UNDER_DEVELOPMENT = Stability.UNDER_DEVELOPMENT

METHODS: tuple[MethodSpec, ...] = (
    _request(
        "initialize",
        "initialize.InitializeParams",
        "initialize.InitializeResult",
        _CONNECTION,
        _SILENT,
    ),
    MethodSpec("initialized", Direction.CLIENT_NOTIFICATION, _EMPTY, stability=_SILENT),
    _request("skills/list", "skills.SkillsListParams", "skills.SkillsListResult", _NO_QUEUE),
    _request("skills/config/write", "skills.SkillsConfigWriteParams", _EMPTY, _CONNECTION),
    _request(
        "skills/remote/list", _EMPTY, "skills.SkillsRemoteListResult", _NO_QUEUE, _UNDER_DEVELOPMENT
    ),
    _request(
        "skills/remote/export",
        "skills.SkillsRemoteExportParams",
        "skills.SkillsRemoteExportResult",
        _NO_QUEUE,
        _UNDER_DEVELOPMENT,
    ),
    _request("thread/start", "thread.ThreadStartParams", "thread.ThreadStartResult", _CONNECTION),
    _request("thread/resume", "thread.ThreadResumeParams", "thread.ThreadResumeResult"),
    _request("thread/fork", "thread.ThreadForkParams", "thread.ThreadForkResult"),
    _request(
        "thread/list",
        "thread_operations.ThreadListParams",
        "thread_operations.ThreadListResult",
        _NO_QUEUE,
    ),
    _request("thread/read", "thread.ThreadReadParams", "thread.ThreadReadResult"),
    _request("thread/archive", "thread_operations.ThreadArchiveParams", _EMPTY),
    _request(
        "thread/unarchive",
        "thread_operations.ThreadUnarchiveParams",
        "thread_operations.ThreadUnarchiveResult",
    ),
    _request("thread/name/set", "thread_operations.ThreadNameSetParams", _EMPTY),
    _request(
        "thread/loaded/list",
        "thread_operations.ThreadLoadedListParams",
        "thread_operations.ThreadLoadedListResult",
        _NO_QUEUE,
    ),
    _request(
        "thread/unsubscribe",
        "thread_operations.ThreadUnsubscribeParams",
        "thread_operations.ThreadUnsubscribeResult",
    ),
    _request(
        "thread/rollback",
        "thread_operations.ThreadRollbackParams",
        "thread_operations.ThreadRollbackResult",
    ),
    _request("thread/compact/start", "thread_operations.ThreadCompactStartParams", _EMPTY),
    _request("turn/start", "turn.TurnStartParams", "turn.TurnStartResult"),
    _request("turn/interrupt", "turn.TurnInterruptParams", _EMPTY),
    _request("turn/steer", "turn.TurnSteerParams", "turn.TurnSteerResult"),
    _request(
        "review/start", "review.ReviewStartParams", "review.ReviewStartResult", stability=_SILENT
    ),
    _server_request(
        "item/commandExecution/requestApproval",
        "approval.CommandApprovalParams",
        "approval.CommandApprovalResult",
    ),
    _server_request(
        "item/fileChange/requestApproval",
        "approval.FileChangeApprovalParams",
        "approval.FileChangeApprovalResult",
    ),
    _server_request("item/tool/call", "tool.ToolCallParams", "tool.ToolCallResult", _SILENT),
    _event("thread/started", "thread.ThreadStartedNotification"),
    _event("thread/status/changed", "thread.ThreadStatusChangedNotification"),
    _event("thread/archived", "thread_operations.ThreadArchivedNotification"),
    _event("thread/unarchived", "thread_operations.ThreadUnarchivedNotification"),
    _event("thread/closed", "thread_operations.ThreadClosedNotification"),
    _event("thread/name/updated", "thread_operations.ThreadNameUpdatedNotification"),
    _event("thread/tokenUsage/updated", "thread.ThreadTokenUsageUpdatedNotification"),
    _event("turn/started", "turn.TurnStartedNotification"),
    _event("turn/completed", "turn.TurnCompletedNotification"),
    _event("turn/diff/updated", "turn.TurnDiffUpdatedNotification"),
    _event("turn/plan/updated", "turn.TurnPlanUpdatedNotification"),
    _event("model/rerouted", "turn.ModelReroutedNotification"),
    _event("error", "error.ErrorNotification"),
    _event("item/started", "item_events.ItemStartedNotification"),
    _event("item/completed", "item_events.ItemCompletedNotification"),
    _event("item/agentMessage/delta", "item_events.AgentMessageDeltaNotification"),
    _event("item/plan/delta", "item_events.PlanDeltaNotification", Stability.EXPERIMENTAL),
    _event("item/reasoning/summaryTextDelta", "item_events.ReasoningSummaryTextDeltaNotification"),
    _event("item/reasoning/summaryPartAdded", "item_events.ReasoningSummaryPartAddedNotification"),
    _event("item/reasoning/textDelta", "item_events.ReasoningTextDeltaNotification"),
    _event(
        "item/commandExecution/outputDelta", "item_events.CommandExecutionOutputDeltaNotification"
    ),
    _event("item/fileChange/outputDelta", "item_events.FileChangeOutputDeltaNotification"),
    _event("item/mcpToolCall/progress", "tool.McpToolCallProgressNotification"),
    _event("serverRequest/resolved", "approval.ServerRequestResolvedNotification"),
)

BY_METHOD: dict[str, MethodSpec] = {spec.method: spec for spec in METHODS}


class _ByParams(dict[type[WireModel], str]):
    """A mapping that is filled on lookup, so that the table alone imports no model."""

    def __missing__(self, params: type[WireModel]) -> str:
        name = f"{params.__module__.removeprefix('harness.protocol.wire.')}.{params.__name__}"
        self[params] = _NOTIFICATION_OF[name]
        return self[params]


_NOTIFICATION_OF = {
    spec.params_name: spec.method
    for spec in METHODS
    if spec.direction is Direction.SERVER_NOTIFICATION
}

BY_PARAMS: dict[type[WireModel], str] = _ByParams()
"""The method of a server notification by its params class: each has a class of its own."""
