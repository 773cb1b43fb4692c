"""Faults of what a server asks its model, seen in the marks of the model calls."""

from typing import Any

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.trace.frame import Frame
from harness.trace.trace import Mark, Trace
from harness.trace.values import dig, obj


def _starts(scene: Scene) -> list[Frame]:
    """The turn/start requests of a trace with one connection and one thread that were granted."""
    starts = [scene.request_of(answer) for answer in scene.answers("turn/start")]
    threads = {str(obj(start.params).get("threadId")) for start in starts}
    if len(threads) > 1 or len({frame.connection for frame in scene.trace.frames}) > 1:
        raise NotApplied("one thread on one connection")
    return starts


def _calls(scene: Scene, start: Frame) -> list[Mark]:
    """The model calls between a turn/start and the end of its turn."""
    turns = scene.conversation.turns.values()
    ends = [t.completed[0].seq for t in turns if t.request is start and t.completed]
    calls = [
        mark
        for mark in scene.trace.marks_of("model-call")
        if ends and start.seq <= mark.after < ends[0] and "model" in mark.data
    ]
    if not calls:
        raise NotApplied("no model call in the turn")
    return calls


def _with(scene: Scene, key: str) -> int:
    """The place of the first turn/start that has this param."""
    for place, start in enumerate(_starts(scene)):
        if obj(start.params).get(key):
            return place
    raise NotApplied(f"no turn/start with {key}")


def _after(scene: Scene, key: str) -> Frame:
    """The turn/start after one with this param, itself without."""
    place, starts = _with(scene, key) + 1, _starts(scene)
    if place == len(starts) or obj(starts[place].params).get(key):
        raise NotApplied(f"no later turn/start without {key}")
    return starts[place]


def _of_the_thread(scene: Scene) -> str:
    """The model that the reply to thread/start names."""
    return str(dig(scene.answers("thread/start")[0].result, "model"))


@fault(
    "model-does-not-hear-the-user",
    rule="model.input-arrives",
    on="overrides",
    reason="What the user says in a turn is for the agent, so the model is asked it.",
)
def unheard(scene: Scene) -> Trace:
    """Calls without any text of the user."""
    return op.remark(scene.trace, _calls(scene, _starts(scene)[0]), user_texts=[])


@fault(
    "model-of-the-turn-not-called",
    rule="model.named",
    on="overrides",
    reason="The model of turn/start applies to this turn.",
)
def not_called(scene: Scene) -> Trace:
    """The model of the thread in the turn of the override."""
    start = _starts(scene)[_with(scene, "model")]
    return op.remark(scene.trace, _calls(scene, start), model=_of_the_thread(scene))


@fault(
    "model-of-the-turn-forgotten",
    rule="model.named",
    on="overrides",
    reason="The model of turn/start applies to the turns after it too.",
)
def forgotten(scene: Scene) -> Trace:
    """The old model in the turn after the override."""
    calls = _calls(scene, _after(scene, "model"))
    return op.remark(scene.trace, calls, model=_of_the_thread(scene))


@fault(
    "schema-not-passed",
    rule="model.schema-this-turn",
    on="overrides",
    reason="outputSchema binds the last message of its turn, so the model should know it.",
)
def schema_dropped(scene: Scene) -> Trace:
    """No schema in the calls of its own turn."""
    start = _starts(scene)[_with(scene, "outputSchema")]
    return op.remark(scene.trace, _calls(scene, start), schema=False)


@fault(
    "schema-kept",
    rule="model.schema-this-turn",
    on="overrides",
    reason="outputSchema applies to its turn only.",
)
def schema_kept(scene: Scene) -> Trace:
    """The schema in the calls of the next turn too."""
    return op.remark(scene.trace, _calls(scene, _after(scene, "outputSchema")), schema=True)


@fault(
    "effort-not-passed",
    rule="model.effort-passed",
    on="overrides",
    reason="An effort that the model never hears of changes nothing; the text does not say so.",
)
def effort_dropped(scene: Scene) -> Trace:
    """No effort in the calls."""
    start = _starts(scene)[_with(scene, "effort")]
    return op.remark(scene.trace, _calls(scene, start), effort="")


@fault(
    "summary-not-passed",
    rule="model.summary-passed",
    on="overrides",
    reason="A summary that the model never hears of changes nothing; the text does not say so.",
)
def summary_dropped(scene: Scene) -> Trace:
    """No summary in the calls."""
    start = _starts(scene)[_with(scene, "summary")]
    return op.remark(scene.trace, _calls(scene, start), summary="")


def _commands(scene: Scene, place: int) -> list[Frame]:
    """The messages with a command of the turn of this turn/start, asked for by the model."""
    start = _starts(scene)[place]
    _calls(scene, start)
    turn = next(t for t in scene.conversation.turns.values() if t.request is start)
    items = [item for item in turn.items.values() if item.type == "commandExecution"]
    if not items:
        raise NotApplied("no command in the turn")
    return [frame for item in items for frame in (*item.started, *item.completed)]


def _elsewhere(message: Any) -> Any:
    message["params"]["item"]["cwd"] = "/somewhere/else"
    return message


@fault(
    "command-ignores-the-cwd-of-its-turn",
    rule="turn.cwd-applies",
    on="commands",
    reason="cwd of turn/start applies to this turn.",
)
def cwd_ignored(scene: Scene) -> Trace:
    """Another folder in the turn of the override."""
    return op.change(scene.trace, _commands(scene, _with(scene, "cwd")), _elsewhere)


@fault(
    "cwd-of-a-turn-forgotten",
    rule="turn.cwd-applies",
    on="commands",
    reason="cwd of turn/start applies to the turns after it too.",
)
def cwd_forgotten(scene: Scene) -> Trace:
    """Another folder in the turn after the override."""
    _after(scene, "cwd")
    return op.change(scene.trace, _commands(scene, _with(scene, "cwd") + 1), _elsewhere)


@fault(
    "command-outside-its-thread",
    rule="thread.cwd-used",
    on="commands",
    reason="A thread's working directory is the one captured for it.",
)
def outside(scene: Scene) -> Trace:
    """Another folder in a turn before any override."""
    if obj(_starts(scene)[0].params).get("cwd"):
        raise NotApplied("the first turn has a folder of its own")
    return op.change(scene.trace, _commands(scene, 0), _elsewhere)
