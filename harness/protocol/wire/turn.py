"""Turns: the resource, its requests and its notifications.

Source: session-protocol "Turn", "turn/start", "turn/interrupt", "turn/steer", "Events".
"""

from typing import Literal

from harness.protocol.wire.base import Json, OpenObject, WireModel
from harness.protocol.wire.error import TurnError
from harness.protocol.wire.input import UserInput
from harness.protocol.wire.item import ThreadItem
from harness.protocol.wire.settings import ApprovalPolicy, Effort, SandboxPolicy, Summary

TurnStatus = Literal["inProgress", "completed", "interrupted", "failed"]


class Turn(WireModel):
    """One turn. `error` is an object only when the status is `failed`, else null."""

    id: str
    items: list[ThreadItem]
    status: TurnStatus
    error: TurnError | None


class TurnStartParams(WireModel):
    """Params of `turn/start`; a setting that is left out stays as the thread has it."""

    thread_id: str
    input: list[UserInput]
    cwd: str | None = None
    approval_policy: ApprovalPolicy | None = None
    sandbox_policy: SandboxPolicy | None = None
    model: str | None = None
    effort: Effort | None = None
    summary: Summary | None = None
    output_schema: OpenObject | None = None


class TurnStartResult(WireModel):
    """Result of `turn/start`: the turn, in progress, without items."""

    turn: Turn


class TurnInterruptParams(WireModel):
    """Params of `turn/interrupt`."""

    thread_id: str
    turn_id: str


class TurnSteerParams(WireModel):
    """Params of `turn/steer`: input for the active turn, whose id must be the expected one."""

    thread_id: str
    input: list[UserInput]
    expected_turn_id: str


class TurnSteerResult(WireModel):
    """Result of `turn/steer`: the turn that took the input."""

    turn_id: str


class TurnStartedNotification(WireModel):
    """Params of `turn/started`."""

    thread_id: str
    turn: Turn


class TurnCompletedNotification(WireModel):
    """Params of `turn/completed`: completed, interrupted or failed."""

    thread_id: str
    turn: Turn


class TurnDiffUpdatedNotification(WireModel):
    """Params of `turn/diff/updated`: the unified diff of the whole turn so far."""

    thread_id: str
    turn_id: str
    diff: str


class PlanStep(WireModel):
    """One step of a plan."""

    step: str
    status: Literal["completed", "inProgress", "pending"]


class TurnPlanUpdatedNotification(WireModel):
    """Params of `turn/plan/updated`: the whole plan as it is now."""

    thread_id: str
    turn_id: str
    explanation: str | None = None
    plan: list[PlanStep]


class ModelReroutedNotification(WireModel):
    """Params of `model/rerouted`: another model answers; the type of `reason` is not shown."""

    thread_id: str
    turn_id: str
    from_model: str
    to_model: str
    reason: str | Json
