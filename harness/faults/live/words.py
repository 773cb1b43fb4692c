"""Descriptions of a live fault's acts: the message, and its change.

Only the method, ids and names of members are shown of a message: the rest may be secret.
"""

from typing import Any

from harness.faults.queue import Act
from harness.faults.site import FaultSite
from harness.protocol.values import dig, obj, show_path, text
from harness.trace.difference import difference
from harness.trace.excerpt import visible
from harness.trace.frame import Frame, Kind

# Longer ids are cut: their content is arbitrary.
_MAX_ID_CHARACTERS = 60


def describe_act(act: Act, site: FaultSite) -> str:
    """Describe an act: "changed turn/started (turn_1): params.turn.id"."""
    name = describe_frame(act.frame, site)
    match act.action:
        case "changed" if act.became is not None:
            return f"changed {name}: {_place(act.frame.json, act.became.json)}"
        case "inserted" if act.anchor is not None:
            return f"inserted {name} behind {describe_frame(act.anchor, site)}"
        case _ if act.anchor is not None:
            verb, _, preposition = act.action.partition(" ")
            return f"{verb} {name} {preposition or 'with'} {describe_frame(act.anchor, site)}"
        case _:
            return f"{act.action} {name}"


def describe_frame(frame: Frame, site: FaultSite) -> str:
    """Describe a message: "the answer to turn/start (id 3)", "item/started (msg_1)"."""
    side = "" if frame.from_target else " of the client"
    if frame.method:
        return f"{_short(frame.method)}{side}{_ids(frame)}"
    if frame.kind is Kind.EVENT:
        return f"the event {_short(text(obj(frame.json).get('type')))}"
    if frame.kind in (Kind.RESPONSE, Kind.ERROR):
        request = site.conversation.request_of(frame)
        target = f" to {_short(request.method)}" if request is not None else ""
        noun = "answer" if frame.kind is Kind.RESPONSE else "refusal"
        return f"the {noun}{side}{target}{_ids(frame)}"
    return f"a line{side} that is no message"


def _ids(frame: Frame) -> str:
    params = obj(frame.params)
    ids = [
        text(params.get("itemId")) or text(dig(params, "item", "id")),
        text(params.get("turnId")) or text(dig(params, "turn", "id")),
        text(params.get("threadId")) or text(dig(params, "thread", "id")),
    ]
    if isinstance(frame.id, (int, str)):
        ids = [f"id {frame.id}"]
    first = next((identifier for identifier in ids if identifier), "")
    return f" ({_short(first)})" if first else ""


def _place(before: Any, after: Any) -> str:
    """Return the first place where a message was changed, without its value."""
    path = difference(before, after).path
    return _short(show_path(path)) if path else "all of it"


def _short(name: str) -> str:
    return visible(name if len(name) <= _MAX_ID_CHARACTERS else name[:_MAX_ID_CHARACTERS] + "…")
