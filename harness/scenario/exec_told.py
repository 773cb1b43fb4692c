"""The events of one process of `agent exec`: its thread, how its turn ended, its items."""

from dataclasses import dataclass, field
from typing import Any

from harness.protocol.values import Path, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.trace import Trace

# The ends of a turn, as the session protocol calls them.
ENDS = {"turn.completed": "completed", "turn.failed": "failed"}


@dataclass(frozen=True, slots=True)
class ToldItem:
    """An item as it was completed, the message that shows it, and the path to it in there."""

    shows: dict[str, Any]
    frame: Frame
    path: Path = ("item",)


@dataclass(slots=True)
class Told:
    """The results of one turn.

    `thread` is the id that it named, "" for none; `status` is `completed`, `failed` or "" where no
    end was told; `end` is the message that told it, or a fatal error, with the member `end_path`;
    `error` is its words. `items` is None where nobody was told of the items.
    """

    thread: str = ""
    status: str = ""
    error: str = ""
    end: Frame | None = None
    end_path: Path = ("type",)
    items: list[ToldItem] | None = field(default_factory=list[ToldItem])

    @property
    def words(self) -> str:
        """The end in words."""
        return self.status or "nothing: neither turn.completed nor turn.failed came"


def told_by(trace: Trace, connection: str) -> Told:
    """Return what a process told so far.

    A fatal error ends a turn as failed where no event of the turn does.
    """
    items: list[ToldItem] = []
    told = Told(items=items)
    fatal: Frame | None = None
    for frame in trace.frames:
        if frame.connection != connection or frame.kind is not Kind.EVENT:
            continue
        event = obj(frame.json)
        kind = text(event.get("type"))
        if kind == "thread.started":
            told.thread = told.thread or text(event.get("thread_id"))
        elif kind == "item.completed":
            items.append(ToldItem(obj(event.get("item")), frame))
        elif kind in ENDS and told.end is None:
            told.status, told.end = ENDS[kind], frame
            told.error = text(dig(event, "error", "message"))
        elif kind == "error":
            fatal = frame
    if told.end is None and fatal is not None:
        told.status, told.end = "failed", fatal
        told.error = text(obj(fatal.json).get("message"))
    return told
