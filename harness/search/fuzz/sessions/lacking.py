"""Features that a session shows, and those that a step in vain shows to be absent.

A server that is slow is none that lacks something: what comes late shows in the trace, which goes
on to its end after the step that waited in vain.
"""

from collections.abc import Sequence

from harness.play.run import Run
from harness.protocol.values import dig, obj, text
from harness.scenario.player import UnmetKind
from harness.search.fuzz.sessions.cuts import only
from harness.search.fuzz.sessions.turns import COMMAND, FILE, UNTRUSTED, Json
from harness.trace.correlation import Correlation
from harness.trace.frame import Frame, Kind
from harness.trace.marks import StepBegins
from harness.trace.trace import End, Trace

# What may change the model that a thread has, and so its tools, or calls the model without any.
_CHANGING = ("thread/resume", "thread/fork", "thread/unarchive", "thread/compact/start")
_BY_ITEM = {"commandExecution": "run", "fileChange": "patch", "contextCompaction": "compact"}
_BY_METHOD = {"turn/plan/updated": "plan", COMMAND: "approvals", FILE: "approvals"}


def shown(trace: Trace) -> set[str]:
    """Return what the server did by itself, as `Offers` names it; requests alone show nothing."""
    messages = [frame for frame in trace.frames if frame.from_target]
    features = {_BY_METHOD.get(frame.method, "") for frame in messages}
    features |= {_BY_ITEM.get(text(dig(frame.params, "item", "type")), "") for frame in messages}
    return features - {""}


def tells(document: Json, run: Run) -> bool:
    """Return whether the step that could not be done says that the server does not offer it.

    Not where a question was waited for under a policy under which a server need not ask, where what
    was waited for came after all, or could still have come, nor where a tool may have been lost on
    the way: some servers offer it to the model with which a thread began, and to no other.
    """
    unmet = run.unmet
    if unmet is None:
        return False
    steps = document["client"]
    index = min(unmet.line, len(steps)) - 1
    if unmet.capability:
        return only(steps[index])[0] == "connect" or not any(map(_changes, steps[:index]))
    if _question(steps[index]) and policy_at(steps, index) != UNTRUSTED:
        return False
    if unmet.kind is not UnmetKind.TIMEOUT:
        return True
    return run.ending.end is End.QUIESCENT and _never_came(steps[index], run.trace)


def unasked(document: Json, run: Run) -> str:
    """The policy, other than `untrusted`, of a question that never came, "" for none.

    The text leaves it to the server what it asks about under such a policy.
    """
    unmet, steps = run.unmet, document["client"]
    if unmet is None or unmet.kind is not UnmetKind.TIMEOUT or run.ending.end is not End.QUIESCENT:
        return ""
    index = min(unmet.line, len(steps)) - 1
    policy = policy_at(steps, index) if _question(steps[index]) else ""
    return policy if policy != UNTRUSTED and _never_came(steps[index], run.trace) else ""


def _changes(step: Json) -> bool:
    kind, body = only(step)
    return kind == "restart" or (kind == "request" and body["method"] in _CHANGING)


def _never_came(step: Json, trace: Trace) -> bool:
    """Return whether a whole trace does not have what a step waited for.

    That is a message, or an answer.
    """
    begun = [mark.after for mark in trace.marks_of(StepBegins)]
    since = [frame for frame in trace.frames if frame.seq > begun[-1]] if begun else []
    kind, body_value = only(step)
    body, question = obj(body_value), _question(step)
    if question:
        return not any(frame.from_target and frame.method == question for frame in since)
    if kind == "request":
        exchanges = Correlation(trace.frames)
        requests = [
            frame for frame in since if frame.kind is Kind.REQUEST and not frame.from_target
        ]
        same_requests = [request for request in requests if request.method == body["method"]]
        return all(exchanges.answer_of(request) is None for request in same_requests)
    return "notification" in body and not any(_is_told(frame, body) for frame in since)


def _is_told(frame: Frame, body: Json) -> bool:
    """Return whether a message is the notification that a step waits for."""
    return (
        frame.from_target
        and frame.method == body.get("notification")
        and all(
            dig(frame.params, *path.split(".")) == value
            for path, value in obj(body.get("where")).items()
        )
    )


def _question(step: Json) -> str:
    """The server request that a step waits for, "" for none."""
    kind, body_value = only(step)
    body = obj(body_value)
    return text(body.get("to") if kind == "answer" else body.get("request"))


def policy_at(steps: Sequence[Json], at: int) -> str:
    """The approval policy of the turn about which a step is asked, "" where none was named."""
    turn = _named(obj(obj(only(steps[at])[1]).get("where")).get("turnId"))
    policy, thread = "", ""
    for step in reversed(steps[:at]):
        kind, body_value = only(step)
        body = obj(body_value)
        if kind == "start_turn" and turn and body.get("as") == turn:
            thread, turn = text(body.get("thread")), ""
        elif not thread or body.get("as") != thread:
            continue
        elif kind == "request":
            # A fork goes on as the thread did that it was made of.
            thread = _named(obj(body.get("params")).get("threadId"))
        policy = policy or text(obj(body.get("params")).get("approvalPolicy"))
    return policy


def _named(reference: object) -> str:
    """The alias in `$alias.turn.id`."""
    return text(reference).removeprefix("$").split(".")[0]
