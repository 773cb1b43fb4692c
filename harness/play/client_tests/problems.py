"""Problems of a connection, beside the duties of its client."""

from collections.abc import Iterator
from pathlib import Path

from harness.model.model import ScriptedModel
from harness.protocol.values import Path as JsonPath
from harness.scenario.client_steps import gives, turn_named_by
from harness.scenario.expect import OfSession, unmet
from harness.scenario.loader import Loaded
from harness.scenario.player import Cast
from harness.trace.frame import Frame, Kind
from harness.trace.trace import Trace
from harness.trace.views import Conversation, conversation_of


def problems_of(loaded: Loaded, model: ScriptedModel, trace: Trace, work: Path) -> Iterator[str]:
    """Each problem in a line: where in the file, what was expected, what came.

    `trace` has what the client and the server said, `work` is the workspace at the end.
    """
    yield from _of_calls(loaded, model)
    yield from _of_steps(loaded, model)
    conversation = conversation_of(trace)
    told = OfSession(_cast(loaded, conversation, trace), conversation)
    for problem in unmet(loaded.scenario, told, model, work):
        if problem.where != ("model",):
            place = _place(loaded, *problem.where)
            yield "\n    ".join([f"{place}: {problem.message}", *problem.detail])


def _of_calls(loaded: Loaded, model: ScriptedModel) -> Iterator[str]:
    """Give the problems of the model calls."""
    for call in model.calls:
        place = _place(loaded, *_step(loaded, call.thread, call.index))
        for problem in call.problems:
            # Once the script is at its end, the answer is a stock message.
            then = "; add a step, or start no further turn" if call.step is None else ""
            yield f"{place}: {problem}{then}"
    for unfit in model.unfit:
        names = ", ".join(tool.name for tool in unfit.offered) or "none"
        yield f"{_place(loaded, 'model')}: no tool for {unfit.intent}; offered were: {names}"


def _of_steps(loaded: Loaded, model: ScriptedModel) -> Iterator[str]:
    """The steps that no call has used, unless the file says how many calls are right."""
    expect = loaded.scenario.expect
    if any(one.model_calls is not None for one in (expect, *expect.any_of)):
        return
    calls = f"the model was called {len(model.calls)} time(s)" if model.calls else "no call came"
    unplayed = model.unplayed_steps.items()
    for alias, index in ((alias, at) for alias, steps in unplayed for at in steps):
        place = _place(loaded, *_step(loaded, alias, index))
        of = f" of {alias}" if isinstance(loaded.scenario.model, dict) else ""
        yield f"{place}: model step {index + 1}{of} was never played: {calls}"


def _step(loaded: Loaded, alias: str, index: int) -> JsonPath:
    steps: JsonPath = ("model", alias) if isinstance(loaded.scenario.model, dict) else ("model",)
    return (*steps, index) if index >= 0 else ("model",)


def _place(loaded: Loaded, *loc: str | int) -> str:
    """`path:line` of a part of the file, or of the nearest part around it that has a place."""
    return f"{loaded.path}:{loaded.line(*loc)}"


def _cast(loaded: Loaded, conversation: Conversation, trace: Trace) -> Cast:
    """Return what the names of the file stand for: the first turn started is the first named."""
    scenario = loaded.scenario
    named = [alias for alias in map(turn_named_by, scenario.steps) if alias]
    names = iter(scenario.turns_named_by_expect() if scenario.is_clientless else named)
    cast = Cast()
    for number, (request, answer) in enumerate(_turns(conversation, trace), 1):
        cast.note(next(names, f"turn {number}"), request, answer)
    return cast


def _turns(conversation: Conversation, trace: Trace) -> Iterator[tuple[Frame, Frame]]:
    """The requests that started turns, in the order of their answers."""
    for frame in trace.frames:
        request = conversation.request_of(frame) if frame.kind is Kind.RESPONSE else None
        if request is not None and gives(request.method, "turn"):
            yield request, frame
