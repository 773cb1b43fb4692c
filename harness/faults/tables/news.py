"""Faults of what the client is told of the model's side: tokens, plans, reroutes, retries."""

from collections.abc import Callable

from harness.faults import stored
from harness.faults.base import Fault, Given, NotApplied, StoredOnly
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
    """A notification that names a turn of ours."""
    return notification(method).where(
        lambda site, f: site.ours(site.turn_of(f)), "of a turn of ours"
    )


def last_of_its_turn(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether the turn gets no other notification of this method; known at its end."""
    turn = turn_in(site, frame)
    again = [one for one in site.later(frame) if one.method == frame.method]
    if any(site.turn_of(one) is turn for one in again):
        return False
    return True if turn.completed else None


def calls_that(
    site: FaultSite, what: str, brought: Callable[[ModelEnd], bool]
) -> tuple[TurnView, list[Mark[ModelEnd]]]:
    """The first completed turn whose model calls brought something, and the ends of its calls."""
    for turn in site.conversation.turns.values():
        if turn.request is None or turn.status != "completed":
            continue
        ends = [
            mark
            for mark in site.marks_of(ModelEnd)
            if turn.request.seq <= mark.after <= turn.completed[0].seq
        ]
        if any(brought(mark.body) for mark in ends):
            return turn, ends
    raise NotApplied(f"no turn whose model brought {what}")


def model_brought(what: str, brought: Callable[[ModelEnd], bool]) -> Given:
    """That the model brought something in a turn that was completed."""

    def holds(trace: Trace) -> bool:
        try:
            calls_that(FaultSite.of(trace), what, brought)
        except NotApplied:
            return False
        return True

    return Given(f"turn whose model brought {what}", holds)


def has_outcome(end: ModelEnd) -> bool:
    """Return whether it is known how the answer to a call ended."""
    return end.outcome is not CallEnd.UNKNOWN


def broke_off_and_told(trace: Trace) -> bool:
    """Return whether an answer of the model broke off in a turn that an error was told of."""
    try:
        turn, ends = calls_that(FaultSite.of(trace), "an outcome", has_outcome)
    except NotApplied:
        return False
    return bool(turn.errors) and any(mark.body.outcome is CallEnd.DISCONNECTED for mark in ends)


def no_retry(site: FaultSite, trace: Trace) -> Trace:
    """The calls after the one that failed were never made."""
    turn, ends = calls_that(site, "an outcome", has_outcome)
    if not any(obj(error.params).get("willRetry") is True for error in turn.errors):
        raise NotApplied("no retry was announced")
    if ends[0].body.completed:
        raise NotApplied("the first call did not fail")
    later = {mark.body.call for mark in ends[1:]}

    def of_a_later_call(mark: Mark[MarkBody]) -> bool:
        return isinstance(mark.body, ModelCall | ModelEnd) and mark.body.call in later

    return stored.unmark(trace, of_a_later_call)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "usage-not-told",
        rule="turn.usage-told",
        on="told",
        reason="Token usage that is updated during a turn is told.",
        change=every(notification(USAGE), drop),
        given=model_brought("usage", lambda end: end.usage > 0),
    ),
    Fault(
        "mcp-another-tool-called",
        rule="mcp.tool-called",
        on="mcp-called",
        reason="A tool of a configured MCP server that the model calls is called.",
        change=first(item_completed("mcpToolCall"), edit("params", "item", "tool", to="other")),
        given=model_brought("calls of MCP tools", lambda end: bool(end.mcp)),
    ),
    Fault(
        "plan-not-told",
        rule="turn.plan-told",
        on="told",
        reason="turn/plan/updated comes each time the agent shares or changes its plan.",
        change=first(told_of_a_turn(PLAN).where(last_of_its_turn, "and its last"), drop),
        given=model_brought("plans", lambda end: bool(end.plans)),
    ),
    Fault(
        "plan-told-wrong",
        rule="turn.plan-told",
        on="told",
        reason="The plan in turn/plan/updated is the agent's.",
        change=first(told_of_a_turn(PLAN), edit("params", "plan", to=[])),
        given=model_brought("plans", lambda end: bool(end.plans)),
    ),
    Fault(
        "reroute-not-told",
        rule="turn.reroute-told",
        on="told",
        reason="model/rerouted comes when another model answers.",
        change=every(told_of_a_turn(REROUTED), drop),
        given=model_brought("answers", lambda end: bool(end.answers)),
    ),
    Fault(
        "failure-not-told",
        rule="error.told-mid-turn",
        on="retried",
        reason="An error within a turn is told by the error notification.",
        change=every(told_of_a_turn("error"), drop),
        given=Given("answer of the model that broke off and was told", broke_off_and_told),
    ),
    Fault(
        "retry-not-made",
        rule="error.retry-follows",
        on="retried",
        reason="willRetry says that the turn goes on by trying again.",
        change=StoredOnly("it takes calls of the model away, and those are marks", no_retry),
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
