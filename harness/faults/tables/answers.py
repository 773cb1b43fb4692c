"""Faults of items: the model's answers in them, and the work that they name."""

from typing import Any

from harness.faults.base import Fault
from harness.faults.changes import first, requires, wait_for
from harness.faults.item_selectors import item_completed, item_in, item_started
from harness.faults.operators import Operator, edit, insert_by
from harness.faults.queue import FrameQueue, Steps
from harness.faults.selectors import (
    Selector,
    Verdict,
    notification,
    thread_announced,
    turn_completed,
    turn_in,
    turn_started,
)
from harness.faults.site import FaultSite, NotApplied
from harness.protocol.values import dig, text
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall, ModelEnd
from harness.trace.views import ItemView, TurnView

TEXT = ("params", "item", "text")


def final(item: ItemView, member: str) -> str:
    """Return a text that an item has at its end, "" if it has none."""
    return text(dig(item.completions[0].params, "item", member)) if item.completions else ""


def is_what_the_model_said(site: FaultSite, item: ItemView) -> bool:
    """Return whether a message is an answer of the model; True without marks."""
    if site.marks is None:
        return True
    ends = site.marks_of(ModelEnd)
    return final(item, "text") in {message.text for mark in ends for message in mark.body.texts}


def shows_the_answer(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether a message shows an answer of the model; None until it is completed."""
    item = item_in(site, frame)
    return is_what_the_model_said(site, item) if item.completions else None


def message_with_the_answer() -> Selector:
    """Select the start of an agentMessage that shows an answer of the model."""
    return item_started("agentMessage").where(shows_the_answer, "with an answer of the model")


def drop_item_notifications(queue: FrameQueue, frame: Frame) -> None:
    """Drop all notifications of the item that `frame` is about."""
    for other in queue.site.notifications_of(item_in(queue.site, frame)):
        queue.drop(other)


def replace_text_at_once(words: str) -> Operator:
    """Return an operator that completes a message with other words and without deltas."""

    def operate(queue: FrameQueue, frame: Frame) -> None:
        item = item_in(queue.site, frame)
        edit(*TEXT, to=words)(queue, item.completions[0])
        for delta in queue.site.deltas(item):
            queue.drop(delta)

    return operate


def last_message_under_a_schema(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether a message is the last of a turn with outputSchema; None until it ends."""
    message = item_in(site, frame)
    request = message.turn.request
    if request is None or not isinstance(dig(request.params, "outputSchema"), dict):
        return False
    messages = [item for item in message.turn.items.values() if item.type == "agentMessage"]
    if messages[-1] is not message:
        return False
    return bool(message.completions) if message.turn.completions else None


def model_was_told(site: FaultSite, frame: Frame) -> bool:
    """Return whether the model got the output of a command; True without marks."""
    stored = final(item_in(site, frame), "aggregatedOutput").strip()
    outputs = [output for mark in site.marks_of(ModelCall) for output in mark.body.outputs]
    return bool(stored) and (site.marks is None or any(stored in output for output in outputs))


def process_of(item: ItemView) -> str:
    """Return the processId of a command that has ended."""
    return final(item, "processId")


def has_a_process(site: FaultSite, frame: Frame) -> bool:
    """Return whether a command that has ended names its process."""
    return bool(process_of(item_in(site, frame)))


def runs_now(site: FaultSite, item: ItemView) -> bool:
    """Return whether another command of the thread has begun and not ended."""
    return any(
        other is not item
        and other.type == "commandExecution"
        and other.starts
        and not other.completions
        for turn in site.conversation.turns.values()
        for other in turn.items.values()
        if turn.thread_id == item.turn.thread_id
    )


def share_process_id(queue: FrameQueue) -> Steps:
    """Give two commands that run at the same time the same process.

    If the server runs them one after the other, the end of the first is moved behind the start of
    the second, which is legal by itself.
    """
    command_end = item_completed("commandExecution").where(has_a_process, "with a process")
    first_end = yield from wait_for(queue, command_end)
    item = item_in(queue.site, first_end)
    if not runs_now(queue.site, item):
        yield from _behind_the_next_start(queue, first_end, item)
    same_thread = command_end.where(
        lambda site, f: item_in(site, f).turn.thread_id == item.turn.thread_id, "of the same thread"
    )
    second_end = yield from wait_for(queue, same_thread)
    edit("params", "item", "processId", to=process_of(item))(queue, second_end)


def _behind_the_next_start(queue: FrameQueue, end: Frame, item: ItemView) -> Steps:
    """Delay the end of a command until after the start of the next one of its turn."""
    queue.hold(end)
    while (now := (yield)) is not None and now.method != "turn/completed":
        begun = queue.site.item_of(now) if now.method == "item/started" else None
        if begun is not None and begun.type == "commandExecution" and begun.turn is item.turn:
            queue.move_behind(end, now)
            return
    queue.release(end)
    raise NotApplied("no further command in the turn")


def failed_with_its_model(site: FaultSite, turn: TurnView) -> bool:
    """Return whether the model refused a call of a turn; True without marks."""
    if site.marks is None:
        return True
    start = turn.request.seq if turn.request is not None else turn.completions[0].seq
    return any(
        start <= mark.after <= turn.completions[0].seq
        for mark in site.marks_of(ModelEnd)
        if 400 <= mark.body.status < 500
    )


def before_the_failed_end(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether a systemError comes right before the end of a turn that failed with its model.

    None until the next frame comes.
    """
    if dig(frame.params, "status", "type") != "systemError":
        return False
    end = site.next_from_target(frame)
    if end is None:
        return None
    ended = turn_completed("failed").fits(site, end)
    return failed_with_its_model(site, turn_in(site, end)) if ended else ended


def hide_failure(queue: FrameQueue, frame: Frame) -> None:
    """Complete the turn of a refused call without an error, and make the thread idle."""
    edit("params", "status", "type", to="idle")(queue, frame)
    end = queue.site.next_from_target(frame)
    if end is not None:
        edit("params", "turn", "status", to="completed")(queue, end)
        edit("params", "turn", "error", to=None)(queue, end)


def question_for_the_client(site: FaultSite, frame: Frame) -> dict[str, Any]:
    """Return a thread/read from the server to the client."""
    params = {"threadId": turn_in(site, frame).thread_id}
    return {"method": "thread/read", "id": 987654321, "params": params}


FAULTS: tuple[Fault, ...] = (
    Fault(
        "model-failed-turn-completed",
        rule="turn.fails-with-its-model",
        on="causes",
        reason="A turn that ends in an error is failed, and its model has given nothing but "
        "errors.",
        change=first(
            notification("thread/status/changed").where(
                before_the_failed_end, "before the end of a turn that failed with its model"
            ),
            hide_failure,
        ),
    ),
    Fault(
        "answer-never-shown",
        rule="model.answer-shown",
        on="at-work",
        reason="The client receives what the agent does as items, and the answer is in none.",
        change=first(message_with_the_answer(), drop_item_notifications),
        condition=requires(turn_completed("completed")),
    ),
    Fault(
        "another-answer-shown",
        rule="model.answer-shown",
        on="at-work",
        reason="The text of an agentMessage is the reply as it came.",
        change=first(message_with_the_answer(), replace_text_at_once("I do not know.")),
        condition=requires(turn_completed("completed")),
    ),
    Fault(
        "schema-not-met",
        rule="turn.schema-kept",
        on="overrides",
        reason="outputSchema constrains the last message of its turn; who sees to it is not said.",
        change=first(
            item_started("agentMessage").where(
                last_message_under_a_schema, "that is the last under outputSchema"
            ),
            replace_text_at_once("In words."),
        ),
    ),
    Fault(
        "output-told-and-not-kept",
        rule="model.output-shown",
        on="at-work",
        reason="What the model is told that a command printed is output of that command.",
        change=first(
            item_completed("commandExecution").where(
                model_was_told, "whose output the model was told"
            ),
            edit("params", "item", "aggregatedOutput", to="nothing\n"),
        ),
    ),
    Fault(
        "another-command-completed",
        rule="item.same-work",
        on="at-work",
        reason="item/completed carries the final form of the item that was started.",
        change=first(
            item_completed("commandExecution"),
            edit("params", "item", "command", to="make everything"),
        ),
    ),
    Fault(
        "another-folder-completed",
        rule="item.same-work",
        on="at-work",
        reason="item/completed carries the final form of the item that was started.",
        change=first(
            item_completed("commandExecution"), edit("params", "item", "cwd", to="/elsewhere")
        ),
    ),
    Fault(
        "one-process-for-two",
        rule="item.process-apart",
        on="at-work",
        reason="processId is the terminal process of the command, and two commands were running.",
        change=share_process_id,
    ),
    Fault(
        "operation-asked-of-the-client",
        rule="method.right-direction",
        on="approved-command",
        reason="Operations are requests of the client.",
        change=first(turn_started(), insert_by(question_for_the_client)),
    ),
    Fault(
        "provider-changes-by-itself",
        rule="thread.one-provider",
        on="plain-turn",
        reason="modelProvider is the one that the thread uses.",
        change=first(
            thread_announced(), edit("params", "thread", "modelProvider", to="another-provider")
        ),
    ),
)
