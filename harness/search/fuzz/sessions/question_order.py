"""Waits that fix the order of server requests and steps in a failing document.

Whether a step is sent before or after a server request arrives is chance, unless a step waits for
the request.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from harness.protocol.values import dig, obj, text
from harness.scenario.player import FailureKind
from harness.search.fuzz.sessions.cuts import split_step
from harness.search.fuzz.sessions.play import Played
from harness.search.fuzz.sessions.turns import COMMAND, FILE, Json
from harness.trace.correlation import Correlation
from harness.trace.frame import Frame, Kind
from harness.trace.marks import EndingBegins, StepBegins

# Steps that can start a turn and give it an alias.
TURN_STEPS = ("start_turn", "request")


def pin_order(played: Played) -> Json:
    """Return the document with a wait for each server request that came before a step.

    Requests after the last step count too, since they are rejected at the end. A step that timed
    out is removed with all after it.
    """
    document, trace = played.document, played.run.trace
    steps = _played_steps(played)
    begun = [(mark.after, mark.body.line) for mark in trace.marks_of(StepBegins)]
    waits: defaultdict[int, list[Json]] = defaultdict(list)
    come: defaultdict[tuple[str, str], int] = defaultdict(int)
    # Requests answered by the harness at the end of the trace are ignored.
    ends_after = next((mark.after for mark in trace.marks_of(EndingBegins)), math.inf)
    for alias, frame in _questions(played):
        if frame.seq > ends_after:
            break
        name = frame.method or "", alias
        come[name] += 1
        index = next((line - 1 for after, line in begun if after >= frame.seq), len(steps))
        index = min(index, len(steps))
        wait = _wait(played, *name)
        if wait is not None and not _is_awaited(steps[: index + 1], *name, come[name]):
            waits[index].append(wait)
    client = [inner for index, step in enumerate(steps) for inner in (*waits.get(index, ()), step)]
    client += waits.get(len(steps), ())
    return {**document, "client": client} if client != document["client"] else document


def _played_steps(played: Played) -> list[Json]:
    """Return the steps before a `wait` or `answer` that timed out, else all."""
    steps: list[Json] = played.document["client"]
    unmet = played.run.unmet
    if unmet is None or unmet.kind is not FailureKind.TIMEOUT:
        return steps
    index = min(unmet.line, len(steps)) - 1
    return steps[:index] if split_step(steps[index])[0] in ("wait", "answer") else steps


def _questions(played: Played) -> Iterator[tuple[str, Frame]]:
    """Yield the approval requests to the client that started the turn, with the turn's alias."""
    frames, turns = played.run.trace.frames, played.run.cast.turns
    exchanges = Correlation(frames)
    beginners: dict[str, str] = {}
    for frame in frames:
        if frame.kind is Kind.REQUEST and frame.method == "turn/start" and not frame.from_target:
            answer = exchanges.answer_of(frame)
            turn = text(dig(answer.result, "turn", "id")) if answer is not None else ""
            beginners[turn] = frame.connection
    aliases = {turn: alias for alias, turn in turns.items()}
    for frame in frames:
        turn = text(dig(frame.params, "turnId"))
        asks = frame.from_target and frame.kind is Kind.REQUEST and frame.method in (COMMAND, FILE)
        if asks and turn in aliases and beginners.get(turn) == frame.connection:
            yield aliases[turn], frame


def _is_awaited(steps: Sequence[Json], method: str, alias: str, number: int) -> bool:
    """Return whether one of these steps awaits or answers the turn's request `number`."""
    answers, waits, begun = 0, False, False
    for step in steps:
        kind, body_value = split_step(step)
        body = obj(body_value)
        begun = begun or (kind in TURN_STEPS and body.get("as") == alias)
        question = text(body.get("to") if kind == "answer" else body.get("request"))
        # Without `where` it may be a request of any turn begun so far.
        turn_reference = obj(body.get("where")).get("turnId", f"${alias}.turn.id")
        if question != method or turn_reference != f"${alias}.turn.id" or not begun:
            continue
        if kind == "wait":
            waits = True
        elif kind == "answer" and not body.get("again"):
            answers, waits = answers + 1, False
    return answers >= number or waits


def _wait(played: Played, method: str, alias: str) -> Json | None:
    """Return a step that waits for the server request; None if no step names the turn."""
    steps = [split_step(step) for step in played.document["client"]]
    beginnings = (body for kind, body in steps if kind in TURN_STEPS and body.get("as") == alias)
    began = next(beginnings, None)
    if began is None:
        return None
    thread = f"${began['thread']}.thread.id" if "thread" in began else began["params"]["threadId"]
    condition = {"turnId": f"${alias}.turn.id", "threadId": thread}
    return {
        "wait": {
            "request": method,
            "where": condition,
            **({"on": began["on"]} if "on" in began else {}),
        }
    }
