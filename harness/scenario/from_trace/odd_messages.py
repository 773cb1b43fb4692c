"""Messages of a trace that no step repeats as they were: the greeting, and lines without JSON."""

from harness.protocol.values import dig, obj
from harness.trace.frame import Frame


def initialize_note(frame: Frame) -> str:
    """Return which parts of a recorded initialize are left out, "" for none."""
    extra = obj(frame.params).keys() - {"clientInfo", "capabilities"}
    left_out = ", ".join([*sorted(extra), *obj(dig(frame.params, "capabilities"))])
    if not left_out:
        return ""
    return f"initialize is sent as the target's profile has it, without: {left_out}"


def raw_content(frame: Frame) -> dict[str, str]:
    """Return the line of a frame as `send_raw` takes it, in hex if it is not UTF-8."""
    try:
        return {"line": frame.raw.decode("utf-8")}
    except UnicodeDecodeError:
        return {"hex": (frame.raw + b"\n").hex()}
