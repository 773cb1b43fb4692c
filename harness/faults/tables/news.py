"""Faults of notifications about the model: tokens, plans, reroutes, retries."""

from collections.abc import Callable

from harness.faults import stored
from harness.faults.base import Condition, Fault, NotApplied, StoredOnly
from harness.faults.changes import every, first
from harness.faults.item_selectors import item_completed
from harness.faults.operators import drop, edit
from harness.faults.selectors import Selector, Verdict, notification, turn_in
from harness.faults.site import FaultSite
from harness.protocol.values import obj
from harness.trace.frame import Frame
from harness.trace.marks import CallEnd, MarkBody, ModelCall, ModelEnd
from harness.trace.trace import Mark, Trace
from harness.trace.views import TurnView

USAGE = "thread/tokenUsage/updated"
PLAN = "turn/plan/updated"
REROUTED = "model/rerouted"


def told_of_a_turn(method: str) -> Selector:
    """Select a notification about a turn that this client started."""
    return notification(method).where(
        lambda site, f: site.is_our_turn(site.turn_of(f)), "of a turn of ours"
    )


def last_of_its_turn(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether a turn gets no later notification of this method; None until its end."""
    turn = turn_in(site, frame)
    again = [other for other in site.frames_after(frame) if other.method == frame.method]
    if any(site.turn_of(f) is turn for f in again):
        return False
    return True if turn.completions else None


def turn_with_calls(
    site: FaultSite, description: str, matches: Callable[[ModelEnd], bool]
) -> tuple[TurnView, list[Mark[ModelEnd]]]:
    """Return the first completed turn with a matching model end, and its model ends.

    Raises `NotApplied` if there is none.
    """
    for turn in site.conversation.turns.values():
        if turn.request is None or turn.status != "completed":
            continue
        ends = [
            mark
            for mark in site.marks_of(ModelEnd)
            if turn.request.seq <= mark.after <= turn.completions[0].seq
        ]
        if any(matches(mark.body) for mark in ends):
            return turn, ends
    raise NotApplied(f"no turn whose model brought {description}")


def requires_model_output(description: str, matches: Callable[[ModelEnd], bool]) -> Condition:
    """Return the condition that a completed turn has a `ModelEnd` for which `matches` is true."""

    def holds(trace: Trace) -> bool:
        try:
            turn_with_calls(FaultSite.of_trace(trace), description, matches)
        except NotApplied:
            return False
        return True

    return Condition(f"turn whose model brought {description}", holds)


def has_outcome(end: ModelEnd) -> bool:
    """Return whether the outcome of a call is known."""
    return end.outcome is not CallEnd.UNKNOWN


def broke_off_and_told(trace: Trace) -> bool:
    """Return whether the model's answer broke off in a completed turn that reported an error."""
    try:
        turn, ends = turn_with_calls(FaultSite.of_trace(trace), "an outcome", has_outcome)
    except NotApplied:
        return False
    return bool(turn.errors) and any(mark.body.outcome is CallEnd.DISCONNECTED for mark in ends)


def remove_retries(site: FaultSite, trace: Trace) -> Trace:
    """Remove the model calls after the failed one. Raises `NotApplied` without a retry."""
    turn, ends = turn_with_calls(site, "an outcome", has_outcome)
    if not any(obj(error.params).get("willRetry") is True for error in turn.errors):
        raise NotApplied("no retry was announced")
    if ends[0].body.is_complete:
        raise NotApplied("the first call did not fail")
    later = {mark.body.call for mark in ends[1:]}

    def of_a_later_call(mark: Mark[MarkBody]) -> bool:
        return isinstance(mark.body, ModelCall | ModelEnd) and mark.body.call in later

    return stored.remove_marks(trace, of_a_later_call)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "usage-not-told",
        rule="turn.usage-told",
        on="told",
        reason="Token usage that is updated during a turn is told.",
        change=every(notification(USAGE), drop),
        condition=requires_model_output("usage", lambda end: end.usage > 0),
    ),
    Fault(
        "mcp-another-tool-called",
        rule="mcp.tool-called",
        on="mcp-called",
        reason="A tool of a configured MCP server that the model calls is called.",
        change=first(item_completed("mcpToolCall"), edit("params", "item", "tool", to="other")),
        condition=requires_model_output("calls of MCP tools", lambda end: bool(end.mcp)),
    ),
    Fault(
        "plan-not-told",
        rule="turn.plan-told",
        on="told",
        reason="turn/plan/updated comes each time the agent shares or changes its plan.",
        change=first(told_of_a_turn(PLAN).where(last_of_its_turn, "and its last"), drop),
        condition=requires_model_output("plans", lambda end: bool(end.plans)),
    ),
    Fault(
        "plan-told-wrong",
        rule="turn.plan-told",
        on="told",
        reason="The plan in turn/plan/updated is the agent's.",
        change=first(told_of_a_turn(PLAN), edit("params", "plan", to=[])),
        condition=requires_model_output("plans", lambda end: bool(end.plans)),
    ),
    Fault(
        "reroute-not-told",
        rule="turn.reroute-told",
        on="told",
        reason="model/rerouted comes when another model answers.",
        change=every(told_of_a_turn(REROUTED), drop),
        condition=requires_model_output("answers", lambda end: bool(end.answers)),
    ),
    Fault(
        "failure-not-told",
        rule="error.told-mid-turn",
        on="retried",
        reason="An error within a turn is told by the error notification.",
        change=every(told_of_a_turn("error"), drop),
        condition=Condition("answer of the model that broke off and was told", broke_off_and_told),
    ),
    Fault(
        "retry-not-made",
        rule="error.retry-follows",
        on="retried",
        reason="willRetry says that the turn goes on by trying again.",
        change=StoredOnly("it takes calls of the model away, and those are marks", remove_retries),
    ),
    Fault(
        "plan-of-no-turn",
        rule="turn.notice-known-turn",
        on="told",
        reason="The turnId of a plan is that of a turn that was announced.",
        change=first(notification(PLAN), edit("params", "turnId", to="turn_987654321")),
    ),
    Fault(
        "reroute-on-another-thread",
        rule="turn.known-thread",
        on="told",
        reason="What is told of a turn names the thread that the turn was started on.",
        change=first(told_of_a_turn(REROUTED), edit("params", "threadId", to="thr_987654321")),
    ),
)
