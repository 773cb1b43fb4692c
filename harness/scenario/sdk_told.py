"""News of a turn in a call of an SDK: how it ended, the id of its thread, its items."""

from collections.abc import Mapping

from harness.protocol.values import arr, dig, obj, text
from harness.scenario.exec_told import Told, ToldItem, told_by
from harness.trace.frame import Frame
from harness.trace.surfaces import SDK
from harness.trace.trace import Trace

# The ends of a call that buffers its turn, as the session protocol calls them.
_ENDS = {"result": "completed", "error": "failed"}


def key_of(driver: int, turn: int) -> str:
    """Return the key of a turn: the run of the driver and the turn's number there."""
    return f"{driver}.{turn}"


def told_turns(surface: str, trace: Trace, turns: Mapping[str, str]) -> dict[str, Told]:
    """Return what each turn told, by its alias; `turns` maps aliases to the trace's names."""
    read = told_by_call if surface == SDK else told_by
    return {alias: read(trace, name) for alias, name in turns.items()}


def told_by_call(trace: Trace, key: str) -> Told:
    """Return what a call of `run` told. If it rejected, nobody was told of the items."""
    over = _over(trace, key)
    if over is None:
        return Told(items=None)
    message = obj(over.json)
    status = _ENDS.get(text(message.get("over")), "")
    shown = arr(dig(message, "result", "items")) if status == "completed" else None
    items = [
        ToldItem(obj(one), over, ("result", "items", index))
        for index, one in enumerate(shown or ())
    ]
    return Told(
        thread=text(message.get("threadId")),
        status=status,
        error=text(dig(message, "error", "message")),
        end=over,
        end_path=("over",),
        items=None if shown is None else items,
    )


def _over(trace: Trace, key: str) -> Frame | None:
    for frame in trace.frames:
        message = obj(frame.json)
        if "over" in message and f"{message.get('id')}.{message.get('turn')}" == key:
            return frame
    return None
