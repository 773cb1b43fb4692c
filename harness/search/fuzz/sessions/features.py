"""Names of the server features that steps of a session need, as in `Offers`."""

from harness.play.run import Run
from harness.protocol.values import obj, text
from harness.search.fuzz.sessions.cuts import split_step
from harness.search.fuzz.sessions.session import FEATURES
from harness.search.fuzz.sessions.turns import Json

# A client that resumes a thread gets its open approval request again (not in the specification).
ASKED_AGAIN = "asked-again"
_BY_CAPABILITY = {
    "command-execution": "run",
    "file-change": "patch",
    "plan-update": "plan",
    "several-clients": "several",
}


def blamed_feature(document: Json, run: Run) -> str:
    """Return the feature to blame for a script that did not end, "" if it ended."""
    unmet = run.unmet
    if unmet is None:
        return ""
    if unmet.capability:
        return _BY_CAPABILITY.get(unmet.capability, unmet.capability)
    steps = document["client"]
    return feature_at(steps, min(unmet.line, len(steps)) - 1)


def feature_at(steps: list[Json], index: int) -> str:
    """Return the feature that the step at an index needs."""
    return ASKED_AGAIN if answers_repeated_question(steps, index) else feature_of(steps[index])


def answers_repeated_question(steps: list[Json], index: int) -> bool:
    """Return whether a step answers a request that the server must have sent again.

    That is so if a client left while the turn ran, and the answering one resumed the thread after
    that.
    """
    kind, body = split_step(steps[index])
    if kind != "answer":
        return False
    turn = text(obj(body.get("where")).get("turnId")).removeprefix("$").split(".")[0]
    since = [
        number
        for number, step in enumerate(steps[:index])
        if split_step(step)[0] == "start_turn" and split_step(step)[1].get("as") == turn
    ]
    kinds = [split_step(step) for step in steps[since[-1] if since else 0 : index]]
    disconnected_at = next(
        (number for number, step in enumerate(kinds) if step[0] == "disconnect"), index
    )
    return any(
        step[0] == "request"
        and step[1]["method"] == "thread/resume"
        and step[1].get("on") == body.get("on")
        for step in kinds[disconnected_at:]
    )


def feature_of(step: Json) -> str:
    """Return the name of a step's feature: an action, or a part of a turn."""
    kind, body = split_step(step)
    match kind:
        case "answer":
            return "approvals"
        case "connect":
            return "several"
        case "restart":
            return "restart"
        case "request":
            return FEATURES.get(body["method"], str(body["method"]))
        case "wait" if "notification" in body:
            return "compact"
        case "wait" if "request" in body:
            return "approvals"
        case _:
            return kind
