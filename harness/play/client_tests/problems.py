"""Problems of a connection other than broken duties of its client."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from harness.model.model import ScriptedModel
from harness.protocol.escapes import visible
from harness.protocol.values import MISSING, obj
from harness.protocol.values import Path as JsonPath
from harness.scenario.client_steps import result_has, turn_alias_of
from harness.scenario.expect import SessionReading, unmet_expectations
from harness.scenario.loader import Loaded
from harness.scenario.player import Cast
from harness.trace.difference import literal
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.trace import Trace
from harness.trace.views import Conversation, conversation_of

# The code of a request whose method the server does not know (JSON-RPC 2.0).
_UNKNOWN_METHOD: Final = -32601


def problems_of(loaded: Loaded, model: ScriptedModel, trace: Trace, work: Path) -> Iterator[str]:
    """Yield a line for each problem: its place in the file, what was expected, what was found.

    `trace` has the messages of both sides, `work` is the workspace at the end.
    """
    yield from _call_problems(loaded, model)
    yield from _unplayed_step_problems(loaded, model)
    conversation = conversation_of(trace)
    evidence = SessionReading(_cast_turns(loaded, conversation, trace), conversation)
    for problem in unmet_expectations(loaded.scenario, evidence, model, work):
        if problem.place != ("model",):
            place = _place(loaded, *problem.place)
            yield "\n    ".join([f"{place}: {problem.message}", *problem.detail])


def refused_requests(trace: Trace, known_methods: Collection[str] = ()) -> Iterator[str]:
    """Yield a line for each request of the client that the server refused with an error.

    Its number in the trace, method, code and message; refusals that differ only in the number are
    one, with their count. Of `known_methods` no unknown method is told: the client got an answer.
    """
    conversation = conversation_of(trace)
    numbers: dict[str, list[int]] = {}
    for frame in trace.frames:
        request = conversation.request_of(frame) if frame.kind is Kind.ERROR else None
        if request is None or not frame.from_target:
            continue
        if request.method in known_methods and obj(frame.error).get("code") == _UNKNOWN_METHOD:
            continue
        code, message = (literal(obj(frame.error).get(key, MISSING)) for key in ("code", "message"))
        words = f"{literal(request.method)[1:-1]} {code} {message}"
        numbers.setdefault(words, []).append(request.seq)
    for words, seqs in numbers.items():
        times = f" ({len(seqs)} times)" if len(seqs) > 1 else ""
        yield visible(f"#{seqs[0]} {words}{times}")


def early_request_problem(trace: Trace) -> str | None:
    """Return the problem of a client whose first request is not initialize, else None."""
    sent = (frame for frame in trace.frames if frame.direction is Direction.TO_TARGET)
    first = next((frame for frame in sent if frame.kind is Kind.REQUEST), None)
    if first is None or first.method == "initialize":
        return None
    return f"--require-initialize: the client sent {first.method!r} before initialize"


def _call_problems(loaded: Loaded, model: ScriptedModel) -> Iterator[str]:
    """Yield the problems of the model calls."""
    for call in model.calls:
        place = _place(loaded, *_step_path(loaded, call.thread, call.index))
        for problem in call.problems:
            # After the end of the script, the model answers with a stock message.
            then = "; add a step, or start no further turn" if call.step is None else ""
            yield f"{place}: {problem}{then}"
    for unfit in model.missing_tools:
        names = ", ".join(tool.name for tool in unfit.offered_tools) or "none"
        yield f"{_place(loaded, 'model')}: no tool for {unfit.intent}; offered were: {names}"


def _unplayed_step_problems(loaded: Loaded, model: ScriptedModel) -> Iterator[str]:
    """Yield a problem for each model step without a call, unless the file counts the calls."""
    expect = loaded.scenario.expect
    if any(expectation.model_calls is not None for expectation in (expect, *expect.any_of)):
        return
    calls = f"the model was called {len(model.calls)} time(s)" if model.calls else "no call came"
    unplayed = model.unplayed_steps.items()
    for alias, index in ((alias, at) for alias, steps in unplayed for at in steps):
        place = _place(loaded, *_step_path(loaded, alias, index))
        of = f" of {alias}" if isinstance(loaded.scenario.model, dict) else ""
        yield f"{place}: model step {index + 1}{of} was never played: {calls}"


def _step_path(loaded: Loaded, alias: str, index: int) -> JsonPath:
    steps: JsonPath = ("model", alias) if isinstance(loaded.scenario.model, dict) else ("model",)
    return (*steps, index) if index >= 0 else ("model",)


def _place(loaded: Loaded, *loc: str | int) -> str:
    """Return `path:line` of a part of the file, or of the nearest enclosing part with a place."""
    return f"{loaded.path}:{loaded.line_of(*loc)}"


def _cast_turns(loaded: Loaded, conversation: Conversation, trace: Trace) -> Cast:
    """Return the turns by the file's aliases: the first turn started has the first alias."""
    scenario = loaded.scenario
    named = [alias for alias in map(turn_alias_of, scenario.steps) if alias]
    names = iter(scenario.expected_turns() if scenario.is_clientless else named)
    cast = Cast()
    for number, (request, answer) in enumerate(_started_turns(conversation, trace), 1):
        cast.add_answer(next(names, f"turn {number}"), request, answer)
    return cast


def _started_turns(conversation: Conversation, trace: Trace) -> Iterator[tuple[Frame, Frame]]:
    """Yield each request that started a turn, with its answer, in the order of the answers."""
    for frame in trace.frames:
        request = conversation.request_of(frame) if frame.kind is Kind.RESPONSE else None
        if request is not None and result_has(request.method, "turn"):
            yield request, frame
