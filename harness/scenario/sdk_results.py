"""Result of a turn that was a call of an SDK: its end, the id of its thread, its items."""

from collections.abc import Mapping

from harness.protocol.values import arr, dig, obj, text
from harness.scenario.exec_results import ExecItem, ExecResult, exec_result_of
from harness.trace.frame import Frame
from harness.trace.surfaces import SDK
from harness.trace.trace import Trace

# The driver's word for the end of a call -> the session protocol's status.
_ENDS = {"result": "completed", "error": "failed"}


def turn_key(driver: int, turn: int) -> str:
    """Return the key of a turn from the number of the driver's run and the turn's number in it."""
    return f"{driver}.{turn}"


def results_by_alias(surface: str, trace: Trace, turns: Mapping[str, str]) -> dict[str, ExecResult]:
    """Return alias -> result of each turn; `turns` maps aliases to connections or turn keys."""
    read = sdk_result_of if surface == SDK else exec_result_of
    return {alias: read(trace, name) for alias, name in turns.items()}


def sdk_result_of(trace: Trace, key: str) -> ExecResult:
    """Return the result of the call with this key; `items` is None unless it succeeded."""
    end = _end_message(trace, key)
    if end is None:
        return ExecResult(items=None)
    message = obj(end.json)
    status = _ENDS.get(text(message.get("over")), "")
    items_shown = arr(dig(message, "result", "items")) if status == "completed" else None
    items = [
        ExecItem(obj(item), end, ("result", "items", index))
        for index, item in enumerate(items_shown or ())
    ]
    return ExecResult(
        thread=text(message.get("threadId")),
        status=status,
        error=text(dig(message, "error", "message")),
        end=end,
        end_path=("over",),
        items=None if items_shown is None else items,
    )


def _end_message(trace: Trace, key: str) -> Frame | None:
    for frame in trace.frames:
        message = obj(frame.json)
        if "over" in message and f"{message.get('id')}.{message.get('turn')}" == key:
            return frame
    return None
