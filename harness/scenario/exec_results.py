"""The events of one process of `agent exec`: its thread, how its turn ended, its items."""

from dataclasses import dataclass, field
from typing import Any

from harness.protocol.values import Path, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.trace import Trace

# The ends of a turn, as the session protocol calls them.
STATUS_OF_END = {"turn.completed": "completed", "turn.failed": "failed"}


@dataclass(frozen=True, slots=True)
class ExecItem:
    """A completed item, its message, and the path to it in the message."""

    members: dict[str, Any]
    frame: Frame
    path: Path = ("item",)


@dataclass(slots=True)
class ExecResult:
    """The results of one turn.

    `thread` is the reported thread id, "" for none; `status` is `completed`, `failed` or "" without
    an end; `end` is the message of the end, or a fatal error, with the member `end_path`; `error`
    is its text. `items` is None if the items were not reported.
    """

    thread: str = ""
    status: str = ""
    error: str = ""
    end: Frame | None = None
    end_path: Path = ("type",)
    items: list[ExecItem] | None = field(default_factory=list[ExecItem])

    @property
    def end_words(self) -> str:
        """Return the status, or a phrase for a turn that did not end."""
        return self.status or "nothing: neither turn.completed nor turn.failed came"


def exec_result_of(trace: Trace, connection: str) -> ExecResult:
    """Return the result that a process has reported so far.

    A fatal error ends a turn as failed if no event of the turn does.
    """
    items: list[ExecItem] = []
    result = ExecResult(items=items)
    fatal: Frame | None = None
    for frame in trace.frames:
        if frame.connection != connection or frame.kind is not Kind.EVENT:
            continue
        event = obj(frame.json)
        kind = text(event.get("type"))
        if kind == "thread.started":
            result.thread = result.thread or text(event.get("thread_id"))
        elif kind == "item.completed":
            items.append(ExecItem(obj(event.get("item")), frame))
        elif kind in STATUS_OF_END and result.end is None:
            result.status, result.end = STATUS_OF_END[kind], frame
            result.error = text(dig(event, "error", "message"))
        elif kind == "error":
            fatal = frame
    if result.end is None and fatal is not None:
        result.status, result.end = "failed", fatal
        result.error = text(obj(fatal.json).get("message"))
    return result
