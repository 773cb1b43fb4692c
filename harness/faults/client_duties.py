"""Faults of clients: violations of each duty, applied to the stored trace of a dutiful client.

They are not faults of servers, so they are not among those of `all_faults`.
"""

from typing import Any, Final

from harness.faults import stored
from harness.faults.approval_selectors import decision, question
from harness.faults.base import Fault, NotApplied, StoredOnly, faults_by_id
from harness.faults.changes import first
from harness.faults.operators import cut, duplicate, edit, insert, remove, rewrite
from harness.faults.queue import Change
from harness.faults.selectors import answer_to, our_frame, our_request
from harness.faults.site import COMMAND, FILE, FaultSite
from harness.trace.frame import Kind, Origin
from harness.trace.trace import Trace

ON: Final = "dutiful"
_STRAY: Final[dict[str, Any]] = {"id": 4711, "result": {"decision": "accept"}}
_UNKNOWN_METHOD: Final[dict[str, Any]] = {"code": -32601, "message": "method not found"}
_TURN: Final[dict[str, Any]] = {"threadId": "thr_1", "turn": {"id": "turn_1"}}
_SECOND_TURN: Final[dict[str, Any]] = {
    "method": "turn/start",
    "id": 4711,
    "params": {"threadId": "thr_1", "input": [{"type": "text", "text": "and this"}]},
}


def _send_extra(message: Any) -> Change:
    """Return a change that adds a message of the client after the answer to thread/start."""
    return first(answer_to("thread/start"), insert(message, Origin.HARNESS))


def _ask(method: str, identifier: Any = 4711, **params: Any) -> Change:
    return _send_extra({"method": method, "id": identifier, "params": params})


def _edit_turn_start(*path: str | int, to: Any) -> Change:
    return first(our_request("turn/start"), edit("params", *path, to=to))


def _fault(name: str, duty: str, reason: str, change: Change | StoredOnly) -> Fault:
    return Fault(f"client-{name}", f"duty.{duty}", ON, reason, change)


def stop_at_question(site: FaultSite, trace: Trace) -> Trace:
    """Return the trace up to the first approval request, so that the client never answers it."""
    questions = [frame for frame in site.frames if question().fits(site, frame)]
    if not questions:
        raise NotApplied("no request for an approval")
    return stored.drop(trace, *trace.frames[questions[0].seq + 1 :])


def delay_initialize(site: FaultSite, trace: Trace) -> Trace:
    """Return the trace with another request of the client before its initialize."""
    initialize = next((frame for frame in site.frames if frame.method == "initialize"), None)
    if initialize is None or initialize.seq:
        raise NotApplied("no initialize as the first message")
    request: dict[str, Any] = {"method": "thread/loaded/list", "id": initialize.id, "params": {}}
    changed = stored.change(trace, [initialize], lambda _: request)
    again = {**initialize.json, "id": 4711}
    return stored.insert(changed, after=changed.frames[1], message=again, origin=Origin.HARNESS)


