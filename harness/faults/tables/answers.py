"""Faults of how the model's answers end up, and of what items say they are about."""

import itertools

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.trace.frame import Frame
from harness.trace.trace import Trace
from harness.trace.values import dig, text
from harness.trace.views import ItemView, TurnView


def _answered(scene: Scene) -> tuple[TurnView, ItemView]:
    """A completed turn whose model's text is that of a message, and the message."""
    if len({frame.connection for frame in scene.trace.frames}) > 1:
        raise NotApplied("one connection")
    said = {
        text(dig(one, "text"))
        for mark in scene.trace.marks_of("model-end")
        for one in mark.data.get("texts", ())
    }
    item = scene.item(
        "agentMessage",
        where=lambda one: text(dig(one.completed[0].params, "item", "text")) in said,
    )
    if item.turn.status != "completed" or item.turn.request is None:
        raise NotApplied("a turn of ours that was completed")
    return item.turn, item


def _failing(scene: Scene) -> TurnView:
    """A turn that failed with the calls of its model."""
    failed = [
        mark.after
        for mark in scene.trace.marks_of("model-end")
        if text(mark.data.get("outcome")).startswith("status 4")
    ]

    def within(turn: TurnView) -> bool:
        start = turn.request.seq if turn.request is not None else turn.completed[0].seq
        return any(start <= seq <= turn.completed[0].seq for seq in failed)

    return scene.turn("failed", where=within)


def _at_once(scene: Scene) -> list[ItemView]:
    """Commands with a process each that ran at the same time."""
    found = [
        item
        for turn in scene.conversation.turns.values()
        for item in turn.items.values()
        if item.type == "commandExecution" and len(item.completed) == len(item.started) == 1
        if text(dig(item.completed[0].params, "item", "processId"))
    ]
    for one, other in itertools.pairwise(found):
        if other.started[0].seq < one.completed[0].seq:
            return [one, other]
    raise NotApplied("no two commands at once, with a process each")


def _told_of(scene: Scene) -> ItemView:
    """A command whose output the model was told of."""
    outputs = [
        output
        for mark in scene.trace.marks_of("model-call")
        for output in mark.data.get("outputs", ())
    ]

    def told(item: ItemView) -> bool:
        kept = text(dig(item.completed[0].params, "item", "aggregatedOutput")).strip()
        return bool(kept) and any(kept in text(output) for output in outputs)

    return scene.item("commandExecution", where=told)


@fault(
    "model-failed-turn-completed",
    rule="turn.fails-with-its-model",
    on="causes",
    reason="A turn that ends in an error is failed, and its model has given nothing but errors.",
)
def failure_hidden(scene: Scene) -> Trace:
    """The turn of a refused call ends completed, without an error."""
    turn = _failing(scene)
    end = turn.completed[0]
    trace = op.edit(scene.trace, end, ("params", "turn", "status"), "completed")
    trace = op.edit(trace, trace.frames[end.seq], ("params", "turn", "error"), None)
    before = trace.frames[end.seq - 1]
    if before.method == "thread/status/changed":
        trace = op.edit(trace, before, ("params", "status", "type"), "idle")
    return trace


@fault(
    "answer-never-shown",
    rule="model.answer-shown",
    on="at-work",
    reason="The client receives what the agent does as items, and the answer is in none.",
)
def answer_lost(scene: Scene) -> Trace:
    """The message with the model's answer is missing."""
    return op.drop(scene.trace, *scene.about(_answered(scene)[1]))


@fault(
    "another-answer-shown",
    rule="model.answer-shown",
    on="at-work",
    reason="The text of an agentMessage is the reply as it came.",
)
def answer_replaced(scene: Scene) -> Trace:
    """The message has another text, whole at once."""
    _, item = _answered(scene)
    trace = op.edit(scene.trace, item.completed[0], ("params", "item", "text"), "I do not know.")
    deltas: list[Frame] = [trace.frames[frame.seq] for frame in scene.deltas(item)]
    return op.drop(trace, *deltas)


@fault(
    "schema-not-met",
    rule="turn.schema-kept",
    on="overrides",
    reason="outputSchema constrains the last message of its turn; who sees to it is not said.",
)
def schema_unmet(scene: Scene) -> Trace:
    """The last message is no JSON."""
    turn = scene.turn(
        where=lambda one: (
            one.request is not None
            and isinstance(dig(one.request.params, "outputSchema"), dict)
            and any(item.type == "agentMessage" for item in one.items.values())
        )
    )
    item = [one for one in turn.items.values() if one.type == "agentMessage" and one.completed][-1]
    trace = op.edit(scene.trace, item.completed[0], ("params", "item", "text"), "In words.")
    return op.drop(trace, *(trace.frames[frame.seq] for frame in scene.deltas(item)))


@fault(
    "output-told-and-not-kept",
    rule="model.output-shown",
    on="at-work",
    reason="What the model is told that a command printed is output of that command.",
)
def output_told_only(scene: Scene) -> Trace:
    """The item of a command has none of the output that the model was told."""
    item = _told_of(scene)
    path = ("params", "item", "aggregatedOutput")
    return op.edit(scene.trace, item.completed[0], path, "nothing\n")


@fault(
    "another-command-completed",
    rule="item.same-work",
    on="at-work",
    reason="item/completed carries the final form of the item that was started.",
)
def another_command(scene: Scene) -> Trace:
    """The completed item has another command than the one that was started."""
    item = scene.item("commandExecution")
    path = ("params", "item", "command")
    return op.edit(scene.trace, item.completed[0], path, "make everything")


@fault(
    "another-folder-completed",
    rule="item.same-work",
    on="at-work",
    reason="item/completed carries the final form of the item that was started.",
)
def another_folder(scene: Scene) -> Trace:
    """The completed item has another folder than the one that was started."""
    item = scene.item("commandExecution")
    return op.edit(scene.trace, item.completed[0], ("params", "item", "cwd"), "/elsewhere")


@fault(
    "one-process-for-two",
    rule="item.process-apart",
    on="at-work",
    reason="processId is the terminal process of the command, and two commands were running.",
)
def one_process(scene: Scene) -> Trace:
    """Two commands at the same time have one processId."""
    one, other = _at_once(scene)
    process = dig(one.completed[0].params, "item", "processId")
    path = ("params", "item", "processId")
    return op.edit(scene.trace, other.completed[0], path, process)


@fault(
    "operation-asked-of-the-client",
    rule="method.right-direction",
    on="approved-command",
    reason="Operations are requests of the client.",
)
def asked_of_the_client(scene: Scene) -> Trace:
    """The server asks for the thread as the client does."""
    turn = scene.turn()
    asked = {"method": "thread/read", "id": 987654321, "params": {"threadId": turn.thread_id}}
    return op.insert(scene.trace, after=turn.started[0], message=asked)


@fault(
    "provider-changes-by-itself",
    rule="thread.one-provider",
    on="plain-turn",
    reason="modelProvider is the one that the thread uses.",
)
def another_provider(scene: Scene) -> Trace:
    """thread/started names another provider than the reply."""
    frame = scene.announced_thread()
    path = ("params", "thread", "modelProvider")
    return op.edit(scene.trace, frame, path, "another-provider")
