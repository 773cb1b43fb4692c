"""Turns: the resource, its requests and its notifications.

Here lives everything named `turn/*`. Source: session-protocol "Turn", "turn/start",
"turn/interrupt", "Events".
"""

from typing import Any, Literal

from harness.wire.base import WireModel
from harness.wire.error import TurnError
from harness.wire.input import UserInput
from harness.wire.item import ThreadItem
from harness.wire.settings import ApprovalPolicy, Effort, SandboxPolicy, Summary

TurnStatus = Literal["inProgress", "completed", "interrupted", "failed"]


class Turn(WireModel):
    """One turn. `error` is an object only when the status is `failed`, else null."""

    id: str
    items: list[ThreadItem]
    status: TurnStatus
    error: TurnError | None


class TurnStartParams(WireModel):
    """Params of `turn/start`; what is left out stays as the thread has it."""

    thread_id: str
    input: list[UserInput]
    cwd: str | None = None
    approval_policy: ApprovalPolicy | None = None
    sandbox_policy: SandboxPolicy | None = None
    model: str | None = None
    effort: Effort | None = None
    summary: Summary | None = None
    output_schema: dict[str, Any] | None = None


class TurnStartResult(WireModel):
    """Result of `turn/start`: the turn, in progress, without items."""

    turn: Turn


class TurnInterruptParams(WireModel):
    """Params of `turn/interrupt`."""

    thread_id: str
    turn_id: str


class TurnStartedNotification(WireModel):
    """Params of `turn/started`."""

    thread_id: str
    turn: Turn


class TurnCompletedNotification(WireModel):
    """Params of `turn/completed`: completed, interrupted or failed."""

    thread_id: str
    turn: Turn
