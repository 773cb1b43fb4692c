"""Faults of the events of `agent exec`, and of its files and model calls."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.changes import delay, first
from harness.faults.operators import drop, duplicate, edit, edit_by, insert, remove, rewrite
from harness.faults.selectors import Selector
from harness.faults.site import FaultSite
from harness.faults.stored import replace_marks
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import FileMatch, HomeSearched, MarkBody, ModelCall
from harness.trace.trace import Mark, Trace

MARKS = "the change is in marks: files and model calls are not in the stream"
ITEMS = ("item.started", "item.updated", "item.completed")


def event(kind: str, item: str = "") -> Selector:
    """Select an event of this type, for an item of type `item` if given."""

    def fits(_: FaultSite, frame: Frame) -> bool:
        if frame.kind is not Kind.EVENT or obj(frame.json).get("type") != kind:
            return False
        return not item or dig(frame.json, "item", "type") == item

    return Selector(f"{kind} {item}".rstrip(), fits)


def is_a(*kinds: str) -> Callable[[FaultSite, Frame, Frame], bool]:
    """Return a test whether the frame that came now is an event of one of these types."""
    return lambda _, __, now: obj(now.json).get("type") in kinds


def of_a_later_process(_: FaultSite, frame: Frame) -> bool:
    """Return whether a frame is of another process than the first."""
    return frame.connection != "p1"


def edit_last_mark(body: type[Any], how: Callable[[Any], MarkBody]) -> StoredOnly:
    """Return a change of the last mark of a class; it raises `NotApplied` if nothing changes."""

    def make(_: FaultSite, trace: Trace) -> Trace:
        marks: list[Mark[Any]] = trace.marks_of(body)
        if not marks:
            raise NotApplied(f"no mark {body.kind}")
        changed = replace_marks(trace, marks[-1:], how)
        if [mark.body for mark in changed.marks] == [mark.body for mark in trace.marks]:
            raise NotApplied(f"nothing to change in the last mark {body.kind}")
        return changed

    return StoredOnly(MARKS, make)


def behind_another(site: FaultSite, frame: Frame) -> bool:
    """Return whether an item of another type came before in the same stream."""
    return bool(id_of_another(site, frame))


def id_of_another(site: FaultSite, frame: Frame) -> str:
    """Return the id of the last item of another type in the same stream, "" for none."""
    own_type = text(dig(frame.json, "item", "type"))
    other_ids = [
        text(dig(other.json, "item", "id"))
        for other in site.frames
        if other.connection == frame.connection
        and other.seq < frame.seq
        and text(dig(other.json, "item", "type")) not in ("", own_type)
    ]
    return other_ids[-1] if other_ids else ""


def without_history(call: ModelCall) -> ModelCall:
    """Return a model call with the last text of the user alone."""
    return replace(call, user_texts=(call.user_texts or ())[-1:])


def kept_elsewhere(search: HomeSearched) -> HomeSearched:
    """Return a search that finds the same texts in a file beside the sessions folder."""
    matches = tuple(
        FileMatch(match.path.replace("/sessions/", "/threads/"), match.named[:1], match.held)
        for match in search.found
    )
    return replace(search, found=matches)


def complete_turn(message: Any) -> Any:
    """Return turn.completed in place of a failure."""
    usage = {"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1}
    return {"type": "turn.completed", "usage": usage}


ORDER = "thread.started, turn.started, the events of items, then one end."
FAULTS: tuple[Fault, ...] = (
    Fault(
        "exec-thread-behind-its-turn",
        rule="exec.thread-first",
        on="exec-plain",
        reason=ORDER,
        change=delay(event("thread.started"), "turn.started", is_a("turn.started")),
    ),
    Fault(
        "exec-thread-is-not-named",
        rule="exec.thread-first",
        on="exec-plain",
        reason=ORDER,
        change=first(event("thread.started"), drop),
    ),
    Fault(
        "exec-thread-named-again",
        rule="exec.thread-first",
        on="exec-plain",
        reason=ORDER,
        change=first(
            event("turn.started"), insert({"type": "thread.started", "thread_id": "thr_1"})
        ),
    ),
    Fault(
        "exec-item-before-its-turn",
        rule="exec.turn-before-items",
        on="exec-plain",
        reason=ORDER,
        change=delay(event("turn.started"), "an item", is_a(*ITEMS)),
    ),
    Fault(
        "exec-turn-ends-twice",
        rule="exec.end-is-last",
        on="exec-plain",
        reason=ORDER,
        change=first(event("turn.completed"), duplicate),
    ),
    Fault(
        "exec-turn-fails-behind-its-end",
        rule="exec.end-is-last",
        on="exec-plain",
        reason=ORDER,
        change=first(
            event("turn.completed"), insert({"type": "turn.failed", "error": {"message": "no"}})
        ),
    ),
    Fault(
        "exec-item-behind-the-end",
        rule="exec.end-is-last",
        on="exec-plain",
        reason=ORDER,
        change=delay(
            event("item.completed", "agent_message"), "turn.completed", is_a("turn.completed")
        ),
    ),
    Fault(
        "exec-turn-never-ends",
        rule="exec.turn-ends",
        on="exec-plain",
        reason="turn.completed or turn.failed comes after the events of items.",
        change=first(event("turn.completed"), drop),
    ),
    Fault(
        "exec-turn-goes-on-after-an-error",
        rule="exec.error-is-fatal",
        on="exec-plain",
        reason="The error event tells a fatal error.",
        change=first(event("turn.started"), insert({"type": "error", "message": "again"})),
    ),
    Fault(
        "exec-line-that-is-no-event",
        rule="exec.events-typed",
        on="exec-plain",
        reason="What is streamed are events.",
        change=first(event("thread.started"), insert(b"warming up")),
    ),
    Fault(
        "exec-event-without-type",
        rule="exec.events-typed",
        on="exec-plain",
        reason="A streamed event is told by its type.",
        change=first(event("thread.started"), insert({"event": "ready"})),
    ),
    Fault(
        "exec-event-of-no-type",
        rule="exec.events-typed",
        on="exec-plain",
        reason="A type that the table does not have is worth recording.",
        change=first(event("thread.started"), insert({"type": "thread.ready"})),
    ),
    Fault(
        "exec-thread-without-id",
        rule="exec.event-members",
        on="exec-plain",
        reason="thread.started carries thread_id.",
        change=first(event("thread.started"), remove("thread_id")),
    ),
    *(
        Fault(
            f"exec-{kind.replace('.', '-')}-without-item",
            rule="exec.event-members",
            on="exec-plain",
            reason=f"{kind} carries an item.",
            change=first(event(kind, "todo_list"), remove("item")),
        )
        for kind in ITEMS
    ),
    Fault(
        "exec-end-without-usage",
        rule="exec.event-members",
        on="exec-plain",
        reason="turn.completed carries usage.",
        change=first(event("turn.completed"), remove("usage")),
    ),
    Fault(
        "exec-failure-without-error",
        rule="exec.event-members",
        on="exec-failed",
        reason="turn.failed carries an error with a message.",
        change=first(event("turn.failed"), remove("error")),
    ),
    Fault(
        "exec-failure-without-message",
        rule="exec.event-members",
        on="exec-failed",
        reason="turn.failed carries an error with a message.",
        change=first(event("turn.failed"), remove("error", "message")),
    ),
    Fault(
        "exec-error-without-message",
        rule="exec.event-members",
        on="exec-failed",
        reason="error carries a message.",
        change=first(event("error"), remove("message")),
    ),
    Fault(
        "exec-usage-in-words",
        rule="exec.usage",
        on="exec-plain",
        reason="The three members of usage are numbers.",
        change=first(event("turn.completed"), edit("usage", "output_tokens", to="two")),
    ),
    Fault(
        "exec-usage-without-cached",
        rule="exec.usage",
        on="exec-plain",
        reason="The three members of usage are numbers.",
        change=first(event("turn.completed"), remove("usage", "cached_input_tokens")),
    ),
    Fault(
        "exec-message-without-text",
        rule="exec.item-members",
        on="exec-plain",
        reason="An agent_message has text.",
        change=first(event("item.completed", "agent_message"), remove("item", "text")),
    ),
    Fault(
        "exec-command-in-camel-case",
        rule="exec.item-members",
        on="exec-plain",
        reason="A command_execution has aggregated_output.",
        change=first(
            event("item.completed", "command_execution"),
            remove("item", "aggregated_output"),
            edit("item", "aggregatedOutput", to="a\n"),
        ),
    ),
    Fault(
        "exec-command-without-status",
        rule="exec.item-members",
        on="exec-plain",
        reason="A command_execution has status.",
        change=first(event("item.started", "command_execution"), remove("item", "status")),
    ),
    Fault(
        "exec-plan-in-words",
        rule="exec.item-members",
        on="exec-plain",
        reason="completed of an entry of a todo_list is a boolean.",
        change=first(
            event("item.started", "todo_list"), edit("item", "items", 0, "completed", to="no")
        ),
    ),
    Fault(
        "exec-item-without-type",
        rule="exec.item-members",
        on="exec-plain",
        reason="An item is told by its type.",
        change=first(event("item.completed", "agent_message"), remove("item", "type")),
    ),
    Fault(
        "exec-item-of-the-session",
        rule="exec.item-members",
        on="exec-plain",
        reason="A type that the table does not have is worth recording.",
        change=first(
            event("item.completed", "agent_message"), edit("item", "type", to="agentMessage")
        ),
    ),
    Fault(
        "exec-item-completed-twice",
        rule="exec.item-life",
        on="exec-plain",
        reason="item.completed is the last event of an item.",
        change=first(event("item.completed", "command_execution"), duplicate),
    ),
    Fault(
        "exec-item-started-twice",
        rule="exec.item-life",
        on="exec-plain",
        reason="item.started is the first event of an item.",
        change=first(event("item.started", "command_execution"), duplicate),
    ),
    Fault(
        "exec-item-of-another-type-at-last",
        rule="exec.item-life",
        on="exec-plain",
        reason="An item is told by its type.",
        change=first(
            event("item.completed", "agent_message").where(behind_another, "behind another"),
            edit_by("item", "id", value=id_of_another),
        ),
    ),
    Fault(
        "exec-another-thread-goes-on",
        rule="exec.resumed-thread",
        on="exec-resumed",
        reason="A resumed thread keeps its id.",
        change=first(
            event("thread.started").where(of_a_later_process, "of a later process"),
            edit("thread_id", to="thr_2"),
        ),
    ),
    Fault(
        "exec-thread-forgets",
        rule="exec.resumed-history",
        on="exec-resumed",
        reason="A resumed thread goes on where it stopped.",
        change=edit_last_mark(ModelCall, without_history),
    ),
    Fault(
        "exec-thread-kept-elsewhere",
        rule="exec.thread-kept",
        on="exec-resumed",
        reason="Threads are kept below the sessions folder.",
        change=edit_last_mark(HomeSearched, kept_elsewhere),
    ),
    Fault(
        "exec-another-model-is-asked",
        rule="exec.model-asked",
        on="exec-plain",
        reason="The option names the model.",
        change=edit_last_mark(ModelCall, lambda call: replace(call, model="model-of-nobody")),
    ),
    Fault(
        "exec-failure-passes-for-an-end",
        rule="exec.failure-told",
        on="exec-failed",
        reason="A turn that fails by its key yields turn.failed.",
        change=first(event("turn.failed"), rewrite(complete_turn)),
    ),
    Fault(
        "exec-structured-answer-in-prose",
        rule="exec.structured-answer",
        on="exec-structured",
        reason="With an output schema the final response is JSON text.",
        change=first(event("item.completed", "agent_message"), edit("item", "text", to="n is 1")),
    ),
    Fault(
        "exec-structured-answer-of-another-shape",
        rule="exec.structured-answer",
        on="exec-structured",
        reason="The output schema is that of the final response.",
        change=first(event("item.completed", "agent_message"), edit("item", "text", to='{"m": 1}')),
    ),
    Fault(
        "exec-message-otherwise-than-the-session",
        rule="exec.agrees-with-session",
        on="exec-compared",
        reason="One agent tells the same of the same work.",
        change=first(event("item.completed", "agent_message"), edit("item", "text", to="Bye.")),
    ),
    Fault(
        "exec-turn-ends-otherwise-than-the-session",
        rule="exec.agrees-with-session",
        on="exec-compared",
        reason="One agent tells the same of the same work.",
        change=first(
            event("turn.completed"),
            rewrite(lambda _: {"type": "turn.failed", "error": {"message": "no"}}),
        ),
    ),
)
