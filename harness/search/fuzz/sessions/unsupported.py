"""Features that a session shows, and those that a failed step shows to be unsupported.

A slow server is not an unsupported feature: late messages are in the trace, which continues after
the step that timed out.
"""

from collections.abc import Sequence

from harness.play.run import Run
from harness.protocol.values import dig, obj, text
from harness.scenario.player import FailureKind
from harness.search.fuzz.sessions.cuts import split_step
from harness.search.fuzz.sessions.turns import COMMAND, FILE, UNTRUSTED, Json
from harness.trace.correlation import Correlation
from harness.trace.frame import Frame, Kind
from harness.trace.marks import StepBegins
from harness.trace.trace import End, Trace

# Requests that may change a thread's model and thus its tools, or call the model without tools.
_TOOL_CHANGING_METHODS = (
    "thread/resume",
    "thread/fork",
    "thread/unarchive",
    "thread/compact/start",
)
_BY_ITEM = {"commandExecution": "run", "fileChange": "patch", "contextCompaction": "compact"}
_BY_METHOD = {"turn/plan/updated": "plan", COMMAND: "approvals", FILE: "approvals"}


def shown_features(trace: Trace) -> set[str]:
    """Return the features that the server's messages show, as `Offers` names them."""
    messages = [frame for frame in trace.frames if frame.from_target]
    features = {_BY_METHOD.get(frame.method, "") for frame in messages}
    features |= {_BY_ITEM.get(text(dig(frame.params, "item", "type")), "") for frame in messages}
    return features - {""}


def proves_missing(document: Json, run: Run) -> bool:
    """Return whether the failed step shows that the server does not support its feature.

    It does not if the policy lets the server choose whether to request approval, if the awaited
    message came or could have come later, or if a tool may have been lost on the way: some servers
    offer tools only to the model with which a thread began.
    """
    unmet = run.unmet
    if unmet is None:
        return False
    steps = document["client"]
    index = min(unmet.line, len(steps)) - 1
    if unmet.capability:
        return split_step(steps[index])[0] == "connect" or not any(
            map(_may_change_tools, steps[:index])
        )
    if _question(steps[index]) and policy_at(steps, index) != UNTRUSTED:
        return False
    if unmet.kind is not FailureKind.TIMEOUT:
        return True
    return run.ending.end is End.QUIESCENT and _never_came(steps[index], run.trace)


def unasked_policy(document: Json, run: Run) -> str:
    """Return the policy, except `untrusted`, of an approval request that never came, else "".

    Under such a policy the specification lets the server choose what needs approval.
    """
    unmet, steps = run.unmet, document["client"]
    if (
        unmet is None
        or unmet.kind is not FailureKind.TIMEOUT
        or run.ending.end is not End.QUIESCENT
    ):
        return ""
    index = min(unmet.line, len(steps)) - 1
    policy = policy_at(steps, index) if _question(steps[index]) else ""
    return policy if policy != UNTRUSTED and _never_came(steps[index], run.trace) else ""


def _may_change_tools(step: Json) -> bool:
    kind, body = split_step(step)
    return kind == "restart" or (kind == "request" and body["method"] in _TOOL_CHANGING_METHODS)


def _never_came(step: Json, trace: Trace) -> bool:
    """Return whether the message or answer that a step awaited is missing in the trace."""
    begun = [mark.after for mark in trace.marks_of(StepBegins)]
    since = [frame for frame in trace.frames if frame.seq > begun[-1]] if begun else []
    kind, body_value = split_step(step)
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
    return "notification" in body and not any(_is_awaited(frame, body) for frame in since)


def _is_awaited(frame: Frame, body: Json) -> bool:
    """Return whether a message is the notification that a step awaits."""
    return (
        frame.from_target
        and frame.method == body.get("notification")
        and all(
            dig(frame.params, *path.split(".")) == value
            for path, value in obj(body.get("where")).items()
        )
    )


def _question(step: Json) -> str:
    """Return the method of the server request that a step awaits, "" for none."""
    kind, body_value = split_step(step)
    body = obj(body_value)
    return text(body.get("to") if kind == "answer" else body.get("request"))


def policy_at(steps: Sequence[Json], index: int) -> str:
    """Return the approval policy of a step's turn, "" if none was set."""
    turn = _alias_of(obj(obj(split_step(steps[index])[1]).get("where")).get("turnId"))
    policy, thread = "", ""
    for step in reversed(steps[:index]):
        kind, body_value = split_step(step)
        body = obj(body_value)
        if kind == "start_turn" and turn and body.get("as") == turn:
            thread, turn = text(body.get("thread")), ""
        elif not thread or body.get("as") != thread:
            continue
        elif kind == "request":
            # A fork inherits the policy of its origin.
            thread = _alias_of(obj(body.get("params")).get("threadId"))
        policy = policy or text(obj(body.get("params")).get("approvalPolicy"))
    return policy


def _alias_of(reference: object) -> str:
    """Return the alias in `$alias.turn.id`."""
    return text(reference).removeprefix("$").split(".")[0]
