"""Limits on one answer of the model.

An answer that exceeds one is not retried, since the next answer would be as long. `engine.failure`
has the limits on a whole turn.
"""

from reference_server.model.errors import ModelError
from reference_server.model.events import (
    ModelEvent,
    OutputItemAdded,
    OutputItemDone,
    ReasoningDelta,
    SummaryDelta,
    SummaryPartAdded,
    TextDelta,
)

MAX_BYTES = 64 * 2**20
"""Maximum bytes of the stream, framing included."""
MAX_TEXT = 8 * 2**20
"""Maximum characters of all deltas together; also bytes of all complete items, which repeat them.
"""
MAX_ITEMS = 1000
"""Maximum output items and sections of reasoning."""
MAX_CALLS = 200
"""Maximum tool calls, which are carried out one after the other."""
_CALLS = ("function_call", "custom_tool_call")


class AnswerLimits:
    """Counters of one answer. Every method raises ModelError if the answer exceeds a limit."""

    def __init__(self) -> None:
        self._bytes = self._streamed = self._whole = self._begun = self._done = self._calls = 0

    def take_bytes(self, count: int) -> None:
        """Count bytes of the stream."""
        self._bytes += count
        if self._bytes > MAX_BYTES:
            raise _limit_exceeded(f"{MAX_BYTES // 2**20} MiB of events")

    def take(self, event: ModelEvent, size: int) -> None:
        """Count an event of `size` bytes."""
        match event:
            case TextDelta() | SummaryDelta() | ReasoningDelta():
                self._streamed += len(event.delta)
                if self._streamed > MAX_TEXT:
                    raise _limit_exceeded(f"{MAX_TEXT // 2**20} Mi characters of text")
            case OutputItemDone():
                self._take_whole(event, size)
            case OutputItemAdded() | SummaryPartAdded():
                self._begun += 1
                if self._begun > MAX_ITEMS:
                    raise _limit_exceeded(f"{MAX_ITEMS} items")
            case _:
                pass

    def _take_whole(self, event: OutputItemDone, size: int) -> None:
        self._whole += size
        if self._whole > MAX_TEXT:
            raise _limit_exceeded(f"{MAX_TEXT // 2**20} MiB of items")
        # Counted separately from started items: an item may come complete, without a start.
        self._done += 1
        if self._done > MAX_ITEMS:
            raise _limit_exceeded(f"{MAX_ITEMS} items")
        self._calls += event.item.get("type") in _CALLS
        if self._calls > MAX_CALLS:
            raise _limit_exceeded(f"{MAX_CALLS} calls of tools")


def _limit_exceeded(amount: str) -> ModelError:
    return ModelError(
        "The model's answer is too long", "Other", f"it has more than {amount}", phase="stream"
    )