FAULTS: Final = (
    _fault(
        "answers-what-nobody-asked",
        "answer-known",
        "An answer has the id of a request that the server sent.",
        _send_extra(_STRAY),
    ),
    _fault(
        "answers-as-text",
        "answer-known",
        'The id of an answer is that of the request: "1" is not 1.',
        first(decision(FILE), edit("id", to="1")),
    ),
    _fault(
        "answers-twice",
        "answer-once",
        "After the first answer the request waits for none.",
        first(decision(), duplicate),
    ),
    _fault(
        "answers-a-notification",
        "notification-unanswered",
        "A notification has no id, so an error for it names no request.",
        first(decision(), insert({"id": None, "error": _UNKNOWN_METHOD}, Origin.HARNESS)),
    ),
    _fault(
        "decides-nothing",
        "answer-form",
        "The result of an approval has a decision.",
        first(decision(), edit("result", to={})),
    ),
    _fault(
        "answers-with-null",
        "answer-form",
        "The result of an approval is an object with a decision.",
        first(decision(), edit("result", to=None)),
    ),
    _fault(
        "accepts-and-fails",
        "answer-form",
        "An answer is a result or an error, not both.",
        first(decision(), edit("error", to={"code": 1, "message": "no"})),
    ),
    _fault(
        "decides-by-an-old-word",
        "decision-known",
        "approved is none of the six words.",
        first(decision(COMMAND), edit("result", "decision", to="approved")),
    ),
    _fault(
        "decides-by-an-object",
        "decision-known",
        "A decision is one of the six words, a string.",
        first(decision(COMMAND), edit("result", "decision", to={"accept": {}})),
    ),
    _fault(
        "cancels-a-file-change",
        "decision-known",
        "cancel is a decision on commands; on a file change there are accept and decline.",
        first(decision(FILE), edit("result", "decision", to="cancel")),
    ),
    _fault(
        "ignores-a-question",
        "answers",
        "The client answers every request of the server.",
        StoredOnly("a stream does not end at a question", stop_at_question),
    ),
    _fault(
        "sends-half-a-line",
        "message-form",
        "Half an object is no JSON.",
        first(our_request("skills/config/write"), cut),
    ),
    _fault(
        "sends-an-array",
        "message-form",
        "A message is one object; the forms have no batches.",
        first(our_request("skills/config/write"), rewrite(lambda message: [message])),
    ),
    _fault(
        "loses-a-method",
        "message-form",
        "A request has a method.",
        first(our_request("skills/config/write"), remove("method")),
    ),
    _fault(
        "asks-by-null",
        "message-form",
        "The id of a request is a number: no response could name null.",
        first(our_request("skills/config/write"), edit("id", to=None)),
    ),
    _fault(
        "sends-params-as-an-array",
        "message-form",
        "The params of a request are an object.",
        first(our_request("skills/config/write"), edit("params", to=[])),
    ),
    _fault(
        "sends-null-params",
        "message-form",
        "The params of a request are an object: null is none.",
        first(our_request("thread/list"), edit("params", to=None)),
    ),
    _fault(
        "asks-by-text",
        "id-number",
        "The form of a request has a number as its id.",
        _ask("thread/loaded/list", "seven"),
    ),
    _fault(
        "asks-twice-by-one-id",
        "id-free",
        "A response could be for either of the two.",
        first(our_request("thread/start"), duplicate),
    ),
    _fault(
        "asks-for-the-unheard-of",
        "method-known",
        "The text names no such operation: recorded.",
        _ask("thread/describe", threadId="thr_1"),
    ),
    _fault(
        "asks-for-an-approval",
        "right-direction",
        "Requests for approval are the server's.",
        _ask(COMMAND, threadId="thr_1", turnId="turn_1", itemId="call_1"),
    ),
    _fault(
        "tells-of-a-turn",
        "right-direction",
        "Notifications of turns come from the server.",
        _send_extra({"method": "turn/completed", "params": _TURN}),
    ),
    _fault(
        "starts-a-turn-by-a-notification",
        "request-has-id",
        "An operation is a request, and has an id.",
        first(our_request("turn/start"), remove("id")),
    ),
    _fault(
        "shakes-hands-late",
        "handshake-first",
        "initialize after other requests: servers that need it have refused those.",
        StoredOnly("a stream cannot hold back the first message for a later one", delay_initialize),
    ),
    _fault(
        "shakes-hands-twice",
        "handshake-first",
        "A second initialize on a connection: servers that have it refuse it.",
        _ask("initialize", clientInfo={}),
    ),
    _fault(
        "requests-initialized",
        "handshake-first",
        "initialized is a notification: servers that have it refuse a request of that name.",
        first(
            our_frame(Kind.NOTIFICATION).where(lambda _, f: f.method == "initialized"),
            rewrite(lambda message: {**message, "id": 4711}),
            insert({"id": 4711, "error": _UNKNOWN_METHOD}),
        ),
    ),
    _fault(
        "calls-what-is-not-ready",
        "remote-skills",
        "skills/remote/list is under development.",
        _ask("skills/remote/list"),
    ),
    _fault(
        "forgets-the-input",
        "params-complete",
        "turn/start needs input.",
        first(our_request("turn/start"), remove("params", "input")),
    ),
    _fault(
        "forgets-the-text",
        "params-complete",
        "An input of type text has a text.",
        first(our_request("turn/start"), remove("params", "input", 0, "text")),
    ),
    _fault(
        "forgets-the-expected-turn",
        "params-complete",
        "turn/steer needs expectedTurnId.",
        first(our_request("turn/steer"), remove("params", "expectedTurnId")),
    ),
    _fault(
        "forgets-the-network",
        "params-complete",
        "A policy workspaceWrite says whether there is network access.",
        first(our_request("turn/start"), remove("params", "sandboxPolicy", "networkAccess")),
    ),
    _fault(
        "says-what-there-is-no-type-for",
        "params-valid",
        "There is no input of type video.",
        _edit_turn_start("input", 0, "type", to="video"),
    ),
    _fault(
        "says-text-alone",
        "params-valid",
        "The input is an array of objects.",
        _edit_turn_start("input", to="hello"),
    ),
    _fault(
        "tries-hard",
        "params-valid",
        "effort is low, medium or high.",
        _edit_turn_start("effort", to="maximal"),
    ),
    _fault(
        "sorts-by-camel-case",
        "params-valid",
        "sortKey is created_at or updated_at.",
        first(our_request("thread/list"), edit("params", "sortKey", to="createdAt")),
    ),
    _fault(
        "limits-by-text",
        "params-valid",
        "limit is a number.",
        first(our_request("thread/list"), edit("params", "limit", to="1")),
    ),
    _fault(
        "names-the-folder-of-a-skill",
        "skill-paths",
        "The path of a skill is that of its SKILL.md.",
        _edit_turn_start("input", 1, "path", to="/home/user/.agent/skills/tidy"),
    ),
    _fault(
        "configures-by-a-relative-path",
        "skill-paths",
        "The path of a skill is absolute.",
        first(
            our_request("skills/config/write"), edit("params", "path", to="skills/tidy/SKILL.md")
        ),
    ),
    _fault(
        "scans-a-relative-root",
        "skill-paths",
        "Extra roots are absolute.",
        first(
            our_request("skills/list"),
            edit("params", "perCwdExtraUserRoots", 0, "extraUserRoots", 0, to="more"),
        ),
    ),
    _fault(
        "makes-up-a-cursor",
        "cursor-given",
        "A cursor is opaque: there is no page of one that the server did not give.",
        first(
            our_request("thread/list").where(lambda _, f: "cursor" in f.params, "with a cursor"),
            edit("params", "cursor", to="page-3"),
        ),
    ),
    _fault(
        "pages-by-the-id-of-a-thread",
        "cursor-given",
        "The id of the last thread of a page is not its nextCursor.",
        first(
            our_request("thread/list").where(lambda _, f: "cursor" in f.params, "with a cursor"),
            edit("params", "cursor", to="thr_8"),
        ),
    ),
    _fault(
        "steers-by-an-id-of-its-own",
        "turn-known",
        "expectedTurnId is the id of the active turn, which the server gave.",
        first(our_request("turn/steer"), edit("params", "expectedTurnId", to="turn_mine")),
    ),
    _fault(
        "starts-a-turn-in-a-turn",
        "running-turn-steered",
        "turn/steer adds input to the running turn.",
        first(decision(), insert(_SECOND_TURN, Origin.HARNESS)),
    ),
    _fault(
        "interrupts-by-the-id-of-the-request",
        "turn-known",
        "turnId is the id of a turn, which the server gave.",
        first(our_request("turn/interrupt"), edit("params", "turnId", to="7")),
    ),
    _fault(
        "interrupts-by-the-id-of-the-thread",
        "turn-known",
        "turnId is the id of a turn: the server gave this id too, but to the thread.",
        first(our_request("turn/interrupt"), edit("params", "turnId", to="thr_1")),
    ),
    _fault(
        "steers-by-the-id-of-an-item",
        "turn-known",
        "expectedTurnId is the id of a turn: the server gave this id too, but to a command.",
        first(our_request("turn/steer"), edit("params", "expectedTurnId", to="call_1")),
    ),
)


def client_faults() -> dict[str, Fault]:
    """Return every fault of clients by id, sorted."""
    return dict(sorted(faults_by_id(FAULTS).items()))
