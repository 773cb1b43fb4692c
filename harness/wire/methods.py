"""The method table: one row per request and notification.

Here live the rows and the look-up by name. Routers, clients, docs and the agreement test read
them; no behaviour hangs on a row. Source: session-protocol "Endpoints", "Events".
"""

from dataclasses import dataclass
from enum import StrEnum

from harness.wire import error, initialize, item, rpc, thread, turn
from harness.wire.base import WireModel


class Direction(StrEnum):
    """Who sends it, and whether it is answered."""

    CLIENT_REQUEST = "client-request"
    CLIENT_NOTIFICATION = "client-notification"
    SERVER_REQUEST = "server-request"
    SERVER_NOTIFICATION = "server-notification"


class Scope(StrEnum):
    """Behind which other requests a request queues."""

    CONNECTION = "connection"
    """Done before anything that came later on its connection is begun."""
    THREAD = "thread"
    """Done in order of arrival among the requests of its `threadId`."""
    NONE = "none"
    """Queues behind nothing (and every notification)."""


class Stability(StrEnum):
    """How far the document stands behind it ("Versioning")."""

    STABLE = "stable"
    EXPERIMENTAL = "experimental"


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """One row. `result` is None for a notification."""

    method: str
    direction: Direction
    params: type[WireModel]
    result: type[WireModel] | None = None
    scope: Scope = Scope.NONE
    stability: Stability = Stability.STABLE


def _request(
    method: str, params: type[WireModel], result: type[WireModel], scope: Scope
) -> MethodSpec:
    return MethodSpec(method, Direction.CLIENT_REQUEST, params, result, scope)


def _event(method: str, params: type[WireModel]) -> MethodSpec:
    return MethodSpec(method, Direction.SERVER_NOTIFICATION, params)


METHODS: tuple[MethodSpec, ...] = (
    _request(
        "initialize", initialize.InitializeParams, initialize.InitializeResult, Scope.CONNECTION
    ),
    MethodSpec("initialized", Direction.CLIENT_NOTIFICATION, rpc.Empty),
    _request("thread/start", thread.ThreadStartParams, thread.ThreadStartResult, Scope.CONNECTION),
    _request("thread/read", thread.ThreadReadParams, thread.ThreadReadResult, Scope.THREAD),
    _request("turn/start", turn.TurnStartParams, turn.TurnStartResult, Scope.THREAD),
    _request("turn/interrupt", turn.TurnInterruptParams, rpc.Empty, Scope.THREAD),
    _event("thread/started", thread.ThreadStartedNotification),
    _event("thread/status/changed", thread.ThreadStatusChangedNotification),
    _event("thread/tokenUsage/updated", thread.ThreadTokenUsageUpdatedNotification),
    _event("turn/started", turn.TurnStartedNotification),
    _event("turn/completed", turn.TurnCompletedNotification),
    _event("error", error.ErrorNotification),
    _event("item/started", item.ItemStartedNotification),
    _event("item/completed", item.ItemCompletedNotification),
    _event("item/agentMessage/delta", item.AgentMessageDeltaNotification),
    _event("item/reasoning/summaryTextDelta", item.ReasoningSummaryTextDeltaNotification),
    _event("item/reasoning/summaryPartAdded", item.ReasoningSummaryPartAddedNotification),
    _event("item/reasoning/textDelta", item.ReasoningTextDeltaNotification),
)

BY_METHOD: dict[str, MethodSpec] = {spec.method: spec for spec in METHODS}

BY_PARAMS: dict[type[WireModel], str] = {
    spec.params: spec.method for spec in METHODS if spec.direction is Direction.SERVER_NOTIFICATION
}
"""The name of a server notification by its params class: each has a class of its own."""
