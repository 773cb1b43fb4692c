"""The name of what a step of a session needs of the server, as `Offers` has it."""

from harness.play.run import Run
from harness.protocol.values import obj, text
from harness.search.fuzz.sessions.cuts import only
from harness.search.fuzz.sessions.session import FEATURES
from harness.search.fuzz.sessions.turns import Json

# That a question is put again to who takes its thread up while it is open: no text says so.
ASKED_AGAIN = "asked-again"
_BY_CAPABILITY = {
    "command-execution": "run",
    "file-change": "patch",
    "plan-update": "plan",
    "several-clients": "several",
}


def blamed(document: Json, run: Run) -> str:
    """Return the feature to blame for a script that did not end, "" for one that did."""
    unmet = run.unmet
    if unmet is None:
        return ""
    if unmet.capability:
        return _BY_CAPABILITY.get(unmet.capability, unmet.capability)
    steps = document["client"]
    return feature_at(steps, min(unmet.line, len(steps)) - 1)


def feature_at(steps: list[Json], at: int) -> str:
    """The action, or part of a turn, that the step at this place belongs to."""
    return ASKED_AGAIN if asked_again(steps, at) else feature_of(steps[at])


def asked_again(steps: list[Json], at: int) -> bool:
    """Return whether a step answers a question that must have been put again.

    A client left while its turn ran, and this one took the thread up after that.
    """
    kind, body = only(steps[at])
    if kind != "answer":
        return False
    turn = text(obj(body.get("where")).get("turnId")).removeprefix("$").split(".")[0]
    since = [
        number
        for number, step in enumerate(steps[:at])
        if only(step)[0] == "start_turn" and only(step)[1].get("as") == turn
    ]
    kinds = [only(step) for step in steps[since[-1] if since else 0 : at]]
    disconnected_at = next(
        (number for number, step in enumerate(kinds) if step[0] == "disconnect"), at
    )
    return any(
        step[0] == "request"
        and step[1]["method"] == "thread/resume"
        and step[1].get("on") == body.get("on")
        for step in kinds[disconnected_at:]
    )


def feature_of(step: Json) -> str:
    """The action, or part of a turn, that a step belongs to, as `Offers` has it."""
    kind, body = only(step)
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
