"""The changes of a live fault in words: which message, and what was done to it.

No content of a message is told but its method, its ids and the names of members: the rest may be a
secret.
"""

from typing import Any

from harness.faults.queue import Act
from harness.faults.site import FaultSite
from harness.protocol.values import dig, obj, show_path, text
from harness.trace.difference import difference
from harness.trace.excerpt import visible
from harness.trace.frame import Frame, Kind

# An id longer than this is cut: whoever wrote it may have put anything into it.
_MAX_ID_CHARACTERS = 60


def told(act: Act, site: FaultSite) -> str:
    """ "dropped turn/completed (turn_1)", "changed turn/started (turn_1): params.turn.id"."""
    name = named(act.frame, site)
    match act.what:
        case "changed" if act.became is not None:
            return f"changed {name}: {_place(act.frame.json, act.became.json)}"
        case "inserted" if act.anchor is not None:
            return f"inserted {name} behind {named(act.anchor, site)}"
        case _ if act.anchor is not None:
            what, _, where = act.what.partition(" ")
            return f"{what} {name} {where or 'with'} {named(act.anchor, site)}"
        case _:
            return f"{act.what} {name}"


def named(frame: Frame, site: FaultSite) -> str:
    """A message as people know it: "the answer to turn/start (id 3)", "item/started (msg_1)"."""
    side = "" if frame.from_target else " of the client"
    if frame.method:
        return f"{_short(frame.method)}{side}{_ids(frame)}"
    if frame.kind is Kind.EVENT:
        return f"the event {_short(text(obj(frame.json).get('type')))}"
    if frame.kind in (Kind.RESPONSE, Kind.ERROR):
        asked = site.conversation.request_of(frame)
        about = f" to {_short(asked.method)}" if asked is not None else ""
        what = "answer" if frame.kind is Kind.RESPONSE else "refusal"
        return f"the {what}{side}{about}{_ids(frame)}"
    return f"a line{side} that is no message"


def _ids(frame: Frame) -> str:
    params = obj(frame.params)
    found = [
        text(params.get("itemId")) or text(dig(params, "item", "id")),
        text(params.get("turnId")) or text(dig(params, "turn", "id")),
        text(params.get("threadId")) or text(dig(params, "thread", "id")),
    ]
    if isinstance(frame.id, (int, str)):
        found = [f"id {frame.id}"]
    first = next((one for one in found if one), "")
    return f" ({_short(first)})" if first else ""


def _place(before: Any, after: Any) -> str:
    """Return the first place where a message was changed, without its value."""
    path = difference(before, after).path
    return _short(show_path(path)) if path else "all of it"


def _short(name: str) -> str:
    return visible(name if len(name) <= _MAX_ID_CHARACTERS else name[:_MAX_ID_CHARACTERS] + "…")
