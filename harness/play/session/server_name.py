"""Name of a server from its answer to `initialize`, usually with a version."""

from harness.protocol.values import obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.trace import Trace

# The handshake comes first; servers without one are not searched further in each scenario.
_MAX_FRAMES_SEARCHED = 20
_MAX_NAME_CHARACTERS = 200


def server_name(trace: Trace) -> str:
    """Return the `userAgent` of the answer, or name and version of its `serverInfo`, or "".

    It is one line of at most 200 characters, whatever the server sent.
    """
    for frame in trace.frames[:_MAX_FRAMES_SEARCHED]:
        if frame.from_target and frame.kind is Kind.RESPONSE:
            name = _name_in(frame)
            if name:
                line = "".join(c if c.isprintable() else " " for c in name)
                return " ".join(line.split())[:_MAX_NAME_CHARACTERS]
    return ""


def _name_in(frame: Frame) -> str:
    result = obj(frame.result)
    agent = text(result.get("userAgent"))
    if agent:
        return agent
    info = obj(result.get("serverInfo"))
    return "/".join(filter(None, (text(info.get("name")), text(info.get("version")))))
