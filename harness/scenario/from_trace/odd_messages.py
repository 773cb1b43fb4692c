"""Messages of a trace that no step repeats exactly: the greeting, and lines without JSON."""

from harness.protocol.values import dig, obj
from harness.trace.frame import Frame


def initialize_note(frame: Frame) -> str:
    """Return a note on the parts of a recorded initialize that are left out, "" for none."""
    extra = obj(frame.params).keys() - {"clientInfo", "capabilities"}
    left_out = ", ".join([*sorted(extra), *obj(dig(frame.params, "capabilities"))])
    if not left_out:
        return ""
    return f"initialize is sent as the target's profile has it, without: {left_out}"


def raw_content(frame: Frame) -> dict[str, str]:
    """Return the body of a `send_raw` step for a frame: its line, or hex if it is not UTF-8."""
    try:
        return {"line": frame.raw.decode("utf-8")}
    except UnicodeDecodeError:
        return {"hex": (frame.raw + b"\n").hex()}
