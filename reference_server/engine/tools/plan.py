"""The tool `update_plan`: the model shares its plan.

Source: session-protocol "Events" (turn/plan/updated: "the agent shares or changes its plan").
"""

from typing import Any, Literal, cast

from harness.protocol.wire.turn import PlanStep, TurnPlanUpdatedNotification
from reference_server.engine.calls import CallError, ToolCall
from reference_server.engine.tools.base import ToolContext
from reference_server.engine.tools.tool_definitions import UPDATE_PLAN

Fields = dict[str, Any]

UPDATED = "Plan updated"
_STATUS: dict[str, Literal["completed", "inProgress", "pending"]] = {
    "pending": "pending",
    "in_progress": "inProgress",
    "completed": "completed",
}
"""The protocol's status by the model's."""
MAX_STEPS = 1_000
"""Maximum steps of a plan: all of them are sent with each change of one."""


class PlanTool:
    """Tool that sends the model's whole plan to the subscribers."""

    name = UPDATE_PLAN

    async def run(self, call: ToolCall, context: ToolContext) -> str:
        """Send the plan. Raises CallError for bad arguments."""
        arguments = call.arguments()
        explanation = arguments.get("explanation")
        if not isinstance(explanation, str | None):
            raise CallError("update_plan: `explanation` must be a string")
        context.thread.subscribers.notify(
            TurnPlanUpdatedNotification(
                thread_id=context.thread.id,
                turn_id=context.log.turn_id,
                explanation=explanation,
                plan=_steps(arguments.get("plan")),
            )
        )
        return UPDATED


def _steps(plan: Any) -> list[PlanStep]:
    """Return the steps of the argument `plan`. Raises CallError for a bad one."""
    if not isinstance(plan, list):
        raise CallError("update_plan: `plan` must be an array of steps")
    if len(cast("list[Any]", plan)) > MAX_STEPS:
        raise CallError(f"update_plan: `plan` has more than {MAX_STEPS:,} steps")
    return [_step(number, entry) for number, entry in enumerate(cast("list[Any]", plan), start=1)]


def _step(number: int, entry: Any) -> PlanStep:
    fields = cast("Fields", entry) if isinstance(entry, dict) else {}
    words, status = fields.get("step"), fields.get("status")
    if not isinstance(words, str):
        raise CallError(f"update_plan: step {number} must have `step`, a string")
    if not isinstance(status, str) or status not in _STATUS:
        allowed = ", ".join(_STATUS)
        raise CallError(f"update_plan: the `status` of step {number} must be one of {allowed}")
    return PlanStep(step=words, status=_STATUS[status])
